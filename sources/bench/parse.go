package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// read parses a list and wants so many candidates.
func read(r io.Reader, limits sources.Limits, want int) (sources.List, error) {
	list, err := sources.Parse(r, sources.Source{Name: "bench", Scheme: proxyurl.HTTP}, limits)
	if err == nil && len(list.Candidates) != want {
		err = fmt.Errorf("%d candidates, want %d; rejected %v, the first %+v", len(list.Candidates), want, list.Rejects, list.Samples)
	}
	return list, err
}

func parseRate(w writer, rounds int) (figure, error) {
	text, n := w.list(150_000, 3_000_000)
	var rates []float64
	for range rounds {
		used, err := cpuTime(func() error {
			_, err := read(bytes.NewReader(text), sources.Limits{}, n)
			return err
		})
		if err != nil {
			return figure{}, err
		}
		rates = append(rates, float64(len(text))/1e6/used.Seconds())
	}
	return figure{value: median(rates), unit: "MB/s"}, nil
}

func parseAgainstScan(dir string, rounds int) (figure, error) {
	text, n := plain().list(160_000, math.MaxInt)
	path := filepath.Join(dir, "plain-160000")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return figure{}, err
	}
	ways := [2]func(io.Reader) error{
		func(r io.Reader) error {
			_, err := read(r, sources.Limits{}, n)
			return err
		},
		func(r io.Reader) error { return scan(r, n) },
	}
	var ratios []float64
	for round := range rounds + 1 {
		var used [2]time.Duration
		for i := range ways {
			way := (i + round) % 2
			file, err := os.Open(path)
			if err != nil {
				return figure{}, err
			}
			used[way], err = cpuTime(func() error { return ways[way](file) })
			file.Close()
			if err != nil {
				return figure{}, err
			}
		}
		if round > 0 { // the first one warms up
			ratios = append(ratios, used[0].Seconds()/used[1].Seconds())
			fmt.Fprintf(os.Stderr, "round %d of %d: parsed in %v, scanned in %v\n", round, rounds, used[0], used[1])
		}
	}
	return figure{value: median(ratios), unit: "ratio", most: 2}, nil
}

// scan is what anybody would write who trusts a list.
func scan(r io.Reader, want int) error {
	lines, n := bufio.NewScanner(r), 0
	for lines.Scan() {
		if _, err := netip.ParseAddrPort(lines.Text()); err == nil {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("scanned %d addresses, want %d", n, want)
	}
	return lines.Err()
}

// cpuTime is what this process uses for a job, in user and kernel, garbage
// collection included, but not that of what was there before.
func cpuTime(job func() error) (time.Duration, error) {
	runtime.GC()
	before := cpu()
	err := job()
	return cpu() - before, err
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
