package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// measurement is what is taken in the same rounds.
type measurement struct {
	figures []figure // without their values
	ways    []way
	// values gives one round's, in the order of the figures, from what the ways did.
	values func(did []measured) []float64
}

// way is one side of a comparison.
type way func(ctx context.Context, b *bed, o options) (measured, error)

// measurements is the list of all.
func measurements() []measurement {
	return []measurement{
		{
			figures: []figure{
				{name: "alloc.redis_cpu.vs_direct", unit: "ratio", bar: "<=0.45"},
				{name: "alloc.redis_cpu", unit: "us"},
				{name: "alloc.redis_cpu.direct", unit: "us"},
				{name: "alloc.http.vs_direct", unit: "ratio", bar: ">=0.5"},
				{name: "alloc.http", unit: "allocations/s"},
				{name: "alloc.http.direct", unit: "allocations/s"},
			},
			ways: []way{fromDaemon("http", 64), redisBenchmark(64, 1)},
			values: func(did []measured) []float64 {
				http, direct := did[0], did[1]
				cpu := []float64{http.redisCPU / float64(http.All) * 1e6, direct.redisCPU / float64(direct.All) * 1e6}
				return []float64{cpu[0] / cpu[1], cpu[0], cpu[1], http.Rate / direct.Rate, http.Rate, direct.Rate}
			},
		},
		{
			figures: []figure{
				{name: "alloc.n16.vs_direct", unit: "ratio", bar: ">=1"},
				{name: "alloc.n16", unit: "allocations/s"},
				{name: "alloc.n16.direct", unit: "allocations/s"},
			},
			ways: []way{fromDaemon("http16", 16), redisBenchmark(16, 16)},
			values: func(did []measured) []float64 {
				return []float64{did[0].Rate / did[1].Rate, did[0].Rate, did[1].Rate}
			},
		},
		{
			figures: []figure{
				{name: "alloc.lone.vs_direct", unit: "ratio", bar: "<=3"},
				{name: "alloc.lone.client.vs_direct", unit: "ratio"},
				{name: "alloc.lone", unit: "us"},
				{name: "alloc.lone.client", unit: "us"},
				{name: "alloc.lone.direct", unit: "us"},
			},
			ways: []way{fromDaemon("http", 1), fromDaemon("client", 1), goRedis},
			values: func(did []measured) []float64 {
				http, client, direct := us(did[0]), us(did[1]), us(did[2])
				return []float64{http / direct, client / direct, http, client, direct}
			},
		},
		{
			figures: []figure{{name: "alloc.scale", unit: "ratio", bar: "<=1.5"}},
			ways:    []way{fromStore("100"), fromStore("100000")},
			values:  func(did []measured) []float64 { return []float64{did[0].Rate / did[1].Rate} },
		},
		{
			figures: []figure{
				{name: "alloc.embedded.1000", unit: "allocations/s"},
				{name: "alloc.embedded.10000", unit: "allocations/s"},
				{name: "alloc.embedded.scale", unit: "ratio"},
			},
			ways: []way{fromEmbedded("1000"), fromEmbedded("10000")},
			values: func(did []measured) []float64 {
				return []float64{did[0].Rate, did[1].Rate, did[0].Rate / did[1].Rate}
			},
		},
	}
}

func us(m measured) float64 { return float64(m.P50.Nanoseconds()) / 1e3 }

func fromDaemon(generator string, workers int) way {
	return func(ctx context.Context, b *bed, o options) (measured, error) {
		return b.count(b.generate(ctx, generator, b.daemonSocket(), o.load(workers)))
	}
}

func redisBenchmark(connections, pipelined int) way {
	return func(ctx context.Context, b *bed, o options) (measured, error) {
		return b.count(b.redisBenchmark(ctx, connections, pipelined, o.load(connections)))
	}
}

func goRedis(ctx context.Context, b *bed, o options) (measured, error) {
	return b.count(b.generate(ctx, "go-redis", b.redisSocket(), o.load(1)))
}

func fromStore(pool string) way {
	return func(ctx context.Context, b *bed, o options) (measured, error) {
		return b.generate(ctx, "store", b.redisSocket()+","+pool, o.load(64))
	}
}

func fromEmbedded(members string) way {
	return func(ctx context.Context, b *bed, o options) (measured, error) {
		return b.generate(ctx, "embedded", members, o.load(64))
	}
}

// count adds to the answers that the counts in Redis must sum up to.
func (b *bed) count(m measured, err error) (measured, error) {
	b.answers += m.All
	return m, err
}

// rounds takes a measurement several times, and gives the values of each figure.
func (b *bed) rounds(ctx context.Context, m measurement, o options) ([][]float64, error) {
	values := make([][]float64, len(m.figures))
	for round := range o.rounds {
		did := make([]measured, len(m.ways))
		order := []int{}
		for i := range m.ways {
			order = append(order, i)
		}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			before, err := b.redisCPU(ctx)
			if err != nil {
				return nil, err
			}
			if did[i], err = m.ways[i](ctx, b, o); err != nil {
				return nil, err
			}
			after, err := b.redisCPU(ctx)
			if err != nil {
				return nil, err
			}
			did[i].redisCPU = after - before
		}
		for i, v := range m.values(did) {
			values[i] = append(values[i], v)
		}
		fmt.Fprintf(os.Stderr, "%s, round %d of %d: %.3f\n", m.figures[0].name, round+1, o.rounds, values[0][round])
	}
	return values, nil
}
