package daemon

import (
	"context"
	"sync"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
)

// evenness keeps what was counted: to look at all members for each request would cost more than
// what they are there for.
type evenness struct {
	mu    sync.Mutex
	shown *api.Evenness
	until time.Time
}

// get gives what was counted, a second ago at the most, or as long ago as counting took fifty times:
// it may take a fiftieth of one core. While the store is away, the last known stands.
func (e *evenness) get(ctx context.Context, store *alloc.Pool) *api.Evenness {
	e.mu.Lock()
	defer e.mu.Unlock()
	began := time.Now()
	if began.Before(e.until) {
		return e.shown
	}
	counts, err := store.Evenness(ctx)
	e.until = time.Now().Add(max(time.Second, 50*time.Since(began)))
	if err == nil {
		e.shown = &api.Evenness{Lowest: counts.Lowest, Highest: counts.Highest, Spread: counts.Spread(),
			Mean: counts.Mean, Gini: counts.Gini, CountedAt: began.UTC()}
	}
	return e.shown
}
