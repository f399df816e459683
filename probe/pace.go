package probe

import (
	"container/list"
	"context"
	"sync"
)

// window bounds how many TLS questions are under way at once. Its size follows what
// the host can bear: it grows while it is full and cores are idle, since then the
// questions wait for the network, and shrinks while the cores are busy, since then
// they wait for us.
type window struct {
	mu      sync.Mutex
	size    int
	least   int
	used    int
	full    bool      // somebody had to wait since the last adapt
	waiting list.List // of chan struct{}, closed when a place is given
}

const (
	leastPerCore = 16 // TLS questions: a few milliseconds of computing each
	firstPerCore = 32
	largest      = 1 << 20
)

func newWindow(cores int) *window {
	return &window{size: firstPerCore * cores, least: leastPerCore * cores}
}

// enter waits for a place, in the order of coming.
func (w *window) enter(ctx context.Context) error {
	w.mu.Lock()
	if w.used < w.size && w.waiting.Len() == 0 {
		w.used++
		w.mu.Unlock()
		return nil
	}
	w.full = true
	place := make(chan struct{})
	at := w.waiting.PushBack(place)
	w.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-place: // given meanwhile
		w.used--
		w.give()
	default:
		w.waiting.Remove(at)
	}
	return context.Cause(ctx)
}

func (w *window) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used--
	w.give()
}

// give lets in who waits, as far as there are places.
func (w *window) give() {
	for w.used < w.size {
		first := w.waiting.Front()
		if first == nil {
			return
		}
		w.waiting.Remove(first)
		w.used++
		close(first.Value.(chan struct{}))
	}
}

func (w *window) adapt(busy bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case busy:
		w.size = max(w.least, w.size*3/4)
	case w.full || w.waiting.Len() > 0:
		w.size = min(w.size*3/2, largest)
	}
	w.full = false
	w.give()
}
