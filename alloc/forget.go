package alloc

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Unnamed is a proxy that nothing has spoken for in a while.
type Unnamed struct {
	Claimed           // as it is known; nobody claims it by this
	Named   time.Time // when something last spoke for it: keys.go says what
}

// Unnamed gives proxies that nothing has spoken for since before, those longest not named first: of
// these it leaves out the first skip and gives n at most, no more than 500.
func (p *Pool) Unnamed(ctx context.Context, before time.Time, skip, n int) ([]Unnamed, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	list, err := p.store.client.ZRangeByScoreWithScores(ctx, p.keys.named, &redis.ZRangeBy{
		Min: "-inf", Max: "(" + strconv.FormatInt(before.UnixMilli(), 10),
		Offset: int64(skip), Count: int64(min(n, maxPerCall)),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("unnamed in pool %s: %w", p.name, readError(err))
	}
	endpoints := make([]string, len(list))
	for i, z := range list {
		endpoints[i], _ = z.Member.(string)
	}
	records, err := p.Records(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	out := make([]Unnamed, len(list))
	for i, z := range list {
		out[i] = Unnamed{Claimed: records[i], Named: time.UnixMilli(countOf(z.Score)).UTC()}
	}
	return out, nil
}

// UnnamedThese is Unnamed for certain proxies, whenever they were named: it gives those of them that
// are known, in their order. It reads 500 at a time.
func (p *Pool) UnnamedThese(ctx context.Context, endpoints []string) ([]Unnamed, error) {
	records, err := p.Records(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withBudget(ctx)
	defer cancel()
	out := make([]Unnamed, 0, len(records))
	for some := range slices.Chunk(records, maxPerCall) {
		names := make([]string, len(some))
		for i, r := range some {
			names[i] = r.Endpoint
		}
		named, err := p.store.client.ZMScore(ctx, p.keys.named, names...).Result()
		if err != nil {
			return nil, fmt.Errorf("unnamed in pool %s: %w", p.name, readError(err))
		}
		for i, r := range some {
			if r.Version > 0 {
				out = append(out, Unnamed{Claimed: r, Named: time.UnixMilli(countOf(named[i])).UTC()})
			}
		}
	}
	return out, nil
}

// Forgetting is what is to be done with a proxy that nothing has spoken for.
type Forgetting struct {
	Unnamed
	// Spoken is when something else did after all: the proxy lives on as if it had been named
	// then. The zero time drops it: record, due and named time.
	Spoken time.Time
}

// Forget does as it is told with proxies, unless they have been settled or named since they were
// read, and tells how many were dropped and how many live on. One that may be claimed is not dropped:
// that is due between now and busy, the latest end of a claim made before now. A count that is
// remembered of a former member is not touched. More than 500 take several scripts; doing it twice
// is harmless.
func (p *Pool) Forget(ctx context.Context, list []Forgetting, now, busy time.Time) (dropped, spared int, err error) {
	k := p.keys
	for len(list) > 0 {
		some := list[:min(len(list), maxPerCall)]
		list = list[len(some):]
		args := make([]any, 0, 2+4*len(some))
		args = append(args, now.UnixMilli(), busy.UnixMilli())
		for _, f := range some {
			spoken := int64(0)
			if !f.Spoken.IsZero() {
				spoken = f.Spoken.UnixMilli()
			}
			args = append(args, f.Endpoint, f.Version, f.Named.UnixMilli(), spoken)
		}
		reply, err := p.run(ctx, p.store.scripts.forget, []string{k.record, k.due, k.named, k.meta}, args...)
		if err != nil {
			return dropped, spared, err
		}
		numbers, err := wholes(reply)
		if err != nil || len(numbers) != 2 {
			return dropped, spared, fmt.Errorf("forget in pool %s: %d numbers: %w", p.name, len(numbers), err)
		}
		dropped += int(numbers[0])
		spared += int(numbers[1])
	}
	return dropped, spared, nil
}
