package sources

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"evenpool/sources/proxyurl"
)

// Options is what a Fetcher needs to know. The zero value is a good one.
type Options struct {
	Limits Limits
	// Dir is the folder that keeps the last good copy of each source for the next
	// process, and spares this one holding it in memory. It is made, for its owner
	// alone, when there is something to keep; one Fetcher at a time may have it. ""
	// keeps copies in memory.
	Dir string
	// Timeout is for one fetch, all tries of it; default 30 s.
	Timeout time.Duration
	// RetryWait is the wait before the second try; it doubles, with jitter, up to
	// 5 s. Default 500 ms.
	RetryWait time.Duration
	// MaxAge is how long a good copy stands in for a list that is broken. Then the
	// list is gone, or has really shrunk. Default 48 h, so that a list that is
	// fetched daily may fail once.
	MaxAge time.Duration
	// UserAgent is sent to web servers; default "evenpool".
	UserAgent string
	// RootCAs verifies web servers; nil for the system's.
	RootCAs *x509.CertPool
	// Resolver resolves the names of web servers; nil for the system's.
	Resolver proxyurl.Resolver
	// Now is the clock for List.FetchedAt, MaxAge and WaitError; nil for time.Now.
	Now func() time.Time
}

// Fetcher reads sources and keeps the last good list of each. It is safe for
// concurrent use.
type Fetcher struct {
	opts   Options
	copies copies

	mu     sync.Mutex
	slots  map[string]*slot // by keyOf
	pruned time.Time        // when the folder was last rid of what is old
}

// NewFetcher returns a Fetcher that remembers nothing but what is in Options.Dir.
func NewFetcher(opts Options) *Fetcher {
	opts.Limits = opts.Limits.orDefault()
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.RetryWait = cmp.Or(opts.RetryWait, 500*time.Millisecond)
	opts.MaxAge = cmp.Or(opts.MaxAge, 48*time.Hour)
	opts.UserAgent = cmp.Or(opts.UserAgent, "evenpool")
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Fetcher{opts: opts, copies: copies{dir: opts.Dir}, slots: make(map[string]*slot)}
}

// Fetch reads a source. It blocks for at most the source's Timeout, or else
// Options.Timeout; a second fetch of the same source waits for the first.
//
// A list that cannot be read, is none, is empty, or has shrunk by more than 80 %
// does not replace the last good one: while that is younger than Options.MaxAge,
// Fetch returns it, Stale and with Err set, and no error. Without a good copy it
// returns the error, and the list as far as it was read, for showing. A fetch
// that ctx ends is the caller's doing and always an error.
//
// Where a server has asked to be left alone for longer than the fetch can wait,
// the error is a *WaitError, and until that time Fetch asks for nothing.
//
// Errors name the source and are safe to show. Among what they wrap are
// ErrTooLarge, ErrMarkup, ErrUnreadable, ErrEmpty, ErrShrunk, *StatusError,
// *WaitError and *proxyurl.ForbiddenError.
func (f *Fetcher) Fetch(ctx context.Context, src Source) (List, error) {
	s, err := f.acquire(ctx, src)
	if err != nil {
		return List{Source: src.Name}, ended(ctx, src)
	}
	defer f.release(s)
	list, err := f.refresh(ctx, src, s)
	if ctx.Err() != nil {
		return list, ended(ctx, src)
	}
	if err == nil {
		return list, nil
	}
	err = &fetchError{source: src.Name, err: err}
	if s.expire(f.opts.Now(), f.opts.MaxAge); s.meta.hasCopy() {
		good, unusable := f.open(src, s)
		if unusable == nil {
			good.Stale, good.Err = true, err
			return good, nil
		}
		s.drop(unusable)
	}
	list.CopyErr = cmp.Or(list.CopyErr, s.unusable)
	return list, err
}

// Load returns the good copy of a source as a Fetch would, without asking for
// anything: after a restart it stands in for a list that need not be fetched yet.
// ok is false when there is none that is young enough and whole; CopyErr then says
// what was wrong with the one there was. A fetch of the source that is under way
// is waited for.
func (f *Fetcher) Load(src Source) (list List, ok bool) {
	s, err := f.acquire(context.Background(), src)
	if err != nil {
		return List{Source: src.Name}, false
	}
	defer f.release(s)
	if s.expire(f.opts.Now(), f.opts.MaxAge); s.meta.hasCopy() {
		good, unusable := f.open(src, s)
		if unusable == nil {
			return good, true
		}
		s.drop(unusable)
	}
	return List{Source: src.Name, CopyErr: s.unusable}, false
}

// refresh asks for a source's list and keeps it if it is good.
func (f *Fetcher) refresh(ctx context.Context, src Source, s *slot) (List, error) {
	timeout := cmp.Or(src.Timeout, f.opts.Timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("not done within %s: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	now := f.opts.Now()
	if now.Before(s.meta.WaitUntil) {
		return List{Source: src.Name}, &WaitError{Until: s.meta.WaitUntil}
	}
	s.expire(now, f.opts.MaxAge)
	got, err := f.read(ctx, src, f.validators(s))
	if errors.Is(err, errNotModified) {
		list, unusable := f.open(src, s)
		if unusable == nil {
			return f.keepAgain(s, list), nil
		}
		// What the server means is not here any more: all of it, please.
		s.drop(unusable)
		got, err = f.read(ctx, src, validators{})
	}
	defer got.text.discard()
	if s.meta.hasCopy() && err == nil {
		s.expire(f.opts.Now(), f.opts.MaxAge)
		err = shrunk(got.list, s.meta.Candidates)
	}
	if err != nil {
		if wait := (*WaitError)(nil); errors.As(err, &wait) {
			got.list.CopyErr = f.keepWait(s, wait.Until)
		}
		return got.list, err
	}
	return f.keep(s, got), nil
}

func (f *Fetcher) limitsFor(src Source) Limits {
	limits := f.opts.Limits
	limits.MaxBytes = cmp.Or(src.MaxBytes, limits.MaxBytes)
	limits.MaxCandidates = cmp.Or(src.MaxCandidates, limits.MaxCandidates)
	return limits
}

// ended is the error of a fetch whose context the caller has ended.
func ended(ctx context.Context, src Source) error {
	return fmt.Errorf("fetch %s: %w", proxyurl.Escape(src.Name, 80), context.Cause(ctx))
}

// fetchError names the source, and shows its cause escaped: it may hold what a
// server sent.
type fetchError struct {
	source string
	err    error
}

func (e *fetchError) Error() string {
	return fmt.Sprintf("fetch %s: %s", proxyurl.Escape(e.source, 80), proxyurl.Escape(e.err.Error(), 400))
}

func (e *fetchError) Unwrap() error { return e.err }
