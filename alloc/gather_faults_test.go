package alloc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// faulty is a peer that fails in every way there is, at random but the same for a seed. What it
// carries out it numbers, so that nobody can get anybody else's allocation unseen.
type faulty struct {
	peer
	mu      sync.Mutex
	rng     *rand.Rand
	carried int64 // allocations
	refused int64 // allocations that were asked for and not carried out
}

func newFaulty(seed uint64) *faulty {
	f := &faulty{rng: rand.New(rand.NewPCG(seed, 0))}
	f.dial = func(int64) error {
		time.Sleep(time.Duration(f.draw(30)) * time.Millisecond)
		if f.draw(5) == 0 {
			return syscall.ECONNREFUSED
		}
		return nil
	}
	f.greet = func(c *peerConn, command string) {
		if f.draw(10) == 0 {
			c.say("-ERR max number of clients reached\r\n")
			c.Close()
			return
		}
		greet(c, command)
	}
	f.answer = func(c *peerConn, _ int64) { f.fail(c) }
	return f
}

func (f *faulty) draw(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n)
}

// carryOut gives the number of the first allocation.
func (f *faulty) carryOut(c *peerConn) int64 {
	n := c.picks()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.carried += n
	return f.carried - n + 1
}

func (f *faulty) refuse(c *peerConn, why string) {
	f.mu.Lock()
	f.refused += c.picks()
	f.mu.Unlock()
	c.say("-" + why + "\r\n")
}

func (f *faulty) fail(c *peerConn) {
	time.Sleep(time.Duration(f.draw(1+f.draw(200))) * time.Millisecond)
	switch f.draw(16) {
	case 0:
		f.refuse(c, "LOADING Redis is loading the dataset in memory")
	case 1:
		f.refuse(c, "BUSY Redis is busy running a script")
	case 2:
		f.refuse(c, "NOSCRIPT No matching script")
	case 3: // carried out, no reply
		f.carryOut(c)
		c.Close()
	case 4: // carried out, half a reply
		f.carryOut(c)
		c.say("*2\r\n$10\r\nhttp")
		c.Close()
	case 5: // carried out after a while
		time.Sleep(time.Duration(f.draw(1500)) * time.Millisecond)
		c.allocate(f.carryOut(c))
	case 6:
		f.refuse(c, "ERR max number of clients reached")
		c.Close()
	default:
		c.allocate(f.carryOut(c))
	}
}

// TestGatherUnderFaults: whatever becomes of connections, every request is answered within its
// budget, and every allocation that was carried out is one request's, or its outcome was unknown.
func TestGatherUnderFaults(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			// One each can be accounted for to the last; larger ones are cut into parts.
			largest := []int{1, 7, 700}[seed%3]
			synctest.Test(t, func(t *testing.T) { gatherUnderFaults(t, newFaulty(seed), largest) })
		})
	}
}

func gatherUnderFaults(t *testing.T, f *faulty, largest int) {
	pool := f.store(t, 8).Pool("p")
	var (
		all             sync.WaitGroup
		handed, unknown atomic.Int64
		owners          sync.Map // allocation -> request
	)
	ask := func(request, n int, budget time.Duration, give func(cancel func())) {
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		defer cancel()
		give(cancel)
		began := time.Now()
		got, err := pool.Allocate(ctx, n)
		if took := time.Since(began); took > budget {
			t.Errorf("request %d took %v of %v", request, took, budget)
		}
		handed.Add(int64(len(got)))
		for _, a := range got {
			if other, twice := owners.LoadOrStore(a.Count, request); twice {
				t.Errorf("allocation %d was given to requests %d and %d", a.Count, request, other)
			}
		}
		switch {
		case err == nil && len(got) != n:
			t.Errorf("request %d got %d of %d without an error", request, len(got), n)
		case errors.Is(err, ErrOutcomeUnknown):
			unknown.Add(int64(n - len(got)))
		case err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrBusy):
			t.Errorf("request %d: %v", request, err)
		}
	}
	for request := range 400 {
		n := 1 + f.draw(largest)
		budget := time.Duration(1+f.draw(1000)) * time.Millisecond
		starts := time.Duration(f.draw(2000)) * time.Millisecond
		gone := time.Duration(f.draw(4000)) * time.Millisecond
		all.Go(func() {
			time.Sleep(starts)
			ask(request, n, budget, func(cancel func()) { time.AfterFunc(gone, cancel) })
		})
	}
	all.Wait()
	time.Sleep(maxBudget) // what stalls comes to its end
	synctest.Wait()
	if requests, picks := pool.waiting(); requests != 0 || picks != 0 || pool.gather.sending || len(pool.gather.batch) != 0 {
		t.Errorf("%d requests wait for %d picks; sending %t, under way %d", requests, picks, pool.gather.sending, len(pool.gather.batch))
	}
	// Who leaves while a script is under way does not learn that it was refused.
	lost := f.carried - handed.Load()
	if lost < 0 || lost > unknown.Load() || (largest == 1 && lost+f.refused < unknown.Load()) {
		t.Errorf("%d were carried out, %d given and %d unknown", f.carried, handed.Load(), unknown.Load())
	}
	if handed.Load() == 0 || unknown.Load() == 0 {
		t.Errorf("%d given and %d unknown: the peer is too good or too bad to show anything", handed.Load(), unknown.Load())
	}
}

// TestGatherWhileTheStoreIsClosed: requests that come while the store is closed, or afterwards, are
// answered, and nothing is left running.
func TestGatherWhileTheStoreIsClosed(t *testing.T) {
	for range 50 {
		p := &peer{answer: func(c *peerConn, n int64) { c.allocate(n) }}
		store := p.store(t, 2)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range 16 {
			pool := store.Pool(fmt.Sprint(i)) // senders of their own
			all.Go(func() {
				<-begin
				for {
					_, err := pool.Allocate(t.Context(), 1)
					if errors.Is(err, ErrUnavailable) {
						return
					}
					if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
						t.Error(err)
					}
				}
			})
		}
		close(begin)
		time.Sleep(time.Millisecond)
		store.Close()
		all.Wait()
	}
}

// TestGatherAllLeaveBeforeItIsSent: a script for nobody, as when all leave in the last moment, used to
// be awaited for ever when no reply came, and with it all who came later.
func TestGatherAllLeaveBeforeItIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &peer{answer: func(c *peerConn, n int64) {
			if n > 1 {
				c.allocate(n)
				return
			}
			block(c)
		}}
		pool := p.store(t, 2).Pool("p")
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := pool.Allocate(ctx, 1)
			return err
		}
		// The queue empties in the last moment: when there is a connection.
		g := pool.gather
		p.dial = func(n int64) error {
			if n == 1 {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.queue, g.picks = nil, 0
			}
			return nil
		}
		g.latest, g.sending = time.Now().Add(time.Second), true
		g.queue, g.picks = []*waiter{{deadline: g.latest, left: 1, done: make(chan struct{}, 1)}}, 1
		g.pool.store.senders.start(func() {
			got, sent, err := g.sendForAll()
			g.deliver(got, fateOf(err, sent), err)
			g.send()
		})
		time.Sleep(500 * time.Millisecond)
		if err := ask(); err != nil {
			t.Error(err)
		}
	})
}
