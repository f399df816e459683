package sources

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/sources/proxyurl"
)

// listOf returns a list of n candidates.
func listOf(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("1.2." + string('0'+rune(i/10%10)) + "." + string('0'+rune(i%10)) + ":8080\n")
	}
	return b.String()
}

// page is what a test's web server answers, and may be changed while it runs.
type page struct {
	mu   sync.Mutex
	code int
	body string
	hits atomic.Int32
}

func (p *page) set(code int, body string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code, p.body = code, body
}

func (p *page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	p.hits.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	w.WriteHeader(p.code)
	w.Write([]byte(p.body))
}

func TestL6_TheLastGoodCopyStaysWhateverBreaks(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	f := NewFetcher(Options{RetryWait: time.Millisecond, Now: func() time.Time { return now }})

	p.set(200, listOf(100))
	good, err := f.Fetch(t.Context(), src)
	if err != nil || len(good.Candidates) != 100 || good.Stale || good.Err != nil || !good.FetchedAt.Equal(now) || good.Source != "web" {
		t.Fatalf("the first fetch: %d candidates, stale %t, at %s, %v, %v", len(good.Candidates), good.Stale, good.FetchedAt, good.Err, err)
	}
	fetchedAt := now
	for _, c := range []struct {
		name string
		code int
		body string
		want string
	}{
		{"not found", 404, "", "fetch web: status 404 (Not Found)"},
		{"busy", 503, "", "fetch web: status 503 (Service Unavailable)"},
		{"an HTML page", 200, "<!doctype html>\n<p>\n", "fetch web: a page of HTML or XML in place of a list"},
		{"a thousand lines of Array", 200, strings.Repeat("Array\n", 1000), "fetch web: most lines are unreadable: 1000 of 1000 (unparseable 1000)"},
		{"an empty body", 200, "", "fetch web: the list names no candidate"},
		{"one newline", 200, "\n", "fetch web: the list names no candidate"},
		{"a tenth of it", 200, listOf(10), "fetch web: the list shrank by more than 80 %: from 100 candidates to 10"},
	} {
		now = now.Add(time.Hour)
		p.set(c.code, c.body)
		l, err := f.Fetch(t.Context(), src)
		if err != nil || !l.Stale || l.Err == nil || l.Err.Error() != c.want {
			t.Errorf("%s: stale %t, %v, %v; want %s", c.name, l.Stale, l.Err, err, c.want)
		}
		if len(l.Candidates) != 100 || !l.FetchedAt.Equal(fetchedAt) {
			t.Errorf("%s: %d candidates of %s", c.name, len(l.Candidates), l.FetchedAt)
		}
	}
	// A good list again: it takes the old one's place, and nothing is stale.
	p.set(200, listOf(20))
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 20 || l.Stale || l.Err != nil || !l.FetchedAt.Equal(now) {
		t.Errorf("a good list again: %d, stale %t, %v, %v", len(l.Candidates), l.Stale, l.Err, err)
	}
	p.set(404, "")
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 20 || !l.Stale {
		t.Errorf("the copy of the new list: %d, stale %t, %v", len(l.Candidates), l.Stale, err)
	}
}

func TestL6_AnOldCopyIsGivenUp(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	f := NewFetcher(Options{MaxAge: 24 * time.Hour, Now: func() time.Time { return now }})
	p.set(200, listOf(100))
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	p.set(404, "")
	now = now.Add(24 * time.Hour)
	if l, err := f.Fetch(t.Context(), src); err != nil || !l.Stale {
		t.Errorf("at its last moment: stale %t, %v", l.Stale, err)
	}
	now = now.Add(time.Second)
	var status *StatusError
	if l, err := f.Fetch(t.Context(), src); !errors.As(err, &status) || status.Code != 404 || len(l.Candidates) != 0 {
		t.Errorf("after it: %v, %d candidates, want status 404 and none", err, len(l.Candidates))
	}

	// A list that stays short is taken at its word in the end.
	p.set(200, listOf(100))
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	p.set(200, listOf(1))
	if l, err := f.Fetch(t.Context(), src); err != nil || !errors.Is(l.Err, ErrShrunk) {
		t.Errorf("shrunk: %v, %v", l.Err, err)
	}
	now = now.Add(25 * time.Hour)
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 1 || l.Stale {
		t.Errorf("still short after the copy's time: %d candidates, stale %t, %v", len(l.Candidates), l.Stale, err)
	}
}

