// Command bench measures probing against the lab. `make bench-probe` runs it.
//
// It prints a line per figure: name, value, unit, bar. The bar is what the value
// is held to, "<=2" for at most 2 and ">=2" for at least, or "-" where it is only
// told; if one is missed, that is said and the exit code is 1. The lab with its
// judge, the prober, and the bare prober that it is compared with are processes of
// their own (this program again, in another role), so that the CPU and memory of
// one are not counted for the other. What is compared is measured side by side, in
// turns, each in a new process that warms up first, and the median of the rounds is
// printed.
//
//	probe.cpu.vs_bare        CPU time per candidate of the mix "public", 2,000 at once, asked over http by one
//	                         judge that signs, as a multiple of what the bare prober takes: net.Dialer, one GET,
//	                         read the answer, compare the body, close
//	probe.cpu_per_candidate  the same in microseconds; likewise the bare prober's
//	probe.wall.vs_ideal      time for the same, as a multiple of the silent ones' time limits, 2,000 at once
//	probe.right              verdicts that match the lab's truth, http and TLS required, on the same candidates
//	probe.right.healthy_...  the same on as many of the mix "good", http or TLS required, 2,000 at once
//	probe.tls.vs_bare        CPU time per proof through CONNECT and TLS, as a multiple of what a crypto/tls
//	                         handshake of the same configuration takes through the same proxies
//	probe.bytes_in_flight    growth of resident memory per probe that waits for an answer, 8,000 of them;
//	                         likewise the bare prober's, which has a goroutine for each, too
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"evenpool/probe"
)

type options struct {
	candidates, concurrency, inFlight, proofs, rounds int
	timeout                                           time.Duration
	only                                              string // the beginning of the figures' names that are wanted
	profile                                           string // directory for the prober's CPU profiles; "": none
}

func main() {
	var o options
	flag.IntVar(&o.candidates, "candidates", 10000, "`N` of the lab, of the mix public and then of the mix good")
	flag.IntVar(&o.concurrency, "concurrency", 2000, "probes in flight")
	flag.IntVar(&o.inFlight, "in-flight", 8000, "silent proxies for the memory of a probe in flight")
	flag.IntVar(&o.proofs, "proofs", 2000, "proxies for the TLS proofs")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Second, "of a question")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of what is compared; the median is printed")
	flag.StringVar(&o.only, "only", "", "measure only figures whose name begins so, such as probe.tls")
	flag.StringVar(&o.profile, "profile", "", "`DIR` for CPU profiles of the prober and the bare one")
	flag.Parse()

	var err error
	switch role := flag.Arg(0); role {
	case "":
		err = run(o)
	case "lab": // internal, as the others
		err = serveLab(flag.Args()[1:])
	case "evenpool", "bare":
		err = serveProber(role)
	default:
		err = fmt.Errorf("unknown role %q", role)
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
func run(o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("rounds are at least 1")
	}
	if err := descriptors(o); err != nil {
		return err
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ := strings.Cut(string(text), " ")
		fmt.Fprintf(os.Stderr, "bench: load average %s on %d cores; what others do adds to time, and the lab may be late\n", load, runtime.NumCPU())
	}
	var failed []string
	for _, m := range measurements() {
		if !slices.ContainsFunc(m.figures, func(name string) bool { return strings.HasPrefix(name, o.only) }) {
			continue
		}
		figures, err := m.take(o)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", m.figures[0], err))
			continue
		}
		for _, f := range figures {
			fmt.Println(f)
			if f.missed() {
				failed = append(failed, fmt.Sprintf("%s is %.3f %s, its bar is %s", f.name, f.value, f.unit, f.bar))
			}
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(failed, "; "))
	}
	return nil
}

// descriptors says what is needed where the limit is too low. The soft one is
// raised by Go itself.
func descriptors(o options) error {
	need := uint64(max(o.inFlight, 2*o.concurrency) + 200) // the lab has two for a good proxy's connection
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Max < need {
		return fmt.Errorf("each process needs %d file descriptors, and the hard limit is %d: raise it (ulimit -Hn %d, as root), or take a lower -in-flight and -concurrency",
			need, limit.Max, need)
	}
	return nil
}

