// Command bench measures probing against the lab and prints a line for each
// figure: name, value, unit. The lab with its judge, and each run of the prober,
// are processes of their own (this program again, in another role), so that the
// CPU and memory of one are not counted for the other. Each figure is the median
// of several runs, and each run warms up before it measures.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"evenpool/probe/lab"
)

// spec is what a prober's process is told, as JSON on its standard input.
type spec struct {
	World       world
	Concurrency int
	Timeout     time.Duration
}

// world is where the lab's process serves, as JSON on its standard output.
type world struct {
	JudgeHTTP, JudgeHTTPS string
	JudgePEM              []byte
	Proxies               []lab.Proxy
}

func main() {
	candidates := flag.Int("candidates", 2000, "`N` of the lab: 60 % silent, 20 % refused, 10 % otherwise bad, 10 % good")
	concurrency := flag.Int("concurrency", 1000, "probes in flight")
	inFlight := flag.Int("in-flight", 2000, "silent proxies for the memory of a probe in flight")
	timeout := flag.Duration("timeout", 2*time.Second, "of a check")
	runs := flag.Int("runs", 5, "runs of each measurement; the median is printed")
	flag.Parse()

	var err error
	switch role := flag.Arg(0); role {
	case "":
		err = bench(*candidates, *concurrency, *inFlight, *timeout, *runs)
	case "lab":
		err = serveLab(flag.Args()[1:])
	case "rate":
		err = prober(rate)
	case "hold":
		err = prober(hold)
	default:
		err = fmt.Errorf("unknown role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// public is a population like that of the lists that anybody publishes.
func public(n int) []lab.Spec {
	share := func(percent int) int { return max(n*percent/100, 2) }
	return []lab.Spec{
		{Behaviour: "silent", Count: share(60)},
		{Behaviour: "refuses", Count: share(20)},
		{Behaviour: "garbage", Count: share(2)},
		{Behaviour: "captive", Count: share(2)},
		{Behaviour: "closes", Count: share(2)},
		{Behaviour: "status-500", Count: share(2)},
		{Behaviour: "http-only", Count: share(2)},
		{Behaviour: "http", Count: share(5)},
		{Behaviour: "socks4", Count: share(2)},
		{Behaviour: "socks5", Count: share(3)},
	}
}

func bench(candidates, concurrency, inFlight int, timeout time.Duration, runs int) error {
	mixed, err := measure(public(candidates), "rate", spec{Concurrency: concurrency, Timeout: timeout}, runs)
	if err != nil {
		return err
	}
	// The limit is long here, so that all are in flight when memory is measured.
	held, err := measure([]lab.Spec{{Behaviour: "silent", Count: inFlight}}, "hold", spec{Concurrency: inFlight, Timeout: time.Minute}, runs)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, unit string
		values     []figures
	}{
		{"probe.candidates_per_cpu_second", "candidates/s", mixed},
		{"probe.cpu_per_candidate", "us", mixed},
		{"probe.wall", "s", mixed},
		{"probe.right", "%", mixed},
		{"probe.bytes_in_flight", "bytes", held},
	} {
		fmt.Printf("%s %s %s\n", f.name, strconv.FormatFloat(median(f.values, f.name), 'f', -1, 64), f.unit)
	}
	return nil
}

// figures is what one run measured, by name.
type figures map[string]float64

func median(runs []figures, name string) float64 {
	var values []float64
	for _, run := range runs {
		values = append(values, run[name])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// measure runs a role several times against one lab.
func measure(population []lab.Spec, role string, s spec, runs int) ([]figures, error) {
	args := []string{"lab"}
	for _, p := range population {
		args = append(args, string(p.Behaviour), strconv.Itoa(p.Count))
	}
	lab, err := start(args...)
	if err != nil {
		return nil, err
	}
	defer lab.end()
	if err := json.NewDecoder(lab.out).Decode(&s.World); err != nil {
		return nil, fmt.Errorf("lab: %w", errors.Join(err, lab.end()))
	}
	var all []figures
	for range runs {
		one, err := run(role, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// run gives a prober's process its spec, and reads its figures.
func run(role string, s spec) (figures, error) {
	input, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd, err := again(role)
	if err != nil {
		return nil, err
	}
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var f figures
	return f, json.Unmarshal(out, &f)
}

// again is this program in another role.
func again(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// child is a process that runs until its standard input ends.
type child struct {
	cmd *exec.Cmd
	in  io.Closer
	out io.Reader
}

func start(args ...string) (*child, error) {
	cmd, err := again(args...)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd, in, out}, cmd.Start()
}

func (c *child) end() error {
	c.in.Close()
	return c.cmd.Wait()
}
