package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/sources/proxyurl"
)

// silentPeer takes what comes and never answers.
func silentPeer(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// watched is an Observer that measures for as long as the test goes on.
func watched(t *testing.T, o ObserverOptions) *Observer {
	observer := NewObserver(o)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := observer.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return observer
}

// TestConnectTimeout: the dial has a shorter limit of its own, which the rest of the
// question does not have.
func TestConnectTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipeProber(silentPeer)
		p.options.ConnectTimeout = testTimeout / 4
		r := one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), HTTP}})
		if wantCheck(t, r.Last(), Timeout, StageResponse, ""); r.Latency != testTimeout {
			t.Errorf("silent: took %v", r.Latency)
		}
		p.options.Dial = func(ctx context.Context, _ proxyurl.Allow, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		r = one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), HTTP}})
		if wantCheck(t, r.Last(), DialTimeout, StageDial, ""); r.Latency != testTimeout/4 {
			t.Errorf("no connection: took %v", r.Latency)
		}
	})
}

// TestH4_TimeLimitsThatPassWhileTheHostIsAwayAreNobodysFault: a limit is moved on.
// Where it was away for long, the question is put again when the overload is over, and
// if it never is, it decides nothing.
func TestH4_TimeLimitsThatPassWhileTheHostIsAwayAreNobodysFault(t *testing.T) {
	for _, test := range []struct {
		name  string
		first int           // how many of the first questions suffer
		away  time.Duration // what each of them does
		want  Outcome
		dials int32
		took  time.Duration
	}{
		{"never away", 0, 0, Timeout, 1, testTimeout},
		{"hardly away", 1, testTimeout/10 - 1, Timeout, 1, testTimeout},
		{"away for a while", 1, testTimeout / 10, Timeout, 1, testTimeout + testTimeout/5},
		{"away once for long", 1, testTimeout / 4, Timeout, 2, 2*testTimeout + testTimeout/2},
		{"always away", 100, testTimeout / 4, LocalOverload, 1 + overloadTries, 3 * (testTimeout + testTimeout/2)},
		{"always away for all of it", 100, testTimeout, LocalOverload, 1 + overloadTries, 3 * 2 * testTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := NewObserver(ObserverOptions{})
			var dials atomic.Int32
			p := New(Options{Timeout: testTimeout, Observer: o, Dial: func(context.Context, proxyurl.Allow, string) (net.Conn, error) {
				if int(dials.Add(1)) <= test.first {
					o.absent.Add(int64(test.away))
				}
				client, server := net.Pipe()
				go silentPeer(server)
				return client, nil
			}})
			began := time.Now()
			r := one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), HTTP}})
			if took := time.Since(began); r.Outcome != test.want || dials.Load() != test.dials || took != test.took || r.Latency > testTimeout {
				t.Errorf("%s: %s after %d dials, %v, latency %v", test.name, r.Outcome, dials.Load(), took, r.Latency)
			}
			// A target may have heard the question: it is not put to it again so soon.
			dials.Store(0)
			if p.ControlTarget(t.Context(), Target{Name: "x", URL: mustURL(t, "http://9.9.9.9/"), Allow: loopback()}); dials.Load() != 1 {
				t.Errorf("%s: a target was asked %d times", test.name, dials.Load())
			}
		})
	}
}

// TestTheMeterSeesThatTheHostWasAway: a real machine, with more to compute than it
// can, is late; the meter rests when there is nothing under way.
func TestTheMeterSeesThatTheHostWasAway(t *testing.T) {
	o := watched(t, ObserverOptions{})
	if o.looked.Load() != 0 {
		t.Error("it measures with nothing under way")
	}
	if err := o.begin(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	for o.looked.Load() == 0 {
		time.Sleep(time.Millisecond) // it was woken
	}
	before := o.absence()
	// As if the process had been stopped: the meter looked long ago.
	o.start = o.start.Add(-time.Second)
	if away := o.absence() - before; away < time.Second-2*meterTick {
		t.Errorf("away for %v", away)
	}
	o.end(false)
}

// TestDialRate: connections are begun at the rate that is set, and the wait counts
// for nobody.
func TestDialRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, perSecond = 100, 20
		p := New(Options{Timeout: testTimeout, Observer: NewObserver(ObserverOptions{DialRate: perSecond}), Dial: failing(&fault{outcome: Refused})})
		began := time.Now()
		var group sync.WaitGroup
		for range n {
			group.Go(func() {
				r := one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), HTTP}})
				if r.Outcome != Refused || r.Latency != 0 {
					t.Errorf("%s after %v", r.Outcome, r.Latency)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took < (n-2)*time.Second/perSecond || took > n*time.Second/perSecond {
			t.Errorf("%d dials took %v", n, took)
		}
		// Who waits for a dial when all ends is told so.
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("stopping"))
		if r := one(p, ctx, mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), HTTP}}); r.Outcome != Cancelled {
			t.Errorf("cancelled: %s", r.Outcome)
		}
	})
}

