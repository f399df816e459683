package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	repeatsFor  = time.Minute // how long the same warning is gathered
	mostRepeats = 1000        // different ones that are remembered
)

// repeats is a handler that writes a warning or an error once a minute, and then how
// often the very same, with the same attributes, has come meanwhile. What is below a
// warning passes: it is progress.
type repeats struct {
	next slog.Handler
	key  string // of the attributes and groups that next has
	*repeated
}

// repeated is what all handlers made from one share.
type repeated struct {
	mu   sync.Mutex
	seen map[string]*repeat
}

type repeat struct {
	next  slog.Handler
	last  slog.Record
	since time.Time
	n     int // after the first
}

func newRepeats(next slog.Handler) *repeats {
	return &repeats{next: next, repeated: &repeated{seen: map[string]*repeat{}}}
}

func (h *repeats) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeats{h.next.WithAttrs(attrs), fmt.Sprintf("%s %q", h.key, attrs), h.repeated}
}

func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{h.next.WithGroup(name), fmt.Sprintf("%s %q{", h.key, name), h.repeated}
}

func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tell(ctx, r.Time.Add(-repeatsFor))
	if r.Level < slog.LevelWarn {
		return h.next.Handle(ctx, r)
	}
	key := fmt.Sprintf("%s %d %q", h.key, r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		key += fmt.Sprintf(" %q", a)
		return true
	})
	if known, found := h.seen[key]; found {
		known.n++
		known.last = r.Clone()
		return nil
	}
	if len(h.seen) < mostRepeats {
		h.seen[key] = &repeat{next: h.next, last: r.Clone(), since: r.Time}
	}
	return h.next.Handle(ctx, r)
}

// tell forgets what was first written at a time or before, and writes how often it came
// since, oldest first.
func (h *repeated) tell(ctx context.Context, until time.Time) {
	var over []*repeat
	for key, known := range h.seen {
		if !known.since.After(until) {
			delete(h.seen, key)
			over = append(over, known)
		}
	}
	slices.SortFunc(over, func(a, b *repeat) int { return a.since.Compare(b.since) })
	for _, known := range over {
		if known.n == 0 {
			continue
		}
		r := known.last
		r.Message = fmt.Sprintf("%s (repeated %d times)", r.Message, known.n)
		known.next.Handle(ctx, r) // a log that cannot be written has nowhere to say so
	}
}

// tellRepeats writes what log has gathered until now: before a process ends.
func tellRepeats(log *slog.Logger) {
	if h, ok := log.Handler().(*repeats); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.tell(context.Background(), time.Now())
	}
}