func TestL6_WithoutACopyABrokenListIsAnError(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"page.html":  {"<html>\n<p>\n", ErrMarkup},
		"array.txt":  {strings.Repeat("Array\n", 10), ErrUnreadable},
		"empty.txt":  {"", ErrEmpty},
		"vmess.txt":  {"vmess://x\n", ErrEmpty},
		"absent.txt": {"", os.ErrNotExist},
	} {
		path := filepath.Join(dir, name)
		if !errors.Is(c.want, os.ErrNotExist) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source("file://"+path))
		if !errors.Is(err, c.want) || l.Stale || l.Source != "web" {
			t.Errorf("%s: %v, stale %t, source %q; want %v", name, err, l.Stale, l.Source, c.want)
		}
		if want := strings.Count(c.text, "\n"); l.Records != want {
			t.Errorf("%s: %d records, want %d for showing", name, l.Records, want)
		}
	}
}

// A copy belongs to the source as it was configured.
func TestACopyIsNotKeptForAnotherSource(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	f := NewFetcher(Options{})
	p.set(200, listOf(10)+"127.0.0.1:80\n")
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 11 {
		t.Fatalf("%d candidates, %v", len(l.Candidates), err)
	}
	p.set(404, "")
	for name, change := range map[string]func(*Source){
		"name":   func(s *Source) { s.Name = "other" },
		"URL":    func(s *Source) { s.URL += "?x" },
		"scheme": func(s *Source) { s.Scheme = proxyurl.SOCKS5 },
		"allow":  func(s *Source) { s.Allow = allow("127.0.0.0/9") },
	} {
		other := src
		change(&other)
		if _, err := f.Fetch(t.Context(), other); err == nil {
			t.Errorf("another %s got the copy", name)
		}
	}
	if l, err := f.Fetch(t.Context(), src); err != nil || !l.Stale {
		t.Errorf("the same source: stale %t, %v", l.Stale, err)
	}
}

func TestFetchTriesAgainWhatMayPass(t *testing.T) {
	for _, c := range []struct {
		name string
		// serve answers the n-th request, from 1.
		serve func(w http.ResponseWriter, n int32)
		hits  int32
		want  string // the error, "" for a good list
	}{
		{"503 twice", func(w http.ResponseWriter, n int32) {
			if n < 3 {
				w.WriteHeader(503)
			}
			w.Write([]byte(listOf(3)))
		}, 3, ""},
		{"a body cut half-way", func(w http.ResponseWriter, n int32) {
			if n == 1 {
				w.Header().Set("Content-Length", "100")
			}
			w.Write([]byte(listOf(3)))
		}, 2, ""},
		{"a connection cut", func(w http.ResponseWriter, n int32) {
			if n == 1 {
				panic(http.ErrAbortHandler)
			}
			w.Write([]byte(listOf(3)))
		}, 2, ""},
		{"500 for ever", func(w http.ResponseWriter, _ int32) { w.WriteHeader(500) }, 4, "fetch web: status 500 (Internal Server Error)"},
		{"429 for ever", func(w http.ResponseWriter, _ int32) { w.WriteHeader(429) }, 4, "fetch web: status 429 (Too Many Requests)"},
		{"403", func(w http.ResponseWriter, _ int32) { w.WriteHeader(403) }, 1, "fetch web: status 403 (Forbidden)"},
		{"404", func(w http.ResponseWriter, _ int32) { w.WriteHeader(404) }, 1, "fetch web: status 404 (Not Found)"},
		{"410", func(w http.ResponseWriter, _ int32) { w.WriteHeader(410) }, 1, "fetch web: status 410 (Gone)"},
		{"204", func(w http.ResponseWriter, _ int32) { w.WriteHeader(204) }, 1, "fetch web: status 204 (No Content)"},
		{"299", func(w http.ResponseWriter, _ int32) { w.WriteHeader(299) }, 1, "fetch web: status 299"},
		{"a broken list", func(w http.ResponseWriter, _ int32) { w.Write([]byte("<html>")) }, 1,
			"fetch web: a page of HTML or XML in place of a list"},
	} {
		var hits atomic.Int32
		src := source(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.serve(w, hits.Add(1)) })))
		l, err := NewFetcher(Options{RetryWait: time.Millisecond}).Fetch(t.Context(), src)
		switch {
		case c.want == "" && (err != nil || len(l.Candidates) != 3):
			t.Errorf("%s: %d candidates, %v", c.name, len(l.Candidates), err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		if n := hits.Load(); n != c.hits {
			t.Errorf("%s: asked %d times, want %d", c.name, n, c.hits)
		}
	}
}

