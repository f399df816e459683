// Command bench measures how sources read lists and how candidates are offered to
// Redis. `make bench-sources` runs it.
//
// It prints a line per figure: name, value, unit, bar. The bar is what the value
// is held to, "<=2" for at most 2, or "-" where it is only told; if one is missed,
// that is said and the exit code is 1. What is compared is measured side by side,
// in turns, and the median of the rounds is printed. Lists are generated, always
// the same, with invented addresses.
//
//	sources.parse_mb_per_cpu_s.FORMAT  a list of some 3 MB, in memory; CPU time of the process
//	sources.parse.vs_scan              CPU time for a file of 160,000 plain lines, as a multiple of what a
//	                                   bufio.Scanner and netip.ParseAddrPort take that keep nothing
//	sources.peak_mib.FORMAT            a list of 16 MiB, read from a file in a process of its own: its peak of
//	                                   resident memory beyond that of a process that reads the same file and
//	                                   looks at nothing. The candidates, up to 200,000, are part of it
//	sources.reading_peak_mib.FORMAT    the same with max_candidates 1,000: the reading alone, without what is
//	                                   kept. Held to its bar where the format is streamed
//	sources.offer.vs_pipeline          time to offer 100,000 new candidates, as a multiple of what go-redis takes
//	                                   for HSET and ZADD NX of the same data in pipelines
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

type options struct {
	rounds int
	only   string // the beginning of the figures' names that are wanted
}

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 9, "rounds of what is compared; the median is printed")
	flag.StringVar(&o.only, "only", "", "measure only figures whose name begins so, such as sources.parse")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch flag.Arg(0) {
	case "":
		err = run(ctx, o)
	case "peak": // internal: see peak.go
		err = peakRole(flag.Args()[1:])
	default:
		err = fmt.Errorf("unknown role %q", flag.Arg(0))
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
	most  float64 // the bar; 0 for none
}

func (f figure) missed() bool { return f.most > 0 && f.value > f.most }

func (f figure) String() string {
	bar := "-"
	if f.most > 0 {
		bar = "<=" + strconv.FormatFloat(f.most, 'f', -1, 64)
	}
	return fmt.Sprintf("%s %s %s %s", f.name, strconv.FormatFloat(f.value, 'f', 3, 64), f.unit, bar)
}

// run measures all, also behind what fails: the other figures are worth having.
func run(ctx context.Context, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("rounds are at least 1")
	}
	dir, err := os.MkdirTemp("", "evenpool-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var failed []string
	measure := func(name string, how func() (figure, error)) {
		if ctx.Err() != nil || !strings.HasPrefix(name, o.only) {
			return
		}
		f, err := how()
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", name, err))
			return
		}
		f.name = name
		fmt.Println(f)
		if f.missed() {
			failed = append(failed, "missed: "+f.String())
		}
	}
	for _, w := range writers() {
		measure("sources.parse_mb_per_cpu_s."+w.name, func() (figure, error) { return parseRate(w, o.rounds) })
	}
	measure("sources.parse.vs_scan", func() (figure, error) { return parseAgainstScan(dir, o.rounds) })
	for _, w := range writers() {
		measure("sources.peak_mib."+w.name, func() (figure, error) { return peak(ctx, dir, w, 0) })
		measure("sources.reading_peak_mib."+w.name, func() (figure, error) { return peak(ctx, dir, w, 1000) })
	}
	measure("sources.offer.vs_pipeline", func() (figure, error) { return offerAgainstPipeline(ctx, dir, o.rounds) })
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d figures are not what they ought to be:\n%s", len(failed), strings.Join(failed, "\n"))
	}
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
