package sources

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"evenpool/sources/proxyurl"
)

// filesIn returns the names of the files in a folder with the given ending.
func filesIn(t *testing.T, dir, ending string) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"+ending))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// one returns the only file in a folder with the given ending.
func one(t *testing.T, dir, ending string) (path string) {
	t.Helper()
	paths := filesIn(t, dir, ending)
	if len(paths) != 1 {
		t.Fatalf("%d files %s in %s: %v", len(paths), ending, dir, paths)
	}
	return paths[0]
}

func TestL6_TheGoodCopyOutlivesTheProcess(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	src.URL += "/list?key=hunter2"
	src.Headers = map[string]string{"X-Key": "hunter3"}
	src.Name = "../a list" // it becomes part of a file's name
	dir := filepath.Join(t.TempDir(), "state", "sources")
	now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	start := func() *Fetcher {
		return NewFetcher(Options{Dir: dir, RetryWait: time.Millisecond, Now: func() time.Time { return now }})
	}
	if l, ok := start().Load(src); ok || l.CopyErr != nil || l.Source != src.Name {
		t.Errorf("before there is any: %t, %v", ok, l.CopyErr)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder for nothing: %v", err)
	}

	p.set(200, listOf(100))
	first, err := start().Fetch(t.Context(), src)
	if err != nil || first.CopyErr != nil || first.NotModified {
		t.Fatalf("%v, %v, not modified %t", err, first.CopyErr, first.NotModified)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	for _, path := range []string{one(t, dir, ".list"), one(t, dir, ".json")} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		if text, err := os.ReadFile(path); err != nil || strings.Contains(path+string(text), "hunter") {
			t.Errorf("%s: a key is in it, %v\n%s", path, err, text)
		}
	}

	fetchedAt := now
	now = now.Add(time.Hour)
	f := start()
	l, ok := f.Load(src)
	if !ok || l.Stale || l.Err != nil || l.NotModified || !l.FetchedAt.Equal(fetchedAt) || !slices.Equal(show(l.Candidates), show(first.Candidates)) ||
		l.Records != first.Records || l.Source != src.Name {
		t.Errorf("loaded: %t, %d candidates of %s, stale %t", ok, len(l.Candidates), l.FetchedAt, l.Stale)
	}
	p.set(404, "")
	if l, err := f.Fetch(t.Context(), src); err != nil || !l.Stale || len(l.Candidates) != 100 || !l.FetchedAt.Equal(fetchedAt) {
		t.Errorf("broken after the restart: %d, stale %t, %v", len(l.Candidates), l.Stale, err)
	}
	p.set(200, listOf(19))
	if l, err := start().Fetch(t.Context(), src); err != nil || !errors.Is(l.Err, ErrShrunk) || len(l.Candidates) != 100 {
		t.Errorf("shrunk after the restart: %d, %v, %v", len(l.Candidates), l.Err, err)
	}
	now = fetchedAt.Add(48*time.Hour + time.Second)
	if l, ok := start().Load(src); ok || l.CopyErr == nil || l.CopyErr.Error() != "the good copy is older than 48h0m0s" {
		t.Errorf("too old: %t, %v", ok, l.CopyErr)
	}
}

