package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// listServer serves a list, and counts.
type listServer struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Value // of func(http.ResponseWriter)
}

func newListServer(t *testing.T) *listServer {
	t.Helper()
	l := &listServer{}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		l.asked.Add(1)
		l.answer.Load().(func(http.ResponseWriter))(w)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listServer) says(text string) {
	l.answer.Store(func(w http.ResponseWriter) { io.WriteString(w, text) })
}

func (l *listServer) source(more string) string {
	return fmt.Sprintf(`  - {name: list, url: "%s/list", scheme: http, allow_addresses: [127.0.0.1/32]%s} # %%[1]s`, l.URL, more)
}

// start does what the daemon does at its start.
func (b *bare) start() *source {
	b.t.Helper()
	b.refresh(b.t.Context(), b.sources[0])
	return b.sources[0]
}

// reopen is a restart.
func (b *bare) reopen() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

// A restart used to ask every list anew. A copy that is younger than the schedule's
// interval is offered as it is; one that is older stands in where the list cannot be
// fetched.
func TestAYoungCopySavesAFetchAtTheStart(t *testing.T) {
	l := newListServer(t)
	list := invent(t, 0, 50)
	l.says(textOf(list))
	b := newBare(t, alloctest.Redis, l.source(""), "")
	if s := b.start().status(); s.Candidates != 50 || s.TriedAt.IsZero() || s.State != api.SourceGood {
		t.Fatalf("the first start: %+v", s)
	}
	b.reopen()
	if s := b.sources[0].status(); s.State != api.SourceNew || s.Candidates != 0 {
		t.Errorf("before the second start: %+v", s)
	}
	if s := b.start().status(); s.Candidates != 50 || !s.TriedAt.IsZero() || s.FetchedAt.IsZero() || s.State != api.SourceGood {
		t.Errorf("the second start: %+v", s)
	}
	if n := l.asked.Load(); n != 1 {
		t.Errorf("the list was asked for %d times", n)
	}
	// The schedule asks, whatever there is.
	if s := b.start(); s.status().TriedAt.IsZero() || l.asked.Load() != 2 {
		t.Errorf("the schedule's fetch: %+v", s.status())
	}

	// An old copy.
	ageCopies(t, b.dir, time.Hour)
	b.reopen()
	l.answer.Store(func(w http.ResponseWriter) { http.Error(w, "gone", http.StatusNotFound) })
	s := b.start().status()
	if s.State != api.SourceStale || !s.Stale || s.Candidates != 50 || !strings.Contains(s.Error, "404") || l.asked.Load() != 3 {
		t.Errorf("an old copy, and the list is gone: %+v", s)
	}
	if !b.knows(list[0].String()) {
		t.Error("it was not offered")
	}
	b.reopen()
	l.says(textOf(invent(t, 40, 60)))
	if s := b.start().status(); s.State != api.SourceGood || s.Candidates != 60 || s.Error != "" {
		t.Errorf("an old copy, and the list is there: %+v", s)
	}
}

