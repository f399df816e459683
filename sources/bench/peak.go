package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"evenpool/sources"
)

const (
	peakBytes  = 16 << 20 // of a list, the most that is read by default
	peakRounds = 3
)

// peak measures a list of 16 MiB. maxCandidates is 0 for the default.
func peak(ctx context.Context, dir string, w writer, maxCandidates int) (figure, error) {
	text, n := w.list(math.MaxInt, peakBytes)
	path := filepath.Join(dir, "peak")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return figure{}, err
	}
	text = nil
	runtime.GC()
	want := min(n, 200_000)
	if maxCandidates > 0 {
		want = maxCandidates
	}
	var more []float64
	for range peakRounds {
		idle, err := peakOf(ctx, path, "discard", maxCandidates, want)
		if err != nil {
			return figure{}, err
		}
		parsing, err := peakOf(ctx, path, "parse", maxCandidates, want)
		if err != nil {
			return figure{}, err
		}
		more = append(more, float64(parsing-idle)/(1<<20))
	}
	f := figure{value: median(more), unit: "MiB", most: 64}
	if maxCandidates > 0 {
		f.most = 0
		if w.streamed {
			f.most = 8
		}
	}
	return f, nil
}

// peakOf runs a process that reads the file, and returns its peak in bytes.
func peakOf(ctx context.Context, path, what string, maxCandidates, want int) (int64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, self, "peak", path, what, strconv.Itoa(maxCandidates), strconv.Itoa(want))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(problem.String()))
	}
	return strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
}

// peakRole reads a file and prints how much memory was resident at the most.
func peakRole(args []string) error {
	path, what := args[0], args[1]
	maxCandidates, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	want, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var list sources.List
	if what == "parse" {
		list, err = read(file, sources.Limits{MaxCandidates: maxCandidates}, want)
	} else {
		_, err = io.Copy(io.Discard, file)
	}
	if err != nil {
		return err
	}
	bytes, err := highWater()
	runtime.KeepAlive(list) // whoever reads a list has it when it has been read
	fmt.Println(bytes)
	return err
}

// highWater is the peak of this program's resident memory. Not getrusage's: that
// begins with what the process that started it had.
func highWater() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("no VmHWM in /proc/self/status")
}
