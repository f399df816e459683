package sources

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// versions is a server that knows conditional requests, as net/http's own file
// server does.
type versions struct {
	text, etag string
	modified   time.Time
	asked      []string // the validators of each request
	full       int      // how often the list was sent
	always304  bool
}

func (v *versions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.asked = append(v.asked, r.Header.Get("If-None-Match")+"|"+r.Header.Get("If-Modified-Since"))
	if v.etag != "" {
		w.Header().Set("ETag", v.etag)
	}
	if v.always304 {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	counted := &countingWriter{ResponseWriter: w}
	http.ServeContent(counted, r, "list.txt", v.modified, strings.NewReader(v.text))
	if counted.n > 0 {
		v.full++
	}
}

type countingWriter struct {
	http.ResponseWriter
	n int
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n += len(p)
	return w.ResponseWriter.Write(p)
}

// eachKeeping runs a test with copies in memory and with copies on disk.
func eachKeeping(t *testing.T, test func(t *testing.T, opts Options)) {
	t.Run("memory", func(t *testing.T) { test(t, Options{RetryWait: time.Millisecond}) })
	t.Run("disk", func(t *testing.T) { test(t, Options{RetryWait: time.Millisecond, Dir: t.TempDir()}) })
}

func TestNotModified(t *testing.T) {
	modified := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name     string
		etag     string
		modified time.Time
		want     string
	}{
		{"ETag", `"v1"`, time.Time{}, `"v1"|`},
		{"a weak one", `W/"v1"`, time.Time{}, `W/"v1"|`},
		{"Last-Modified", "", modified, "|Sat, 01 Aug 2026 10:00:00 GMT"},
		{"both", `"v1"`, modified, `"v1"|Sat, 01 Aug 2026 10:00:00 GMT`},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachKeeping(t, func(t *testing.T, opts Options) {
				v := &versions{text: listOf(100), etag: c.etag, modified: c.modified}
				src := source(serve(t, v))
				now := time.Date(2026, 8, 22, 10, 0, 0, 0, time.UTC)
				opts.Now = func() time.Time { return now }
				f := NewFetcher(opts)
				for i := range 3 {
					if opts.Dir != "" && i == 2 {
						f = NewFetcher(opts) // a restart
					}
					l, err := f.Fetch(t.Context(), src)
					if err != nil || len(l.Candidates) != 100 || l.Stale || l.Err != nil || l.CopyErr != nil || !l.FetchedAt.Equal(now) || l.NotModified != (i > 0) {
						t.Errorf("fetch %d: %d candidates of %s, not modified %t, stale %t, %v, %v, %v", i, len(l.Candidates), l.FetchedAt, l.NotModified, l.Stale, l.Err, l.CopyErr, err)
					}
					now = now.Add(40 * time.Hour) // each is younger than MaxAge, all together are not
				}
				if want := []string{"|", c.want, c.want}; strings.Join(v.asked, " ") != strings.Join(want, " ") || v.full != 1 {
					t.Errorf("asked %q, sent %d times; want %q and once", v.asked, v.full, want)
				}
				// Another list has another tag.
				v.text, v.etag, v.modified = listOf(90), `"v2"`, now
				if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 90 || l.NotModified {
					t.Errorf("a new list: %d candidates, not modified %t, %v", len(l.Candidates), l.NotModified, err)
				}
			})
		})
	}
}

// Servers that know no validators send the same list again and again.
func TestTheSameBodyIsNotModified(t *testing.T) {
	eachKeeping(t, func(t *testing.T, opts Options) {
		p := &page{}
		src := source(serve(t, p))
		f := NewFetcher(opts)
		for i, want := range []bool{false, true, true, false, false, true} {
			p.set(200, listOf([]int{100, 100, 100, 90, 100, 100}[i]))
			if l, err := f.Fetch(t.Context(), src); err != nil || l.NotModified != want {
				t.Errorf("fetch %d: not modified %t, %v; want %t", i, l.NotModified, err, want)
			}
		}
		p.set(404, "")
		if l, err := f.Fetch(t.Context(), src); err != nil || !l.Stale || l.NotModified {
			t.Errorf("stale %t, not modified %t, %v", l.Stale, l.NotModified, err)
		}
	})
}

func TestNotModifiedWithoutACopyIsAnError(t *testing.T) {
	eachKeeping(t, func(t *testing.T, opts Options) {
		v := &versions{etag: `"v1"`, always304: true}
		l, err := NewFetcher(opts).Fetch(t.Context(), source(serve(t, v)))
		if err == nil || err.Error() != "fetch web: status 304 (Not Modified)" || len(l.Candidates) != 0 || l.NotModified {
			t.Errorf("%d candidates, %v", len(l.Candidates), err)
		}
		if len(v.asked) != 1 || v.asked[0] != "|" {
			t.Errorf("asked %q", v.asked)
		}
	})
}

