package alloc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// allocateWith answers a script of n picks with n allocations, counted from 1.
func (c *peerConn) allocate(from int64) {
	c.peer.runs.Add(1)
	n := c.picks()
	c.say(fmt.Sprintf("*%d\r\n", 2*n+1))
	for i := range n {
		count := strconv.FormatInt(from+i, 10)
		c.say(fmt.Sprintf("$10\r\nhttp://a:1\r\n$%d\r\n%s\r\n", len(count), count))
	}
	c.say("$0\r\n\r\n")
}

// picks is how many allocations a script asks for.
func (c *peerConn) picks() int64 {
	n, _ := strconv.ParseInt(c.command[len(c.command)-1], 10, 64)
	return n
}

// gathering is a gatherer whose Redis is a peer that answers the first script when it is told to.
func gathering(t *testing.T, p *peer) (g *Pool, release func()) {
	t.Helper()
	var picked atomic.Int64
	gate := make(chan struct{})
	answer := p.answer
	p.answer = func(c *peerConn, n int64) {
		if n == 1 {
			<-gate
		}
		if answer != nil {
			answer(c, n)
			return
		}
		c.allocate(picked.Add(c.picks()) - c.picks() + 1)
	}
	release = sync.OnceFunc(func() { close(gate) })
	store := p.store(t, 2)
	t.Cleanup(release)
	return store.Pool("p"), release
}

// waiting is how many requests are in the queue, and how many picks they wait for.
func (p *Pool) waiting() (requests, picks int) {
	p.gather.mu.Lock()
	defer p.gather.mu.Unlock()
	return len(p.gather.queue), p.gather.picks
}

func waits(p *Pool, n int) bool {
	requests, _ := p.waiting()
	return requests == n
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("it did not come to pass: " + what)
		}
	}
}

// TestGatherOneScriptForAllThatWait: what comes while a script is under way travels together, first
// come, first served, whatever each asks for.
func TestGatherOneScriptForAllThatWait(t *testing.T) {
	p := &peer{}
	g, release := gathering(t, p)
	var all sync.WaitGroup
	first := make([]int64, 40)
	ask := func(i int) {
		all.Go(func() {
			got, err := g.Allocate(t.Context(), 1+i%3)
			if err != nil || len(got) != 1+i%3 {
				t.Errorf("request %d: %d allocations, %v", i, len(got), err)
				return
			}
			first[i] = got[0].Count
			for k, a := range got {
				if a.Count != first[i]+int64(k) {
					t.Errorf("request %d: %v", i, got)
				}
			}
		})
	}
	ask(0)
	eventually(t, "the first is sent", func() bool { return p.sends.Load() == 1 })
	for i := 1; i < len(first); i++ {
		ask(i)
		eventually(t, "it waits", func() bool { return waits(g, i) })
	}
	release()
	all.Wait()
	want := int64(1)
	for i, got := range first {
		if got != want {
			t.Errorf("request %d got allocation %d first, want %d", i, got, want)
		}
		want += int64(1 + i%3)
	}
	if sends := p.sends.Load(); sends != 2 {
		t.Errorf("%d scripts, want 2", sends)
	}
}

// TestGatherMoreThanAScriptTakes: a large request is several scripts, and those behind it come after.
func TestGatherMoreThanAScriptTakes(t *testing.T) {
	p := &peer{}
	g, release := gathering(t, p)
	release()
	got, err := g.Allocate(t.Context(), 2*maxPerCall+1)
	if err != nil || len(got) != 2*maxPerCall+1 || p.sends.Load() != 3 {
		t.Fatalf("%d allocations by %d scripts, %v", len(got), p.sends.Load(), err)
	}
	for i, a := range got {
		if a.Count != int64(i+1) {
			t.Fatalf("allocation %d is %v", i, a)
		}
	}
}

