package alloc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-retry"
)

// maxWaiting is how many picks may wait for one pool, beyond those under way: some 100 ms of work.
const maxWaiting = 16_384

// gatherer allocates from one pool for many at once: what waits travels in one script, and while one
// script is under way the next one gathers. There is no timer, so a lone request waits for nobody.
// First come, first served.
type gatherer struct {
	pool *Pool

	mu      sync.Mutex
	queue   []*waiter          // to be sent, in order of arrival
	picks   int                // that the queue waits for
	sending bool               // somebody sends, and looks at the queue again
	batch   []part             // what is under way
	latest  time.Time          // the latest deadline that anybody has who is in batch, or was in queue
	callOff context.CancelFunc // for what is not under way yet

	free sync.Pool // of *waiter: those whose answer was taken
}

// waiter is one request. What may change is under the gatherer's mutex.
type waiter struct {
	deadline time.Time
	left     int // picks to be sent; 0: it is not in the queue
	under    int // picks under way
	tries    int // while Redis was away
	got      []Allocation
	err      error         // why it got no more; of one that waits, why it still does
	gone     bool          // it is answered
	done     chan struct{} // has one place, for the word that it is
}

// part is what a waiter has in one script.
type part struct {
	*waiter
	n int
}

func (g *gatherer) allocate(ctx context.Context, n int) (got []Allocation, err error) {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		var cancel context.CancelFunc
		ctx, cancel = withBudget(ctx)
		defer cancel()
		deadline, _ = ctx.Deadline()
	}
	w, _ := g.free.Get().(*waiter)
	if w == nil {
		w = &waiter{done: make(chan struct{}, 1)}
	}
	w.deadline, w.left = deadline, n
	lone, err := g.join(w)
	if lone {
		g.alone(ctx, w)
	}
	if err == nil {
		select {
		case <-w.done:
			got, err = w.got, w.err
			*w = waiter{done: w.done}
			g.free.Put(w)
		case <-ctx.Done():
			g.leave(ctx, w)
			got, err = w.got, w.err
		}
	}
	if err != nil {
		err = fmt.Errorf("%s in pool %s: %w", g.pool.store.scripts.allocate.name, g.pool.name, err)
	}
	return got, err
}

// join puts a request in the queue, and sees to it that somebody sends: the request itself, where it
// is lone.
func (g *gatherer) join(w *waiter) (lone bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 && g.picks+w.left > maxWaiting {
		return false, ErrBusy
	}
	g.queue = append(g.queue, w)
	g.picks += w.left
	lone = !g.sending
	if lone {
		g.sending, g.latest = true, time.Time{}
	}
	g.until(w.deadline)
	return lone, nil
}

// alone sends for a request that came when nobody sent, within its own context: that spares waking
// another goroutine, which is most of what a lone request would wait for. Where others come along, or
// what it sent did not run, it waits in the queue like them.
func (g *gatherer) alone(ctx context.Context, w *waiter) {
	defer g.handOver()
	if picks := g.takeAlone(w); picks > 0 {
		got, sent, err := g.sendOne(ctx, &picks, nil)
		g.deliver(got, fateOf(err, sent), err)
	}
}

// takeAlone takes a request from the queue if it is there alone and fits into one script.
func (g *gatherer) takeAlone(w *waiter) (picks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 1 || w.left > maxPerCall {
		return 0
	}
	return g.takeLocked()
}

// handOver leaves the sending to a goroutine of its own, if there is more to be sent.
func (g *gatherer) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sending = len(g.queue) > 0 && g.pool.store.senders.start(g.send)
	if !g.sending {
		for _, w := range slices.Clone(g.queue) {
			g.finish(w, fateNotRun.wrap(redis.ErrClosed))
		}
	}
}

// leave is for a request whose context has ended. What was sent is awaited until the deadline, as
// going away early would only make its outcome unknown.
func (g *gatherer) leave(ctx context.Context, w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := time.Until(w.deadline); w.under > 0 && wait > 0 {
		g.mu.Unlock()
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-w.done:
		case <-timer.C:
		}
		g.mu.Lock()
	}
	switch {
	case w.under > 0:
		g.finish(w, fateUnknown.wrap(context.Cause(ctx)))
	case w.err != nil:
		g.finish(w, fateNotRun.wrap(w.err))
	default:
		g.finish(w, fateNotRun.wrap(context.Cause(ctx)))
	}
}

// finish answers a request. The mutex is held.
func (g *gatherer) finish(w *waiter, err error) {
	if w.gone {
		return
	}
	if w.left > 0 {
		g.queue = slices.DeleteFunc(g.queue, func(other *waiter) bool { return other == w })
		g.picks -= w.left
		w.left = 0
	}
	w.err, w.gone = err, true
	w.done <- struct{}{} // from here on it is its owner's
	if len(g.queue) == 0 && len(g.batch) == 0 && g.callOff != nil {
		g.callOff() // nobody waits for it any more
	}
}

// send sends scripts until the queue is empty.
func (g *gatherer) send() {
	pause := newPause()
	for g.more() {
		g.letJoin()
		got, sent, err := g.sendForAll()
		if again := g.deliver(got, fateOf(err, sent), err); !again {
			pause = newPause()
			continue
		}
		wait, _ := pause.Next()
		time.Sleep(wait)
	}
}