// measurement gives several figures.
type measurement struct {
	figures []string // their names
	take    func(options) ([]figure, error)
}

func measurements() []measurement {
	return []measurement{
		{[]string{"probe.cpu.vs_bare", "probe.cpu_per_candidate", "probe.cpu_per_candidate.bare", "probe.wall.vs_ideal", "probe.right"}, public},
		{[]string{"probe.right.healthy_http", "probe.right.healthy_tls"}, healthy},
		{[]string{"probe.tls.vs_bare", "probe.cpu_per_proof", "probe.cpu_per_proof.bare"}, proofs},
		{[]string{"probe.bytes_in_flight", "probe.bytes_in_flight.bare"}, memory},
	}
}

var (
	httpOnly = []probe.Capability{probe.HTTP}
	tlsOnly  = []probe.Capability{probe.TLS}
)

func public(o options) ([]figure, error) {
	lab, err := startLab("public", o.candidates)
	if err != nil {
		return nil, err
	}
	defer lab.end()
	s := spec{World: lab.world, Ask: httpOnly, Concurrency: o.concurrency, Timeout: o.timeout, Profile: o.profile}
	ours, bare, err := sideBySide(s, o.rounds)
	if err != nil {
		return nil, err
	}
	s.Ask = probe.Capabilities()
	both, err := measure("evenpool", s)
	if err != nil {
		return nil, err
	}
	silent := 0
	for _, p := range lab.world.Proxies {
		if p.Behaviour == "silent" {
			silent++
		}
	}
	ideal := float64(silent) * o.timeout.Seconds() / float64(o.concurrency)
	return []figure{
		{"probe.cpu.vs_bare", ratio(ours, bare, cpu), "ratio", "<=1.3"},
		{"probe.cpu_per_candidate", median(ours, cpu), "us", ""},
		{"probe.cpu_per_candidate.bare", median(bare, cpu), "us", ""},
		{"probe.wall.vs_ideal", median(ours, wall) / ideal, "ratio", "<=1.15"},
		{"probe.right", min(both.Right, least(ours, right)), "%", ">=100"},
	}, nil
}

func healthy(o options) ([]figure, error) {
	lab, err := startLab("good", o.candidates)
	if err != nil {
		return nil, err
	}
	defer lab.end()
	var figures []figure
	for _, ask := range [][]probe.Capability{httpOnly, tlsOnly} {
		m, err := measure("evenpool", spec{World: lab.world, Ask: ask, Concurrency: o.concurrency, Timeout: o.timeout})
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{"probe.right.healthy_" + string(ask[0]), m.Right, "%", ">=100"})
	}
	return figures, nil
}

// atOnce is for TLS, which is bound by the cores: more in flight only wait.
const atOnce = 64

func proofs(o options) ([]figure, error) {
	lab, err := startLab("http", o.proofs)
	if err != nil {
		return nil, err
	}
	defer lab.end()
	ours, bare, err := sideBySide(spec{World: lab.world, Ask: tlsOnly, Concurrency: atOnce, Timeout: o.timeout, Profile: o.profile}, o.rounds)
	return []figure{
		{"probe.tls.vs_bare", ratio(ours, bare, cpu), "ratio", "<=1.5"},
		{"probe.cpu_per_proof", median(ours, cpu), "us", ""},
		{"probe.cpu_per_proof.bare", median(bare, cpu), "us", ""},
	}, err
}

func memory(o options) ([]figure, error) {
	lab, err := startLab("silent", o.inFlight)
	if err != nil {
		return nil, err
	}
	defer lab.end()
	// The limit is long here, so that all are in flight when memory is measured.
	ours, bare, err := sideBySide(spec{World: lab.world, Ask: httpOnly, Concurrency: o.inFlight, Timeout: time.Minute, Hold: true}, o.rounds)
	return []figure{
		{"probe.bytes_in_flight", median(ours, bytesInFlight), "bytes", "<=20480"},
		{"probe.bytes_in_flight.bare", median(bare, bytesInFlight), "bytes", ""},
	}, err
}