// A list that is not used is not asked for by its tag either: it would go on being
// "not modified" when its time as a copy is over.
func TestABrokenListsTagIsNotKept(t *testing.T) {
	eachKeeping(t, func(t *testing.T, opts Options) {
		v := &versions{text: listOf(100), etag: `"v1"`}
		src := source(serve(t, v))
		f := NewFetcher(opts)
		for _, text := range []string{v.text, "<html>", v.text} {
			v.text = text
			if text == "<html>" {
				v.etag = `"page"`
			}
			if _, err := f.Fetch(t.Context(), src); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(v.asked, " "); got != `| "v1"| "v1"|` {
			t.Errorf("asked %s", got)
		}
	})
}

// What the server means by "not modified" may be gone from the disk meanwhile, and
// what it sends again is not there because it was.
func TestACopyThatIsGoneIsFetchedAgain(t *testing.T) {
	for _, c := range []struct {
		etag  string
		asked []string // at each fetch
	}{
		{`"v1"`, []string{"|", `"v1"| |`}},
		{"", []string{"|", "|"}},
	} {
		v := &versions{text: listOf(100), etag: c.etag}
		src := source(serve(t, v))
		dir := t.TempDir()
		f := NewFetcher(Options{Dir: dir})
		for i, want := range c.asked {
			v.asked = nil
			l, err := f.Fetch(t.Context(), src)
			if got := strings.Join(v.asked, " "); err != nil || len(l.Candidates) != 100 || l.CopyErr != nil || got != want {
				t.Errorf("fetch %d: %d candidates, %v, %v; asked %s, want %s", i, len(l.Candidates), err, l.CopyErr, got, want)
			}
			if i == 0 {
				if err := os.Remove(one(t, dir, ".list")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, ok := NewFetcher(Options{Dir: dir}).Load(src); !ok {
			t.Errorf("ETag %s: the copy is not there again", c.etag)
		}
	}
}

// A copy that could not be written is asked for as a whole, so that it may be
// written the next time.
func TestACopyThatIsNotOnDiskIsFetchedAgain(t *testing.T) {
	v := &versions{text: listOf(100), etag: `"v1"`}
	src := source(serve(t, v))
	f := NewFetcher(Options{Dir: write(t, "file", "") + "/sources"})
	for range 2 {
		if l, err := f.Fetch(t.Context(), src); err != nil || l.CopyErr == nil || len(l.Candidates) != 100 {
			t.Errorf("%d candidates, %v, %v", len(l.Candidates), err, l.CopyErr)
		}
	}
	if got := strings.Join(v.asked, " "); got != "| |" {
		t.Errorf("asked %s", got)
	}
}

// Validators are shown to nobody but the URL that gave them.
func TestValidatorsBelongToOneURL(t *testing.T) {
	v := &versions{text: listOf(100), etag: `"v1"`}
	other := &versions{text: listOf(90), etag: `"v1"`} // the same tag for another list
	target := serve(t, v)
	start := &versions{etag: `"v1"`}
	front := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start.asked = append(start.asked, r.Header.Get("If-None-Match"))
		http.Redirect(w, r, target, http.StatusFound)
	}))
	f := NewFetcher(Options{})
	fetch := func(want int, notModified bool) {
		t.Helper()
		if l, err := f.Fetch(t.Context(), source(front)); err != nil || len(l.Candidates) != want || l.NotModified != notModified {
			t.Errorf("%d candidates, not modified %t, %v; want %d, %t", len(l.Candidates), l.NotModified, err, want, notModified)
		}
	}
	fetch(100, false)
	fetch(100, true)
	target = serve(t, other)
	fetch(90, false)
	if got := strings.Join(start.asked, ""); got != "" {
		t.Errorf("the redirecting server was shown %s", got)
	}
	if got := strings.Join(v.asked, " ") + ", " + strings.Join(other.asked, " "); got != `| "v1"|, |` {
		t.Errorf("asked %s", got)
	}
}

// A tag may be as long as a server's headers.
func TestAHugeTagIsNotKept(t *testing.T) {
	asked := 0
	src := source(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			t.Error("it was")
		}
		asked++
		w.Header().Set("ETag", `"`+strings.Repeat("x", 32<<10)+`"`)
		io.WriteString(w, listOf(3))
	})))
	f := NewFetcher(Options{})
	for range 2 {
		if _, err := f.Fetch(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