// TestTLSWaitsForACore: what a handshake waits for this host moves its limit on, up
// to as much again, and does not count as the proxy's latency.
func TestTLSWaitsForACore(t *testing.T) {
	for _, test := range []struct {
		held, took time.Duration
	}{
		{0, testTimeout},
		{time.Second, testTimeout + time.Second},
		{10 * testTimeout, 10*testTimeout + 0}, // twice the limit has passed when it gets a core
	} {
		synctest.Test(t, func(t *testing.T) {
			o := NewObserver(ObserverOptions{})
			p := pipeProber(reading(func(w io.Writer) {
				_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
				_, _ = io.Copy(io.Discard, w.(io.Reader))
			}))
			p.observer = o
			for range cap(o.gate) {
				o.compute()
			}
			time.AfterFunc(test.held, func() {
				for range cap(o.gate) {
					o.rest()
				}
			})
			began := time.Now()
			r := one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), TLS}})
			wantCheck(t, r.Last(), Timeout, StageTLS, "")
			if took := time.Since(began); took != test.took {
				t.Errorf("held for %v: took %v, want %v", test.held, took, test.took)
			}
			if waited := min(test.held, testTimeout); r.Latency != test.took-waited {
				t.Errorf("held for %v: says %v", test.held, r.Latency)
			}
		})
	}
}

// TestConnectionsAreOpenedAFewAtOnce: however many questions begin together, and what
// they wait for that is not the proxy's.
func TestConnectionsAreOpenedAFewAtOnce(t *testing.T) {
	o := NewObserver(ObserverOptions{})
	var open, most, waited atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			waited.Add(int64(o.open(func() {
				if n := open.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Millisecond)
				open.Add(-1)
			})))
		})
	}
	all.Wait()
	if cores := int64(runtime.GOMAXPROCS(0)); most.Load() > cores || waited.Load() == 0 {
		t.Errorf("%d at once on %d cores, waited for %v", most.Load(), cores, time.Duration(waited.Load()))
	}
}

// TestTLSHasABoundOfItsOwn: no more are under way than the window lets in, and those
// that wait do not grow old.
func TestTLSHasABoundOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewObserver(ObserverOptions{})
		o.window.size = 3
		var now, most atomic.Int32
		p := New(Options{Timeout: testTimeout, Observer: o, Dial: func(context.Context, proxyurl.Allow, string) (net.Conn, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(testTimeout / 2)
			now.Add(-1)
			return nil, &fault{outcome: Refused}
		}})
		var group sync.WaitGroup
		for range 12 {
			group.Go(func() {
				r := one(p, t.Context(), mustProxy(t, "http://9.9.9.9:80"), nil, []put{{ownJudge(t), TLS}})
				if r.Outcome != Refused || r.Latency != testTimeout/2 {
					t.Errorf("%s after %v", r.Outcome, r.Latency)
				}
			})
		}
		group.Wait()
		if most.Load() != 3 {
			t.Errorf("%d at once", most.Load())
		}
	})
}

func TestWindow(t *testing.T) {
	w := newWindow(2)
	w.adapt(false)
	if w.size != 2*firstPerCore {
		t.Errorf("it grew to %d though nobody waited", w.size)
	}
	for range 20 {
		w.adapt(true)
	}
	if w.size != 2*leastPerCore {
		t.Errorf("busy: %d", w.size)
	}
	for range w.size {
		if err := w.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// One more waits, until the window grows for it.
	entered := make(chan error)
	go func() { entered <- w.enter(context.Background()) }()
	for {
		w.mu.Lock()
		n := w.waiting.Len()
		w.mu.Unlock()
		if n == 1 {
			break
		}
	}
	w.adapt(false)
	if err := <-entered; err != nil || w.size != 3*leastPerCore {
		t.Errorf("%v, %d", err, w.size)
	}
	// Who gives up leaves no place taken.
	for range w.size - w.used {
		_ = w.enter(t.Context())
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { entered <- w.enter(ctx) }()
	cancel()
	if err := <-entered; !errors.Is(err, context.Canceled) || w.used != w.size || w.waiting.Len() != 0 {
		t.Errorf("%v, %d of %d used, %d wait", err, w.used, w.size, w.waiting.Len())
	}
}

// TestManyHealthyOverTLS: with far more at once than this host can bear, healthy
// proxies are not called dead.
func TestManyHealthyOverTLS(t *testing.T) {
	const n = 400
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	tunnel := func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		server := tls.Server(conn, s.TLS)
		defer server.Close()
		if _, err := http.ReadRequest(bufio.NewReader(server)); err == nil {
			_, _ = io.WriteString(server, goodResponse)
		}
	}
	p := pipeProber(tunnel)
	p.observer = watched(t, ObserverOptions{})
	p.options.Timeout = 500 * time.Millisecond
	j := Judge{Name: "page", HTTPS: mustURL(t, "https://example.com/"), RootCAs: roots, Expect: &Expect{Status: 200, Contains: "hello"}}
	plan := planOf([]put{{j, TLS}})
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			r := p.Round(t.Context(), plan, Job{Endpoint: mustProxy(t, "http://9.9.9.9:80").Endpoint, Schemes: Schemes()[:1]})[0]
			if r.Outcome != OK {
				t.Errorf("%s at %s (%s)", r.Outcome, r.Last().Stage, r.Last().Detail)
			}
		})
	}
	group.Wait()
}