// TestR1_GatheredOutcomes: what provably did not run is nobody's allocation and is tried again or
// unavailable; a lost reply is unknown for all that travelled together, and for nobody else.
func TestR1_GatheredOutcomes(t *testing.T) {
	loading := func(c *peerConn, n int64) {
		if n <= 3 {
			c.say("-LOADING Redis is loading the dataset in memory\r\n")
			return
		}
		c.allocate(1)
	}
	for _, test := range []struct {
		name   string
		answer func(c *peerConn, n int64)
		want   error
		runs   int64
	}{
		{"the reply is lost", func(c *peerConn, n int64) {
			if n == 2 {
				c.peer.runs.Add(1)
				c.Close()
				return
			}
			c.allocate(1)
		}, ErrOutcomeUnknown, 2},
		{"it loads its data", loading, nil, 1},
		{"it is refused", func(c *peerConn, n int64) { c.say("-POOLLOST the pool has neither members nor meta\r\n") }, ErrPoolLost, 0},
		{"no room", func(c *peerConn, n int64) { c.say("-OOM command not allowed when used memory > 'maxmemory'.\r\n") }, ErrUnavailable, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &peer{answer: test.answer}
			g, release := gathering(t, p)
			var all sync.WaitGroup
			all.Go(func() { g.Allocate(t.Context(), 1) })
			eventually(t, "the first is sent", func() bool { return p.sends.Load() == 1 })
			for i := range 5 {
				all.Go(func() {
					got, err := g.Allocate(t.Context(), 1)
					if !errors.Is(err, test.want) || (test.want == nil) != (len(got) == 1) {
						t.Errorf("%v, %v; want %v", got, err, test.want)
					}
				})
				eventually(t, "it waits", func() bool { return waits(g, i+1) })
			}
			release()
			all.Wait()
			if runs := p.runs.Load(); runs != test.runs {
				t.Errorf("%d scripts were carried out, want %d", runs, test.runs)
			}
			if got, err := g.Allocate(t.Context(), 1); test.want == ErrOutcomeUnknown && (err != nil || len(got) != 1) {
				t.Errorf("afterwards: %v, %v", got, err)
			}
		})
	}
}

// TestR2_GatheredDeadlines: each leaves at its own, and what leaves unsent is not carried out.
func TestR2_GatheredDeadlines(t *testing.T) {
	p := &peer{}
	g, release := gathering(t, p)
	within := func(budget time.Duration, want error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		defer cancel()
		if got, err := g.Allocate(ctx, 1); !errors.Is(err, want) || got != nil {
			t.Errorf("with %v: %v, %v; want %v", budget, got, err, want)
		}
	}
	var all, short sync.WaitGroup
	short.Go(func() { within(200*time.Millisecond, ErrOutcomeUnknown) })
	eventually(t, "the first is sent", func() bool { return p.sends.Load() == 1 })
	short.Go(func() { within(100*time.Millisecond, ErrUnavailable) })
	all.Go(func() {
		if got, err := g.Allocate(t.Context(), 1); err != nil || len(got) != 1 {
			t.Errorf("one that had time: %v, %v", got, err)
		}
	})
	short.Wait()
	release()
	all.Wait()
	eventually(t, "two scripts are carried out", func() bool { return p.runs.Load() == 2 })
	if sends := p.sends.Load(); sends != 2 {
		t.Errorf("%d scripts were sent, want 2", sends)
	}
}

// TestR2_NoConnection: a dial that hangs is no unknown outcome for whoever cannot wait, and none at
// all for whoever can.
func TestR2_NoConnection(t *testing.T) {
	hang := make(chan struct{})
	p := &peer{}
	p.dial = func(n int64) error {
		if n == 1 {
			<-hang
			return io.ErrUnexpectedEOF
		}
		return nil
	}
	p.answer = func(c *peerConn, n int64) { c.allocate(1) }
	store := p.store(t, 2)
	g := store.Pool("p")
	var all sync.WaitGroup
	all.Go(func() {
		if got, err := g.Allocate(t.Context(), 1); err != nil || len(got) != 1 {
			t.Errorf("one that had time: %v, %v", got, err)
		}
	})
	eventually(t, "it dials", func() bool { return p.dials.Load() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := g.Allocate(ctx, 1); !errors.Is(err, ErrUnavailable) || got != nil {
		t.Errorf("%v, %v; want unavailable", got, err)
	}
	close(hang)
	all.Wait()
}

// TestR9_GatheredAway: Redis being away is answered at once, to all.
func TestR9_GatheredAway(t *testing.T) {
	p := &peer{dial: func(int64) error { return &net.OpError{Op: "connect", Err: syscall.ECONNREFUSED} }}
	g := p.store(t, 2).Pool("p")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if _, err := g.Allocate(ctx, 3); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%v", err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		t.Error("they waited for their deadline")
	}
}

// TestGatherFull: beyond what may wait, a request is told so at once, and nothing grows.
func TestGatherFull(t *testing.T) {
	p := &peer{}
	g, release := gathering(t, p)
	var all sync.WaitGroup
	ask := func(n int) {
		all.Go(func() {
			if got, err := g.Allocate(t.Context(), n); err != nil || len(got) != n {
				t.Errorf("%d allocations, %v; want %d", len(got), err, n)
			}
		})
	}
	ask(1)
	eventually(t, "the first is sent", func() bool { return p.sends.Load() == 1 })
	ask(maxWaiting - 1)
	eventually(t, "it waits", func() bool { return waits(g, 1) })
	ask(1)
	eventually(t, "it waits", func() bool { return waits(g, 2) })
	if got, err := g.Allocate(t.Context(), 1); !errors.Is(err, ErrBusy) || got != nil {
		t.Errorf("%v, %v; want busy", got, err)
	}
	release()
	all.Wait()
	if requests, picks := g.waiting(); requests != 0 || picks != 0 {
		t.Errorf("%d wait for %d", requests, picks)
	}
}