func TestL6_OnlyTheNewestCopyIsKept(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	dir := t.TempDir()
	f := NewFetcher(Options{Dir: dir})
	for _, n := range []int{100, 90, 90, 100, 21} {
		p.set(200, listOf(n))
		if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != n || l.CopyErr != nil {
			t.Fatalf("%d of %d, %v, %v", len(l.Candidates), n, err, l.CopyErr)
		}
		if text, err := os.ReadFile(one(t, dir, ".list")); err != nil || string(text) != listOf(n) {
			t.Errorf("the copy of %d: %v", n, err)
		}
		one(t, dir, ".json")
	}
	p.set(200, "<html>")
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 21 || !l.Stale {
		t.Errorf("%d candidates, %v", len(l.Candidates), err)
	}
	if left := filesIn(t, dir, ".tmp"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What is kept is the text that the parser saw, not what came over the wire.
func TestL6_TheCopyIsUnpackedAndDecoded(t *testing.T) {
	dir := t.TempDir()
	src := source(serveBody(t, pack(t, "zstd", "1.2.3.4:80 # \xe9\n"), "Content-Encoding", "zstd", "Content-Type", "text/plain; charset=latin1"))
	if _, err := NewFetcher(Options{Dir: dir}).Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(one(t, dir, ".list")); err != nil || string(text) != "1.2.3.4:80 # é\n" {
		t.Errorf("%q, %v", text, err)
	}
	if l, ok := NewFetcher(Options{Dir: dir}).Load(src); !ok || len(l.Candidates) != 1 {
		t.Errorf("%t, %v", ok, l.CopyErr)
	}
}

func TestL6_ADamagedCopyIsNotUsed(t *testing.T) {
	replace := func(old, with string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), old) {
				t.Fatalf("%s has no %s: %v\n%s", path, old, err, text)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, with)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(t *testing.T, path string) {
		if err := os.Truncate(path, 300); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	pipe := func(t *testing.T, path string) {
		remove(t, path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, file string
		damage     func(t *testing.T, path string)
		want       string
	}{
		{"a changed byte", ".list", replace("1.2.3.4:8080", "1.2.3.4:8081"), "the good copy is damaged"},
		{"cut off", ".list", truncate, "the good copy is damaged"},
		{"gone", ".list", remove, "the good copy is damaged"},
		{"a pipe", ".list", pipe, "not a regular file"},
		{"a pipe for a name", ".json", pipe, "not a regular file"},
		{"no JSON", ".json", replace("{", "["), "the good copy is damaged"},
		{"an empty file", ".json", func(t *testing.T, path string) { os.Truncate(path, 0) }, "the good copy is damaged"},
		{"too large", ".json", func(t *testing.T, path string) { os.Truncate(path, 1<<30) }, "the list is too large"},
		{"no hash", ".json", replace(`"sha256":"`, `"sha256":"../../`), "the good copy is damaged"},
		{"a short hash", ".json", func(t *testing.T, path string) { os.WriteFile(path, []byte(`{"version":1,"sha256":"00"}`), 0o600) }, "the good copy is damaged"},
		{"another source's", ".json", replace(`"key":"`, `"key":"0`), "the good copy is of another source"},
		{"another version's", ".json", replace(`"version":1`, `"version":2`), "the good copy is of another source, or by another version"},
	} {
		p := &page{}
		src := source(serve(t, p))
		dir := t.TempDir()
		p.set(200, listOf(100))
		if _, err := NewFetcher(Options{Dir: dir}).Fetch(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		c.damage(t, one(t, dir, c.file))
		if l, ok := NewFetcher(Options{Dir: dir}).Load(src); ok || l.CopyErr == nil || !strings.Contains(l.CopyErr.Error(), c.want) {
			t.Errorf("%s: %t, %v; want %s", c.name, ok, l.CopyErr, c.want)
		}
		p.set(404, "")
		l, err := NewFetcher(Options{Dir: dir}).Fetch(t.Context(), src)
		if err == nil || len(l.Candidates) != 0 || l.CopyErr == nil || !strings.Contains(l.CopyErr.Error(), c.want) {
			t.Errorf("%s: %d candidates, %v, %v; want %s", c.name, len(l.Candidates), err, l.CopyErr, c.want)
		}
		// The next good list heals it.
		p.set(200, listOf(50))
		if l, err := NewFetcher(Options{Dir: dir}).Fetch(t.Context(), src); err != nil || l.CopyErr != nil || len(l.Candidates) != 50 {
			t.Errorf("%s: afterwards %d candidates, %v, %v", c.name, len(l.Candidates), err, l.CopyErr)
		}
		if l, ok := NewFetcher(Options{Dir: dir}).Load(src); !ok || len(l.Candidates) != 50 {
			t.Errorf("%s: afterwards %t, %v", c.name, ok, l.CopyErr)
		}
	}
}

// A copy belongs to the source as it was configured, on disk too.
func TestACopyOnDiskIsNotKeptForAnotherSource(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	dir := t.TempDir()
	p.set(200, listOf(10))
	if _, err := NewFetcher(Options{Dir: dir}).Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Source){
		"name":           func(s *Source) { s.Name = "other" },
		"URL":            func(s *Source) { s.URL += "?x" },
		"format":         func(s *Source) { s.Format = "plain" },
		"scheme":         func(s *Source) { s.Scheme = proxyurl.SOCKS5 },
		"allow":          func(s *Source) { s.Allow = allow("127.0.0.0/9") },
		"header":         func(s *Source) { s.Headers = map[string]string{"X-List": "2"} },
		"max_bytes":      func(s *Source) { s.MaxBytes = 1 << 10 },
		"max_candidates": func(s *Source) { s.MaxCandidates = 5 },
	} {
		other := src
		change(&other)
		if l, ok := NewFetcher(Options{Dir: dir}).Load(other); ok {
			t.Errorf("another %s got the copy of %d", name, len(l.Candidates))
		}
	}
	same := src
	same.Format, same.UserAgent, same.Proxy, same.Timeout = "auto", "x", "http://127.0.0.1:1", time.Second
	if _, ok := NewFetcher(Options{Dir: dir}).Load(same); !ok {
		t.Error("what a list does not depend on costs the copy")
	}
}

func TestCopiesOfSourcesThatAreGoneAreRemoved(t *testing.T) {
	p := &page{}
	p.set(200, listOf(10))
	url := serve(t, p)
	dir := t.TempDir()
	now := time.Now()
	f := NewFetcher(Options{Dir: dir, Now: func() time.Time { return now }})
	gone, stays := source(url), source(url)
	gone.Name, stays.Name = "gone", "stays"
	fetch := func(src Source) {
		t.Helper()
		if l, err := f.Fetch(t.Context(), src); err != nil || l.CopyErr != nil {
			t.Fatalf("%v, %v", err, l.CopyErr)
		}
	}
	fetch(gone)
	fetch(stays)
	crashed := filepath.Join(dir, "123.tmp") // as a kill -9 leaves it
	other := filepath.Join(dir, "README")    // not ours
	for _, path := range []string{crashed, other} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		now = now.Add(20 * time.Hour)
		fetch(stays)
	}
	left := append(filesIn(t, dir, ".list"), filesIn(t, dir, ".json")...)
	if len(left) != 2 || !strings.Contains(left[0], "stays") || !strings.Contains(left[1], "stays") {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(crashed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a crash left: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("what is not ours: %v", err)
	}
	if f.mu.Lock(); len(f.slots) != 1 {
		t.Errorf("%d sources are remembered", len(f.slots))
	}
	f.mu.Unlock()
}

// The list in use and the list on disk are not both in memory.
func TestACopyOnDiskIsNotInMemory(t *testing.T) {
	src := source(serve(t, http.HandlerFunc(good)))
	f := NewFetcher(Options{Dir: t.TempDir()})
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.slots {
		if s.list != nil {
			t.Error("it is")
		}
	}
}

// A clock that was far ahead once makes no copy last for ever, and one that is
// behind, as on a host that has just booted, costs none.
func TestL6_ACopyOfTheFuture(t *testing.T) {
	p := &page{}
	p.set(200, listOf(100))
	src := source(serve(t, p))
	fetched := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
	now := fetched
	f := NewFetcher(Options{Dir: t.TempDir(), Now: func() time.Time { return now }})
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	p.set(404, "")
	for _, c := range []struct {
		at   time.Time
		want error
	}{
		{fetched.Add(-48 * time.Hour), nil},
		{fetched.Add(-48*time.Hour - time.Second), errFuture},
		{time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), errFuture},
		{fetched.Add(48 * time.Hour), nil},
	} {
		now = c.at
		l, ok := f.Load(src)
		if ok != (c.want == nil) || !errors.Is(l.CopyErr, c.want) {
			t.Errorf("loaded at %s: %t, %v; want %v", c.at, ok, l.CopyErr, c.want)
		}
		if l, err := f.Fetch(t.Context(), src); (err == nil && l.Stale) != (c.want == nil) {
			t.Errorf("fetched at %s: stale %t, %v; want %v", c.at, l.Stale, err, c.want)
		}
	}
}

// A format's own end is not the end of the body: what is missing behind it is
// missing.
func TestABodyIsReadToItsEnd(t *testing.T) {
	for _, text := range []string{listOf(3), `["1.2.3.4:80"]`, `[{"ip":"1.2.3.4","port":80}]`, `{"data":[{"ip":"1.2.3.4","port":80}]}`} {
		end := errors.New("the end")
		body := io.MultiReader(strings.NewReader(text+strings.Repeat("\n", 1<<16)), iotest.ErrReader(end))
		if l, err := parseAll(body, source(""), Limits{}.orDefault()); !errors.Is(err, end) {
			t.Errorf("%s: %d candidates, %v; want the reader's error", text, len(l.Candidates), err)
		}
	}
}
