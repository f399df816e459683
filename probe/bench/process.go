package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"evenpool/probe"
	"evenpool/probe/lab"
)

// spec is what a prober's process is told, as JSON on its standard input.
type spec struct {
	World       world
	Ask         []probe.Capability
	Concurrency int
	Timeout     time.Duration
	Hold        bool   // measure memory in place of CPU
	Profile     string // directory; "": none
}

// world is where the lab's process serves, as JSON on its standard output.
type world struct {
	JudgeHTTP, JudgeHTTPS string
	JudgePEM, Key         []byte
	Proxies               []lab.Proxy
}

// measured is what a prober's process says, as JSON on its standard output.
type measured struct {
	CPU   float64        // us per candidate
	Wall  float64        // s
	Right float64        // % of the verdicts
	Bytes float64        // of resident memory per probe in flight
	Wrong map[string]int // verdicts that are not the truth, by what they were
}

func cpu(m measured) float64           { return m.CPU }
func wall(m measured) float64          { return m.Wall }
func right(m measured) float64         { return m.Right }
func bytesInFlight(m measured) float64 { return m.Bytes }

// sideBySide measures the prober and the bare one in turns.
func sideBySide(s spec, rounds int) (ours, bare []measured, err error) {
	for n := range rounds {
		for _, role := range []string{"evenpool", "bare"} {
			fmt.Fprintf(os.Stderr, "bench: round %d of %d, %v: ", n+1, rounds, s.Ask)
			m, err := measure(role, s)
			if err != nil {
				return nil, nil, err
			}
			if role == "bare" {
				bare = append(bare, m)
			} else {
				ours = append(ours, m)
			}
		}
	}
	return ours, bare, nil
}

// ratio is the median of what was measured side by side.
func ratio(ours, bare []measured, of func(measured) float64) float64 {
	var ratios []float64
	for i := range ours {
		ratios = append(ratios, of(ours[i])/of(bare[i]))
	}
	return middle(ratios)
}

func median(all []measured, of func(measured) float64) float64 { return middle(values(all, of)) }

func least(all []measured, of func(measured) float64) float64 { return slices.Min(values(all, of)) }

func values(all []measured, of func(measured) float64) (list []float64) {
	for _, m := range all {
		list = append(list, of(m))
	}
	return list
}

func middle(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// measure gives a prober's process its spec, and reads what it measured.
func measure(role string, s spec) (m measured, err error) {
	input, err := json.Marshal(s)
	if err != nil {
		return m, err
	}
	cmd, err := again(role)
	if err != nil {
		return m, err
	}
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &m)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", role, err)
	}
	fmt.Fprintf(os.Stderr, "%s: %+v\n", role, m)
	return m, nil
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

// labProcess runs until its standard input ends.
type labProcess struct {
	world world
	cmd   *exec.Cmd
	in    io.Closer
}

// startLab starts n proxies of a mix, or of one behaviour.
func startLab(population string, n int) (*labProcess, error) {
	fmt.Fprintf(os.Stderr, "bench: a lab of %d, %s\n", n, population)
	cmd, err := again("lab", population, strconv.Itoa(n))
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
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &labProcess{cmd: cmd, in: in}
	if err := json.NewDecoder(out).Decode(&l.world); err != nil {
		return nil, fmt.Errorf("lab: %w", errors.Join(err, l.end()))
	}
	return l, nil
}

func (l *labProcess) end() error {
	l.in.Close()
	return l.cmd.Wait()
}
