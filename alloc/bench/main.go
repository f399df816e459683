// Command bench measures allocations through the daemon's socket against allocations by workers that
// go to Redis themselves. `make bench-alloc` runs it.
//
// It prints a line per figure: name, value, unit, bar. The bar is what the value is held to, "<=2" for
// at most 2 and ">=2" for at least, or "-" where it is only told; if one is missed, that is said and the
// exit code is 1. Daemon, redis-server and load generators are processes of their own, on Unix sockets.
// What is compared is measured one after the other in each round, on the same server, in the other order
// every second round; a ratio is of one round, and the median of the rounds is printed. At the end the
// counts in Redis must sum up to the answers.
//
//	alloc.redis_cpu.vs_direct  CPU time of Redis per allocation, 64 connections through the socket, as a
//	                           multiple of what 64 connections of redis-benchmark cost that run the classic
//	                           script by its hash
//	alloc.http.vs_direct       allocations per second, likewise
//	alloc.n16.vs_direct        allocations per second, 16 connections that ask for 16 each time, as a multiple
//	                           of redis-benchmark's with 16 connections and 16 in each write
//	alloc.lone.vs_direct       median time of one allocation by one worker alone, as a multiple of what it is
//	                           by the classic script and go-redis; and the same by the project's own client
//	alloc.scale                time per allocation with 100,000 members, as a multiple of that with 100; 64
//	                           workers on the store without a daemon
//	alloc.embedded.MEMBERS     allocations per second, 64 workers on the embedded store
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
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
	warmUp, duration time.Duration
	rounds           int
	only             string // the beginning of the figures' names that are wanted
	binary           string // evenpool; "" builds it
}

func (o options) load(workers int) load { return load{workers, o.warmUp, o.duration} }

func main() {
	var o options
	var generate, target string
	var workers int
	flag.DurationVar(&o.warmUp, "warm-up", 300*time.Millisecond, "time before counting begins")
	flag.DurationVar(&o.duration, "duration", 1500*time.Millisecond, "time that counts, each way in each round")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds; the median is printed")
	flag.StringVar(&o.only, "only", "", "measure only figures whose name begins so, such as alloc.lone")
	flag.StringVar(&o.binary, "evenpool", "", "the daemon's binary; default: build it")
	flag.StringVar(&generate, "generate", "", "internal: be a load generator")
	flag.StringVar(&target, "target", "", "internal: what the generator asks")
	flag.IntVar(&workers, "workers", 64, "internal: the generator's workers")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if generate != "" {
		err = runGenerator(ctx, generate, target, o.load(workers))
	} else {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figure is one line.
type figure struct {
	name  string
	value float64
	unit  string
	bar   string // "<=1.5", ">=100"; "" for none
}

func (f figure) missed() bool {
	if most, ok := strings.CutPrefix(f.bar, "<="); ok {
		bar, err := strconv.ParseFloat(most, 64)
		return err != nil || !(f.value <= bar)
	}
	if least, ok := strings.CutPrefix(f.bar, ">="); ok {
		bar, err := strconv.ParseFloat(least, 64)
		return err != nil || !(f.value >= bar)
	}
	return false
}

func (f figure) String() string {
	bar := f.bar
	if bar == "" {
		bar = "-"
	}
	return fmt.Sprintf("%s %s %s %s", f.name, strconv.FormatFloat(f.value, 'f', 3, 64), f.unit, bar)
}

// run measures all, also behind what fails: the other figures are worth having.
func run(ctx context.Context, o options) error {
	if o.rounds < 1 || o.duration <= 0 {
		return errors.New("rounds and duration are at least 1")
	}
	bed, err := newBed(ctx, o)
	if err != nil {
		return err
	}
	defer bed.close()
	var failed []string
	for _, m := range measurements() {
		if !slices.ContainsFunc(m.figures, func(f figure) bool { return strings.HasPrefix(f.name, o.only) }) {
			continue
		}
		values, err := bed.rounds(ctx, m, o)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", m.figures[0].name, err))
			continue
		}
		for i, f := range m.figures {
			f.value = middle(values[i])
			fmt.Println(f)
			if f.missed() {
				failed = append(failed, fmt.Sprintf("%s is %.3f %s, its bar is %s", f.name, f.value, f.unit, f.bar))
			}
		}
	}
	sum, err := bed.sumOfCounts(ctx)
	if err != nil {
		failed = append(failed, err.Error())
	}
	if sum != bed.answers && len(failed) == 0 {
		failed = append(failed, fmt.Sprintf("%d answers, but the counts sum up to %d", bed.answers, sum))
	}
	if len(failed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(failed, "; "))
	}
	return nil
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[at-1] + sorted[at]) / 2
	}
	return sorted[at]
}
