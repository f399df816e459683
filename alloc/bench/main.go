// Command bench measures allocations through the daemon's socket against allocations by workers that
// go to Redis themselves. `make bench-alloc` runs it.
//
// Daemon, redis-server and load generators are processes of their own, on Unix sockets. In each round
// both ways are measured one after the other on the same server, for the same time after a warm-up,
// and every second round in the other order; a ratio is of one round, and the median of the rounds is
// printed. At the end the counts in Redis must sum up to the answers that the workers got.
//
// It prints a line per figure: name, value, unit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// load is what a generator does.
type load struct {
	workers  int
	warmUp   time.Duration
	duration time.Duration
}

type options struct {
	load
	rounds  int
	members int
	binary  string // evenpool; "" builds it
}

func main() {
	var o options
	var generate, target string
	flag.IntVar(&o.workers, "workers", 64, "workers at once, each with a connection")
	flag.DurationVar(&o.warmUp, "warm-up", time.Second, "time before counting begins")
	flag.DurationVar(&o.duration, "duration", 3*time.Second, "time that counts, each way in each round")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds; the median is printed")
	flag.IntVar(&o.members, "members", 100, "members of the pool")
	flag.StringVar(&o.binary, "evenpool", "", "the daemon's binary; default: build it")
	flag.StringVar(&generate, "generate", "", "internal: be the load generator http or direct")
	flag.StringVar(&target, "target", "", "internal: the socket that the generator asks")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if generate != "" {
		err = runGenerator(ctx, generate, target, o.load)
	} else {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.rounds < 1 || o.workers < 1 || o.members < 1 || o.duration <= 0 {
		return fmt.Errorf("rounds, workers, members and duration are at least 1")
	}
	bed, err := newBed(ctx, o)
	if err != nil {
		return err
	}
	defer bed.close()

	var http, direct, ratios []float64
	answers := int64(0)
	for round := range o.rounds {
		measure := func(way string) (float64, error) {
			got, err := bed.measure(ctx, way, o.load)
			answers += got.all
			return float64(got.counted) / o.duration.Seconds(), err
		}
		order := []string{"http", "direct"}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		rates := map[string]float64{}
		for _, way := range order {
			if rates[way], err = measure(way); err != nil {
				return fmt.Errorf("%s, round %d: %w", way, round+1, err)
			}
		}
		http = append(http, rates["http"])
		direct = append(direct, rates["direct"])
		ratios = append(ratios, rates["http"]/rates["direct"])
		fmt.Fprintf(os.Stderr, "round %d of %d: through the socket %.0f/s, direct %.0f/s\n", round+1, o.rounds, rates["http"], rates["direct"])
	}
	sum, err := bed.sumOfCounts(ctx)
	if err != nil {
		return err
	}
	if sum != answers {
		return fmt.Errorf("%d answers, but the counts sum up to %d", answers, sum)
	}
	fmt.Printf("alloc.http %.0f allocations/s\n", median(http))
	fmt.Printf("alloc.direct %.0f allocations/s\n", median(direct))
	fmt.Printf("alloc.http.vs_direct %.3f ratio\n", median(ratios))
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