// ageCopies makes the copies on disk older.
func ageCopies(t *testing.T, dir string, by time.Duration) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "state", "sources", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, ok := strings.Cut(string(data), `"fetched_at":"`)
		at, _, _ := strings.Cut(after, `"`)
		then, err := time.Parse(time.RFC3339Nano, at)
		if !ok || err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		text := strings.Replace(string(data), at, then.Add(-by).Format(time.RFC3339Nano), 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A file is read at every start: that asks nobody.
func TestAFileIsReadAtEveryStart(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	b.write("list.txt", textOf(invent(t, 0, 5)))
	b.start()
	b.reopen()
	b.write("list.txt", textOf(invent(t, 0, 7)))
	if s := b.start().status(); s.Candidates != 7 {
		t.Errorf("the source says %+v", s)
	}
}

// What a list says of itself, from the first fetch to its end.
func TestTheStatesOfASource(t *testing.T) {
	l := newListServer(t)
	b := newBare(t, alloctest.Redis, l.source(""), "")
	s := b.sources[0]
	if st := s.status(); st.State != api.SourceNew || !st.TriedAt.IsZero() || st.NextFetchAt.IsZero() {
		t.Errorf("before the first fetch: %+v", st)
	}
	l.says("")
	if st := b.fetch("list").status(); st.State != api.SourceFailed || st.TriedAt.IsZero() || !st.FetchedAt.IsZero() || st.Error == "" || st.Candidates != 0 {
		t.Errorf("nothing: %+v", st)
	}
	list := invent(t, 0, 20)
	l.says(textOf(list) + list[0].String() + "\n1.2.3.4\n1.2.3.4:25\n")
	st := b.fetch("list").status()
	if st.State != api.SourceGood || st.Candidates != 20 || st.New != 20 || st.Duplicates != 1 || len(st.Rejects) != 1 ||
		st.Refused["port-25"] != 1 || len(st.Samples) != 1 || st.Samples[0].Text != "1.2.3.4" || st.Samples[0].Line != 22 || st.Format != "plain" || st.Error != "" {
		t.Errorf("a list: %+v", st)
	}
	good := st.FetchedAt
	l.says("<html><body>Sorry</body></html>")
	if st := b.fetch("list").status(); st.State != api.SourceStale || !st.Stale || st.Candidates != 20 || st.New != 20 || !st.FetchedAt.Equal(good) || !st.TriedAt.After(good) || st.Error == "" {
		t.Errorf("a page: %+v", st)
	}
	l.answer.Store(func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	asked := l.asked.Load()
	for range 3 {
		st = b.fetch("list").status()
	}
	if wait := time.Until(st.WaitUntil); wait < 50*time.Minute || wait > time.Hour || st.State != api.SourceStale || st.Candidates != 20 {
		t.Errorf("asked to wait: %+v", st)
	}
	if n := l.asked.Load() - asked; n != 1 {
		t.Errorf("asked %d times, though the first answer was to wait", n)
	}
}

// A list that is gone for so long that its copy is thrown away used to take its
// claims along.
func TestL8_AListThatGoesLeavesItsClaims(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	list := invent(t, 0, 20)
	b.write("list.txt", textOf(list))
	s := b.fetch("list")
	use := s.note(sources.List{Source: "list"}, errors.New("no good copy is left"))
	if st := s.status(); use || st.State != api.SourceFailed || st.Candidates != 0 || s.usable() {
		t.Errorf("the source says %+v", st)
	}
	if rec := b.pools[0].named(list[0], probe.Record{}); len(rec.Sources) != 1 || len(rec.Schemes) != 1 {
		t.Errorf("its claims: %+v", rec)
	}
	b.cycleNow()
	if n := b.known(); n != 20 {
		t.Errorf("%d are known", n)
	}
	b.write("list.txt", textOf(invent(t, 0, 25)))
	if st := b.fetch("list").status(); st.State != api.SourceGood || st.Candidates != 25 {
		t.Errorf("it is back: %+v", st)
	}
}

// What lists claim of a candidate is kept with it: schemes, any among them, country
// and anonymity. What one of them said stays when it says nothing any more.
func TestClaimsAreKept(t *testing.T) {
	b := newBare(t, alloctest.Redis, `  - {name: small, url: "file://%[1]s/small.txt", scheme: any}
  - {name: large, url: "file://%[1]s/large.txt", scheme: socks5}`, "")
	e := invent(t, 0, 1)[0]
	b.write("small.txt", e.String()+":Germany\n")
	b.write("large.txt", "socks4://"+e.String()+"\n"+e.String()+"\n")
	b.fetch("small")
	b.fetch("large")
	why, err := b.why(t.Context(), b.pools[0].cfg.Name, e)
	if err != nil || fmt.Sprint(why.Schemes, why.Sources) != "[any] [small]" || why.Country == "" {
		t.Errorf("the first record: %+v, %v", why, err)
	}
	b.cycleNow()
	why, err = b.why(t.Context(), b.pools[0].cfg.Name, e)
	if err != nil || fmt.Sprint(why.Schemes, why.Sources) != "[socks4 socks5 any] [small large]" || why.Country == "" {
		t.Errorf("after a cycle: %+v, %v", why, err)
	}
	if len(why.Results) != 1 || why.Results[0].Outcome != string(probe.Refused) {
		t.Errorf("results: %+v", why.Results)
	}
	rec := b.pools[0].named(e, probe.Record{Schemes: []proxyurl.Scheme{proxyurl.HTTP}, Sources: []string{"gone"}, Country: "FR", Anonymity: "elite"})
	if got := fmt.Sprintf("%v %v %s", rec.Schemes, rec.Sources, rec.Anonymity); got != "[http socks4 socks5 any] [gone small large] elite" || rec.Country == "FR" {
		t.Errorf("what was said before, and now: %s, %s", got, rec.Country)
	}
}

func TestFetchNow(t *testing.T) {
	l := newListServer(t)
	b := newBare(t, alloctest.Redis, l.source(""), "")
	l.says(textOf(invent(t, 0, 5)))
	if err := b.fetchNow(t.Context(), "nobody"); !errors.Is(err, errUnknownSource) {
		t.Errorf("an unknown source: %v", err)
	}
	if err := b.fetchNow(t.Context(), "list"); err != nil || b.sources[0].status().Candidates != 5 {
		t.Errorf("fetched: %v, %+v", err, b.sources[0].status())
	}
	// A copy on disk does not stand in for what somebody wants now.
	b.reopen()
	if err := b.fetchNow(t.Context(), "list"); err != nil || l.asked.Load() != 2 {
		t.Errorf("fetched: %v, asked %d times", err, l.asked.Load())
	}
	inside, goOn := make(chan struct{}), make(chan struct{})
	l.answer.Store(func(w http.ResponseWriter) {
		close(inside)
		<-goOn
		io.WriteString(w, textOf(invent(t, 0, 6)))
	})
	impatient, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { first <- b.fetchNow(impatient, "list") }()
	<-inside
	if err := b.fetchNow(t.Context(), "list"); !errors.Is(err, errBusy) {
		t.Errorf("a second one: %v, want busy", err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the impatient one: %v", err)
	}
	close(goOn)
	b.jobs.stop()
	if n := b.sources[0].status().Candidates; n != 6 {
		t.Errorf("%d candidates: the fetch was to go on", n)
	}
}
