package sources

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	retry "github.com/sethvargo/go-retry"

	"evenpool/sources/proxyurl"
)

// Options is what a Fetcher needs to know. The zero value is a good one.
type Options struct {
	Limits Limits
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
	// Now is the clock for List.FetchedAt and MaxAge; nil for time.Now.
	Now func() time.Time
}

// tries is how often a fetch is tried.
const tries = 4

// Fetcher reads sources and remembers the last good list of each, in memory. It
// is safe for concurrent use.
type Fetcher struct {
	opts Options

	mu   sync.Mutex
	good map[copyKey]List
}

// copyKey is all of a source that its list depends on: after a change of the
// configuration an old copy may hold what is not wanted any more.
type copyKey struct{ name, url, scheme, allow string }

func keyOf(s Source) copyKey {
	return copyKey{s.Name, s.URL, string(s.Scheme), fmt.Sprint(s.Allow)}
}

// NewFetcher returns a Fetcher that remembers nothing yet.
func NewFetcher(opts Options) *Fetcher {
	opts.Limits = opts.Limits.orDefault()
	opts.Timeout = cmp.Or(opts.Timeout, 30*time.Second)
	opts.RetryWait = cmp.Or(opts.RetryWait, 500*time.Millisecond)
	opts.MaxAge = cmp.Or(opts.MaxAge, 48*time.Hour)
	opts.UserAgent = cmp.Or(opts.UserAgent, "evenpool")
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Fetcher{opts: opts, good: make(map[copyKey]List)}
}

// Fetch reads a source. It blocks for at most Options.Timeout.
//
// A list that cannot be read, is none, is empty, or has shrunk by more than 80 %
// does not replace the last good one: while that is younger than Options.MaxAge,
// Fetch returns it, Stale and with Err set, and no error. Without a good copy it
// returns the error, and the list as far as it was read, for showing. A fetch
// that ctx ends is the caller's doing and always an error.
//
// Errors name the source and are safe to show. Among what they wrap are
// ErrTooLarge, ErrMarkup, ErrUnreadable, ErrEmpty, *StatusError and
// *proxyurl.ForbiddenError.
func (f *Fetcher) Fetch(ctx context.Context, src Source) (List, error) {
	list, err := f.read(ctx, src)
	if ctx.Err() != nil {
		return list, fmt.Errorf("fetch %s: %w", proxyurl.Escape(src.Name, 80), context.Cause(ctx))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.opts.Now()
	for key, l := range f.good { // those of sources that are gone, too
		if now.Sub(l.FetchedAt) > f.opts.MaxAge {
			delete(f.good, key)
		}
	}
	good, known := f.good[keyOf(src)]
	if err == nil && known {
		err = shrunk(list, good)
	}
	if err == nil {
		list.FetchedAt = now
		f.good[keyOf(src)] = list
		return list, nil
	}
	err = &fetchError{source: src.Name, err: err}
	if known {
		good.Stale, good.Err = true, err
		return good, nil
	}
	return list, err
}

// read fetches and parses once, or a few times where the failure may pass.
func (f *Fetcher) read(ctx context.Context, src Source) (list List, err error) {
	open, err := f.opener(src)
	if err != nil {
		return List{Source: src.Name}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, f.opts.Timeout,
		fmt.Errorf("not done within %s: %w", f.opts.Timeout, context.DeadlineExceeded))
	defer cancel()
	// A backoff has state: it is built anew for each fetch.
	backoff := retry.WithMaxRetries(tries-1, retry.WithJitterPercent(25,
		retry.WithCappedDuration(5*time.Second, retry.NewExponential(f.opts.RetryWait))))
	var last error
	err = retry.Do(ctx, backoff, func(ctx context.Context) error {
		list, last = readOnce(ctx, open, src, f.opts.Limits)
		if last != nil && mayPass(last) {
			return retry.RetryableError(last)
		}
		return last
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		if last != nil && !errors.Is(last, context.DeadlineExceeded) && !errors.Is(last, context.Canceled) {
			err = fmt.Errorf("%w; before that: %w", err, last)
		}
	}
	list.Source = src.Name
	return list, err
}

// opener returns what opens the source's list.
type opener func(ctx context.Context) (io.ReadCloser, error)

func (f *Fetcher) opener(src Source) (opener, error) {
	u, err := url.Parse(src.URL)
	if err != nil {
		return nil, errors.New("the URL is not one") // url.Error would repeat a password
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		return func(ctx context.Context) (io.ReadCloser, error) {
			return openFile(ctx, u.Path, f.opts.Limits.MaxBytes)
		}, nil
	case u.Scheme == "file":
		return nil, errors.New("the URL of a file is file:///ABSOLUTE/PATH")
	case (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "":
		return func(ctx context.Context) (io.ReadCloser, error) {
			return f.openWeb(ctx, u, src.Allow)
		}, nil
	}
	return nil, errors.New("the URL is neither http:// nor https:// nor file:///")
}

func readOnce(ctx context.Context, open opener, src Source, limits Limits) (List, error) {
	body, err := open(ctx)
	if err != nil {
		return List{}, err
	}
	defer body.Close()
	return Parse(body, src, limits)
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