// letJoin lets all come along who are about to ask: as long as more do, it yields. It waits for nobody.
func (g *gatherer) letJoin() {
	for before := -1; ; runtime.Gosched() {
		g.mu.Lock()
		now := g.picks
		g.mu.Unlock()
		if now <= before || now >= maxPerCall {
			return
		}
		before = now
	}
}

// newPause is how long to wait before what did not run is sent again.
func newPause() retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(50*time.Millisecond, retry.NewExponential(10*time.Millisecond)))
}

// more says whether there is something to be sent; if not, the sender is gone.
func (g *gatherer) more() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sending = len(g.queue) > 0
	return g.sending
}

// sendForAll sends one script. What it asks for is taken from the queue when it is about to be written:
// until then all wait, and may leave.
func (g *gatherer) sendForAll() (got []Allocation, sent bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxBudget)
	defer cancel()
	g.mu.Lock()
	g.callOff = cancel
	nobody := len(g.queue) == 0 // they left meanwhile, and had nothing to call off
	g.mu.Unlock()
	if nobody {
		return nil, false, nil
	}
	picks := 0
	return g.sendOne(untilLatest{ctx, g}, &picks, func() { picks = g.take() })
}

// sendOne sends one script for some picks, which before may set.
func (g *gatherer) sendOne(ctx context.Context, picks *int, before func()) (got []Allocation, sent bool, err error) {
	p := g.pool
	// Afterwards: a snapshot taken before the script ran must not count as holding its work.
	defer p.store.changed.Store(true)
	reply, sent, err := p.store.send(ctx, p.store.scripts.allocate, []string{p.keys.eligible, p.keys.meta}, []any{picks}, before)
	if err != nil {
		return nil, sent, err
	}
	list, _ := reply.([]string)
	got, err = allocations(list)
	return got, sent, err
}

// untilLatest is a context with the latest deadline of those it is for, who are not known when it is
// made.
type untilLatest struct {
	context.Context
	g *gatherer
}

func (c untilLatest) Deadline() (time.Time, bool) {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	return c.g.latest, true
}

// take takes from the queue what fits into one script.
func (g *gatherer) take() (picks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.takeLocked()
}

func (g *gatherer) takeLocked() (picks int) {
	if len(g.queue) > 0 { // should all have left, theirs holds on: no deadline at all means to wait for ever
		g.latest = time.Time{}
	}
	for _, w := range g.queue {
		n := min(w.left, maxPerCall-picks)
		if n == 0 {
			break
		}
		g.batch = append(g.batch, part{w, n})
		w.left, w.under = w.left-n, n
		picks += n
		g.until(w.deadline)
	}
	whole := len(g.batch)
	if whole > 0 && g.batch[whole-1].left > 0 {
		whole-- // the rest of it comes first in the next script
	}
	g.queue = slices.Delete(g.queue, 0, whole)
	g.picks -= picks
	return picks
}

// until makes latest no earlier than a deadline. The mutex is held.
func (g *gatherer) until(deadline time.Time) {
	if deadline.After(g.latest) {
		g.latest = deadline
	}
}

// deliver gives everybody what became of the script. again: what did not run waits in front of the
// queue.
func (g *gatherer) deliver(got []Allocation, f fate, err error) (again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() {
		clear(g.batch) // what is answered is not held
		g.batch = g.batch[:0]
	}()
	for _, p := range slices.Backward(g.batch) { // so that the first one is in front
		p.under = 0
		if f.didNotRun() && !p.gone {
			g.putBack(p)
		}
	}
	if f.didNotRun() {
		g.stillWaiting(f, err)
		return len(g.queue) > 0
	}
	for _, p := range g.batch {
		some := min(p.n, len(got))
		if !p.gone && p.got == nil {
			p.got = got[:some:some]
		} else if !p.gone {
			p.got = append(p.got, got[:some]...)
		}
		got = got[some:]
		switch {
		case p.gone:
		case f != fateNone:
			g.finish(p.waiter, f.wrap(err))
		case p.left == 0, some == 0: // an empty pool has no more
			g.finish(p.waiter, nil)
		}
	}
	return false
}

// putBack puts a part in front of the queue, or back to its waiter's there. The mutex is held.
func (g *gatherer) putBack(p part) {
	if p.left == 0 {
		g.queue = slices.Insert(g.queue, 0, p.waiter)
	}
	p.left += p.n
	g.picks += p.n
}

// stillWaiting answers all for whom there is no other try. The mutex is held.
func (g *gatherer) stillWaiting(f fate, err error) {
	g.latest = time.Time{}
	for _, w := range slices.Clone(g.queue) {
		w.err = err
		if f == fateAway {
			w.tries++
		}
		if w.mayTryAgain(f) {
			g.until(w.deadline)
		} else {
			g.finish(w, f.wrap(err))
		}
	}
}

// mayTryAgain says whether a request waits for another try.
func (w *waiter) mayTryAgain(f fate) bool {
	switch {
	case time.Until(w.deadline) <= 0:
		return false
	case f == fateAway:
		return w.tries <= quickTries
	case f == fateNotRun: // somebody else's time was over
		return errors.Is(w.err, context.DeadlineExceeded) || errors.Is(w.err, context.Canceled)
	}
	return true
}