// The waits grow, are capped and jittered; the clock is the test's.
func TestFetchWaitsBetweenTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source("http://list.example.org/")
		start := time.Now()
		_, err := NewFetcher(Options{Resolver: failing{}}).Fetch(t.Context(), src)
		took := time.Since(start)
		if err == nil || !strings.Contains(err.Error(), "server misbehaving") {
			t.Errorf("got %v", err)
		}
		// 500 ms, 1 s, 2 s, a quarter more or less.
		if nominal := 3500 * time.Millisecond; took < nominal*3/4 || took > nominal*5/4 || took == nominal {
			t.Errorf("took %s, want some %s", took, nominal)
		}
		start = time.Now()
		_, err = NewFetcher(Options{Resolver: failing{}, RetryWait: time.Minute}).Fetch(t.Context(), src)
		if took, want := time.Since(start), 15*time.Second; err == nil || took > want*5/4 {
			t.Errorf("with long waits: %s, %v; want some %s", took, err, want)
		}
	})
}

func TestL5_AFetchEndsInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source("http://list.example.org/")
		start := time.Now()
		_, err := NewFetcher(Options{Resolver: silent{}, Timeout: 5 * time.Second}).Fetch(t.Context(), src)
		want := "fetch web: not done within 5s: context deadline exceeded"
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || err.Error() != want || took != 5*time.Second {
			t.Errorf("%v after %s, want %s after 5s", err, took, want)
		}
		// By default 30 s, for all tries together.
		start = time.Now()
		_, err = NewFetcher(Options{Resolver: silent{}}).Fetch(t.Context(), src)
		want = "fetch web: not done within 30s: context deadline exceeded"
		if took := time.Since(start); err == nil || err.Error() != want || took != 30*time.Second {
			t.Errorf("%v after %s, want %s after 30s", err, took, want)
		}
		// What went wrong before is said, too.
		_, err = NewFetcher(Options{Resolver: failing{}, Timeout: 100 * time.Millisecond}).Fetch(t.Context(), src)
		want = "fetch web: not done within 100ms: context deadline exceeded; before that: lookup list.example.org: server misbehaving"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

func TestCancellationIsNotHeldAgainstTheSource(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	f := NewFetcher(Options{})
	p.set(200, listOf(10))
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	stopping := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopping)
	l, err := f.Fetch(ctx, src)
	if !errors.Is(err, stopping) || err.Error() != "fetch web: stopping" || l.Stale {
		t.Errorf("%v, stale %t; want the cancellation's cause and no copy", err, l.Stale)
	}
}

func TestFetchIsSafeForConcurrentUse(t *testing.T) {
	p := &page{}
	p.set(200, listOf(50))
	url := serve(t, p)
	f := NewFetcher(Options{})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			src := source(url)
			src.Name += string('a' + rune(i%4))
			if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 50 {
				t.Errorf("%d candidates, %v", len(l.Candidates), err)
			}
		})
	}
	wg.Wait()
}

func TestAURLThatIsNone(t *testing.T) {
	for url, want := range map[string]string{
		"":                       "fetch web: the URL is neither http:// nor https:// nor file:///",
		"list.txt":               "fetch web: the URL is neither http:// nor https:// nor file:///",
		"ftp://example.org/list": "fetch web: the URL is neither http:// nor https:// nor file:///",
		"http:///list":           "fetch web: the URL is neither http:// nor https:// nor file:///",
		"file://":                "fetch web: the URL of a file is file:///ABSOLUTE/PATH",
		"file:list.txt":          "fetch web: the URL of a file is file:///ABSOLUTE/PATH",
		"file://list.txt":        "fetch web: the URL of a file is file:///ABSOLUTE/PATH",
		"file://host/list.txt":   "fetch web: the URL of a file is file:///ABSOLUTE/PATH",
		"http://joe:hunter2@[::": "fetch web: the URL is not one",
	} {
		_, err := NewFetcher(Options{}).Fetch(t.Context(), source(url))
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", url, err, want)
		}
	}
}

func TestP7_FetchErrorsAreSafeToShow(t *testing.T) {
	src := source(serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "x\u202e")
	})))
	src.Name = "a\x1bb"
	_, err := NewFetcher(Options{}).Fetch(t.Context(), src)
	if err == nil || err.Error() != `fetch a\x1bb: content encoding x\\u202e, which was not asked for` {
		t.Errorf("%v", err)
	}
}

// What a caller keeps of a list does not change under it.
func TestTheGoodCopyIsNotMarkedStale(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	f := NewFetcher(Options{})
	p.set(200, listOf(5))
	first, err := f.Fetch(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(show(first.Candidates))
	p.set(404, "")
	if l, _ := f.Fetch(t.Context(), src); !l.Stale {
		t.Error("not stale")
	}
	p.set(200, listOf(5))
	if l, _ := f.Fetch(t.Context(), src); l.Stale || l.Err != nil || first.Stale || !slices.Equal(before, show(first.Candidates)) {
		t.Errorf("stale %t, %v; the first: stale %t", l.Stale, l.Err, first.Stale)
	}
}
