package sources

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

func TestRetryAfterIsRead(t *testing.T) {
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text, date string
		want       time.Duration
	}{
		{"", "", 0},
		{"0", "", 0},
		{"-5", "", 0},
		{"120", "", 2 * time.Minute},
		{"86400", "", 24 * time.Hour},
		{"86401", "", 24 * time.Hour},
		{"99999999999999999999999", "", 24 * time.Hour},
		{"-99999999999999999999999", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"Sat, 22 Aug 2026 10:00:30 GMT", "", 30 * time.Second},
		{"Sat, 22 Aug 2026 09:59:59 GMT", "", 0},
		{"Sat, 22 Aug 2054 10:00:00 GMT", "", 24 * time.Hour},
		{"Saturday, 22-Aug-26 10:01:00 GMT", "", time.Minute}, // RFC 850
		// A server whose clock is a day behind means its own.
		{"Fri, 21 Aug 2026 10:00:30 GMT", "Fri, 21 Aug 2026 10:00:00 GMT", 30 * time.Second},
		{"Sat, 22 Aug 2026 10:00:30 GMT", "no date", 30 * time.Second},
	} {
		h := http.Header{"Retry-After": {c.text}, "Date": {c.date}}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%q of %q: %s, want %s", c.text, c.date, got, c.want)
		}
	}
}

// busy is a server that answers with a status and a Retry-After until it is told
// otherwise.
type busy struct {
	code  atomic.Int32
	after atomic.Value
	hits  atomic.Int32
}

func (b *busy) set(code int32, after string) {
	b.after.Store(after)
	b.code.Store(code)
}

func (b *busy) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	b.hits.Add(1)
	w.Header()["Date"] = nil // it is the real one's, and the test has its own
	if after := b.after.Load().(string); after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(int(b.code.Load()))
	io.WriteString(w, listOf(100))
}

func TestRetryAfterIsObeyed(t *testing.T) {
	eachKeeping(t, func(t *testing.T, opts Options) {
		b := &busy{}
		src := source(serve(t, b))
		now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
		opts.Now = func() time.Time { return now }
		f := NewFetcher(opts)
		restart := func() {
			if opts.Dir != "" {
				f = NewFetcher(opts)
			}
		}

		// Without a copy it is an error.
		b.set(429, "3600")
		until := now.Add(time.Hour)
		_, err := f.Fetch(t.Context(), src)
		wait, status := (*WaitError)(nil), (*StatusError)(nil)
		if !errors.As(err, &wait) || !wait.Until.Equal(until) || !errors.As(err, &status) ||
			err.Error() != "fetch web: status 429 (Too Many Requests); the server asks to be left alone until 2026-08-22T11:00:00Z" {
			t.Errorf("%v", err)
		}
		b.set(200, "")
		for range 3 {
			restart()
			now = now.Add(19 * time.Minute)
			_, err := f.Fetch(t.Context(), src)
			if !errors.As(err, &wait) || !wait.Until.Equal(until) ||
				err.Error() != "fetch web: the server asks to be left alone until 2026-08-22T11:00:00Z" {
				t.Errorf("%v", err)
			}
		}
		if n := b.hits.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		now = until
		restart()
		if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 100 || l.CopyErr != nil {
			t.Errorf("when it is over: %d candidates, %v, %v", len(l.Candidates), err, l.CopyErr)
		}

		// With a copy it is stale.
		b.set(503, "Sat, 22 Aug 2026 12:30:00 GMT")
		for range 2 {
			l, err := f.Fetch(t.Context(), src)
			if err != nil || !l.Stale || len(l.Candidates) != 100 || !errors.As(l.Err, &wait) {
				t.Errorf("%d candidates, stale %t, %v, %v", len(l.Candidates), l.Stale, l.Err, err)
			}
			restart()
		}
		if n := b.hits.Load(); n != 3 {
			t.Errorf("asked %d times, want 3", n)
		}
		if l, ok := f.Load(src); !ok || len(l.Candidates) != 100 {
			t.Errorf("loaded: %d candidates, %v", len(l.Candidates), l.CopyErr)
		}

		// What is refused for good is not asked again, and may say when to come back.
		now = now.Add(24 * time.Hour)
		b.set(403, "60")
		if l, err := f.Fetch(t.Context(), src); err != nil || !errors.As(l.Err, &wait) || !wait.Until.Equal(now.Add(time.Minute)) {
			t.Errorf("403: %v, %v", l.Err, err)
		}
		if n := b.hits.Load(); n != 4 {
			t.Errorf("asked %d times, want 4", n)
		}
		// And a list that is there is a list whatever comes with it.
		now = now.Add(time.Hour)
		b.set(200, "3600")
		for range 2 {
			if l, err := f.Fetch(t.Context(), src); err != nil || l.Stale {
				t.Errorf("200: stale %t, %v, %v", l.Stale, l.Err, err)
			}
		}
	})
}

// A short wait is part of the fetch, and a try like any other.
func TestAShortRetryAfterIsWaitedFor(t *testing.T) {
	var hits atomic.Int32
	var first time.Time
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if hits.Add(1) == 1 {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
			return
		}
		if waited := time.Since(first); waited < time.Second {
			t.Errorf("asked again after %s", waited)
		}
		io.WriteString(w, listOf(3))
	}))
	l, err := NewFetcher(Options{RetryWait: time.Millisecond}).Fetch(t.Context(), source(url))
	if err != nil || len(l.Candidates) != 3 || hits.Load() != 2 {
		t.Errorf("%d candidates, %v, asked %d times", len(l.Candidates), err, hits.Load())
	}
	// The source's own timeout decides what is short.
	hits.Store(0)
	src := source(url)
	src.Timeout = 900 * time.Millisecond
	start := time.Now()
	var wait *WaitError
	if _, err := NewFetcher(Options{}).Fetch(t.Context(), src); !errors.As(err, &wait) || time.Since(start) > 800*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

// A clock that was wrong, or a file that was changed, keeps no list away for ever.
func TestAWaitOnDiskIsBounded(t *testing.T) {
	b := &busy{}
	b.set(429, "86400")
	src := source(serve(t, b))
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	opts := Options{Dir: t.TempDir(), Now: func() time.Time { return now }}
	if _, err := NewFetcher(opts).Fetch(t.Context(), src); err == nil {
		t.Fatal("no error")
	}
	now = now.AddDate(-20, 0, 0)
	var wait *WaitError
	if _, err := NewFetcher(opts).Fetch(t.Context(), src); !errors.As(err, &wait) || !wait.Until.Equal(now.Add(24*time.Hour)) {
		t.Errorf("%v", err)
	}
}
