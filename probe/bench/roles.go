package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

func loopback() proxyurl.Allow { return proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8")} }

// serveLab runs a lab and a judge until standard input ends.
func serveLab(args []string) error {
	var o lab.Options
	for i := 0; i+1 < len(args); i += 2 {
		n, err := strconv.Atoi(args[i+1])
		if err != nil {
			return err
		}
		o.Population = append(o.Population, lab.Spec{Behaviour: lab.Behaviour(args[i]), Count: n})
	}
	l, err := lab.Start(context.Background(), o)
	if err != nil {
		return err
	}
	defer l.Close()
	cert, pem, err := judge.SelfSigned("127.0.0.1")
	if err != nil {
		return err
	}
	w := world{JudgePEM: pem, Proxies: l.Proxies()}
	for _, scheme := range []string{"http", "https"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		at := scheme + "://" + ln.Addr().String() + "/"
		if scheme == "http" {
			w.JudgeHTTP = at
		} else {
			w.JudgeHTTPS = at
			ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}})
		}
		server := judge.NewServer(&judge.Handler{})
		defer server.Close()
		go server.Serve(ln) // ends with Close
	}
	if err := json.NewEncoder(os.Stdout).Encode(w); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// job is a spec made ready.
type job struct {
	spec
	plan    probe.Plan
	rules   probe.Rules
	dialled atomic.Int64 // connections made so far
}

// prober reads a spec, measures and writes the figures.
func prober(measure func(*job) (figures, error)) error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j.spec); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(j.World.JudgePEM)
	plain, err := url.Parse(j.World.JudgeHTTP)
	if err != nil {
		return err
	}
	secure, err := url.Parse(j.World.JudgeHTTPS)
	if err != nil {
		return err
	}
	j.rules = probe.Rules{Schemes: probe.Schemes(), Require: probe.Capabilities()}
	j.plan, _, err = probe.NewPlan(probe.PlanOptions{Require: j.rules.Require,
		Judges: []probe.Judge{{Name: "bench", HTTP: plain, HTTPS: secure, Allow: loopback(), RootCAs: roots}}})
	if err != nil {
		return err
	}
	f, err := measure(&j)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(f)
}

// newProber counts the connections that it makes.
func (j *job) newProber(timeout time.Duration) *probe.Prober {
	return probe.New(probe.Options{Timeout: timeout, Dial: func(ctx context.Context, allow proxyurl.Allow, hostport string) (net.Conn, error) {
		d := proxyurl.Dialer{Allow: allow}
		conn, err := d.DialContext(ctx, "tcp", hostport)
		if err == nil {
			j.dialled.Add(1)
		}
		return conn, err
	}})
}

// all probes every proxy once, as a cycle does, and returns how many verdicts
// were those of the lab's truth.
func (j *job) all(ctx context.Context, p *probe.Prober, proxies []lab.Proxy) (right int) {
	var n atomic.Int64
	next := make(chan lab.Proxy)
	var workers sync.WaitGroup
	for range j.Concurrency {
		workers.Go(func() {
			for proxy := range next {
				order := j.rules.TryOrder(probe.Record{Schemes: []proxyurl.Scheme{proxy.Claimed}})
				round := p.Round(ctx, j.plan, probe.Job{Endpoint: proxy.URL.Endpoint, Schemes: order, Allow: loopback()})
				if (j.rules.Judge(probe.Record{}, probe.Round{Results: round}, nil).State == probe.Pass) == proxy.Truth.Eligible {
					n.Add(1)
				}
			}
		})
	}
	for _, proxy := range proxies {
		next <- proxy
	}
	close(next)
	workers.Wait()
	return int(n.Load())
}

// rate is about the whole population, shuffled well enough by its order: kinds
// behind one another would load the lab unevenly.
func rate(j *job) (figures, error) {
	proxies := interleave(j.World.Proxies)
	p := j.newProber(j.Timeout)
	var quick []lab.Proxy
	for _, proxy := range proxies {
		if proxy.Behaviour != "silent" {
			quick = append(quick, proxy)
		}
	}
	j.all(context.Background(), p, quick) // warm-up

	cpu, began := cpuTime(), time.Now()
	right := j.all(context.Background(), p, proxies)
	wall, used := time.Since(began), cpuTime()-cpu
	n := float64(len(proxies))
	return figures{
		"probe.candidates_per_cpu_second": math.Round(n / used.Seconds()),
		"probe.cpu_per_candidate":         math.Round(float64(used.Microseconds()) / n),
		"probe.wall":                      math.Round(wall.Seconds()*100) / 100,
		"probe.right":                     math.Round(float64(right)/n*10000) / 100,
	}, nil
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
func hold(j *job) (figures, error) {
	if err := j.inFlight(min(50, len(j.World.Proxies)), nil); err != nil { // warm-up
		return nil, err
	}
	debug.FreeOSMemory()
	before, err := rss()
	if err != nil {
		return nil, err
	}
	var after int64
	n := len(j.World.Proxies)
	err = j.inFlight(n, func() (err error) {
		after, err = rss()
		return err
	})
	return figures{"probe.bytes_in_flight": math.Round(float64(after-before) / float64(n))}, err
}

// inFlight has n probes wait at once, calls then, and cancels them.
func (j *job) inFlight(n int, then func() error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	j.dialled.Store(0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		j.all(ctx, j.newProber(j.Timeout), j.World.Proxies[:n])
	}()
	for deadline := time.Now().Add(30 * time.Second); j.dialled.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d probes are in flight", j.dialled.Load(), n)
		}
	}
	time.Sleep(500 * time.Millisecond) // the last ones write their question
	var err error
	if then != nil {
		err = then()
	}
	cancel()
	<-ended
	return err
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
