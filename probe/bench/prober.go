package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"evenpool/probe"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// prober probes one proxy, and says what came out if that is not the truth; "" if it is.
type prober func(context.Context, *lab.Proxy) (wrong string)

// serveProber reads a spec, measures, and writes down what.
func serveProber(role string) error {
	var s spec
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	made := newBare
	if role == "evenpool" {
		made = newEvenpool
	}
	p, err := made(ctx, s)
	if err != nil {
		return err
	}
	m, err := s.measure(ctx, role, p)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// newEvenpool probes as a slice does: a round, and the verdict on it.
func newEvenpool(ctx context.Context, s spec) (prober, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.World.JudgePEM)
	allow := proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8")}
	j := probe.Judge{Name: "bench", Key: s.World.Key, Allow: allow, RootCAs: roots}
	var err error
	if j.HTTP, err = url.Parse(s.World.JudgeHTTP); err != nil {
		return nil, err
	}
	if j.HTTPS, err = url.Parse(s.World.JudgeHTTPS); err != nil {
		return nil, err
	}
	observer := probe.NewObserver(probe.ObserverOptions{})
	go observer.Run(ctx)
	p := probe.New(probe.Options{Timeout: s.Timeout, Observer: observer})
	o := probe.PlanOptions{Judges: []probe.Judge{j}, Require: s.Ask}
	for _, c := range s.Ask {
		check, seen := p.Control(ctx, j, c)
		if check.Outcome != probe.OK {
			return nil, fmt.Errorf("control: %+v", check)
		}
		o.Seen.Add(seen)
	}
	plan, _, err := probe.NewPlan(o)
	if err != nil {
		return nil, err
	}
	rules := &probe.Rules{Schemes: probe.Schemes(), Require: s.Ask}
	// What is not needed while a proxy is waited for is kept off the stack.
	return func(ctx context.Context, proxy *lab.Proxy) string {
		order := orderOf(rules, proxy)
		return wrongIn(rules, proxy, p.Round(ctx, plan, probe.Job{Endpoint: proxy.URL.Endpoint, Schemes: order, Allow: allow}))
	}, nil
}

func orderOf(rules *probe.Rules, proxy *lab.Proxy) []proxyurl.Scheme {
	return rules.TryOrder(probe.Record{Schemes: []proxyurl.Scheme{proxy.Claimed}})
}

// wrongIn compares the verdict with the lab's truth.
func wrongIn(rules *probe.Rules, proxy *lab.Proxy, results []probe.Result) string {
	verdict := rules.Judge(probe.Record{}, probe.Round{At: time.Now(), Results: results}, nil)
	want := proxy.Truth.Eligible
	if len(rules.Require) == 1 {
		want = slices.Contains(proxy.Truth.Capabilities, string(rules.Require[0]))
	}
	if verdict.State == probe.Pass == want {
		return ""
	}
	return fmt.Sprintf("%s: %s, %s", proxy.Behaviour, verdict.State, results[len(results)-1].Outcome)
}

func (s spec) measure(ctx context.Context, role string, p prober) (m measured, err error) {
	if s.Hold {
		return s.hold(ctx, p)
	}
	// In an order in which each kind is spread evenly.
	proxies := interleave(s.World.Proxies)
	quick := slices.DeleteFunc(slices.Clone(proxies), func(p lab.Proxy) bool { return p.Behaviour == "silent" })
	s.all(ctx, p, quick[:min(len(quick), 1000)]) // warm-up
	if s.Profile != "" {
		file, err := os.Create(filepath.Join(s.Profile, fmt.Sprintf("%s-%s.pprof", role, s.Ask[len(s.Ask)-1])))
		if err != nil {
			return m, err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return m, err
		}
		defer pprof.StopCPUProfile()
	}
	used, began := cpuTime(), time.Now()
	wrong := s.all(ctx, p, proxies)
	m.Wall, used = time.Since(began).Seconds(), cpuTime()-used
	m.CPU = math.Round(float64(used.Nanoseconds())/float64(len(proxies))/10) / 100
	m.Wrong = map[string]int{}
	for _, what := range wrong {
		m.Wrong[what]++
	}
	m.Right = 100 - 100*float64(len(wrong))/float64(len(proxies))
	return m, nil
}

// all probes every proxy once, and returns what was wrong.
func (s spec) all(ctx context.Context, p prober, proxies []lab.Proxy) (wrong []string) {
	var mu sync.Mutex
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(s.Concurrency, len(proxies)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(proxies) {
					return
				}
				if what := p(ctx, &proxies[i]); what != "" {
					mu.Lock()
					wrong = append(wrong, what)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return wrong
}

// interleave spreads each kind evenly over the whole.
func interleave(proxies []lab.Proxy) []lab.Proxy {
	const stride = 7919 // a prime: every index comes once unless it divides the length
	if len(proxies)%stride == 0 {
		return proxies
	}
	mixed := make([]lab.Proxy, len(proxies))
	for i := range proxies {
		mixed[i] = proxies[i*stride%len(proxies)]
	}
	return mixed
}

// hold is about what a probe costs in memory while it waits: all are connected,
// have asked, and get no answer.
func (s spec) hold(ctx context.Context, p prober) (m measured, err error) {
	all := s.World.Proxies
	if _, err := s.inFlight(ctx, p, all[:min(50, len(all))]); err != nil { // warm-up
		return m, err
	}
	debug.FreeOSMemory()
	before, err := rss()
	if err != nil {
		return m, err
	}
	after, err := s.inFlight(ctx, p, all)
	m.Bytes = math.Round(float64(after-before) / float64(len(all)))
	return m, err
}

// inFlight has as many probes wait at once as there are proxies, looks at the
// resident memory, and cancels them.
func (s spec) inFlight(ctx context.Context, p prober, proxies []lab.Proxy) (resident int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.all(ctx, p, proxies)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0, err
		}
		if len(open) >= len(proxies) {
			break
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("only %d of %d probes are in flight", len(open), len(proxies))
		}
	}
	time.Sleep(time.Second) // the last ones write their question
	resident, err = rss()
	cancel()
	<-ended
	return resident, err
}

// cpuTime is what this process has used, in user and kernel.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for oneself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rss is the resident memory of this process in bytes.
func rss() (int64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm: %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
