package sources

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What is served or lies there in place of a list: each is read once a good list
// was. The good copy stays in use, the reason is in Err, and the fetch ends in its
// time and in its memory.

// stays fetches a source that has turned bad, and shows that its copy of 100 is
// still in use, now and after a restart. want is in the reason, or the reason is
// one of it.
func stays(t *testing.T, opts Options, src Source, want any) {
	t.Helper()
	var l List
	var err error
	start := time.Now()
	peak := peakHeap(func() { l, err = NewFetcher(opts).Fetch(t.Context(), src) })
	took := time.Since(start)
	if err != nil || !l.Stale || len(l.Candidates) != 100 || l.CopyErr != nil {
		t.Errorf("%d candidates, stale %t, %v, %v; want the good copy of 100", len(l.Candidates), l.Stale, err, l.CopyErr)
	}
	switch want := want.(type) {
	case error:
		if !errors.Is(l.Err, want) {
			t.Errorf("the reason is %v, want %v", l.Err, want)
		}
	case string:
		if l.Err == nil || !strings.Contains(l.Err.Error(), want) {
			t.Errorf("the reason is %v, want %s", l.Err, want)
		}
	}
	if peak > 48<<20 {
		t.Errorf("%d MiB more memory at the peak", peak>>20)
	}
	if took > opts.Timeout+3*time.Second {
		t.Errorf("took %s of %s", took, opts.Timeout)
	}
	if l, ok := NewFetcher(opts).Load(src); !ok || len(l.Candidates) != 100 {
		t.Errorf("after a restart: %d candidates, %v", len(l.Candidates), l.CopyErr)
	}
	if left := filesIn(t, opts.Dir, ".tmp"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// turning is a server that serves a good list once, and then is bad.
type turning struct {
	asked atomic.Int32
	bad   http.Handler
}

func (s *turning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.asked.Add(1) == 1 {
		io.WriteString(w, listOf(100))
		return
	}
	s.bad.ServeHTTP(w, r)
}

// once fetches the good list.
func once(t *testing.T, opts Options, src Source) {
	t.Helper()
	if l, err := NewFetcher(opts).Fetch(t.Context(), src); err != nil || len(l.Candidates) != 100 || l.CopyErr != nil {
		t.Fatalf("the good list: %d candidates, %v, %v", len(l.Candidates), err, l.CopyErr)
	}
}

// goesOn writes a text until nobody reads any more, and counts what was taken.
func goesOn(w io.Writer, text string, most int64) (n int64) {
	for n < most {
		m, err := io.WriteString(w, text)
		n += int64(m)
		if err != nil {
			break
		}
	}
	return n
}

func answer(code int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// raw answers with bytes that a server of net/http would not send, and ends the
// connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, text)
	}
}

func TestBadInput_OverTheWeb(t *testing.T) {
	const mib = 1 << 20
	line := strings.Repeat("x", 1<<16)
	lines := strings.Repeat("1.2.3.4:8080\n", 5000)
	cut := func(encoding string) http.HandlerFunc {
		packed := pack(t, encoding, listOf(100)+strings.Repeat("# and more\n", 1000))
		return answer(200, packed[:len(packed)/2], "Content-Encoding", encoding)
	}
	damaged := pack(t, "gzip", listOf(100))
	for _, c := range []struct {
		name string
		bad  http.HandlerFunc
		want any
	}{
		{"an HTML error page with 200", answer(200, "<!DOCTYPE html>\n<html><body><h1>Something went wrong</h1></body></html>\n", "Content-Type", "text/html"), ErrMarkup},
		{"an HTML page on one line", answer(200, "<html><head><title>Just a moment...</title></head><body>"+line+"</body></html>"), ErrMarkup},
		{"a thousand lines of Array", answer(200, strings.Repeat("Array\n", 1000)), ErrUnreadable},
		{"one newline", answer(200, "\n"), ErrEmpty},
		{"an empty body", answer(200, ""), ErrEmpty},
		{"blank lines and comments", answer(200, strings.Repeat("\n# nothing today\n", 1000)), ErrEmpty},
		{"a list of nothing usable", answer(200, strings.Repeat("10.0.0.1:80\n", 100)), ErrEmpty},
		{"an error in JSON", answer(200, `{"error":"rate limited"}`, "Content-Type", "application/json"), ""},
		{"an image", answer(200, "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"+strings.Repeat("\x00\x9c\xff\n", 500), "Content-Type", "image/png"), ""},

		{"a body shorter than its Content-Length", answer(200, listOf(90), "Content-Length", "5000"), io.ErrUnexpectedEOF},
		{"a chunked body cut", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5a0\r\n" + listOf(90)), io.ErrUnexpectedEOF},
		{"a chunked body cut between chunks", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n1.2.3.4:8080\n\r\n"), io.ErrUnexpectedEOF},
		{"a chunk that is none", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n1.2.3.4:8080\n\r\nzz\r\n"), "invalid byte in chunk length"},
		{"gzip cut", cut("gzip"), io.ErrUnexpectedEOF},
		{"brotli cut", cut("br"), io.ErrUnexpectedEOF},
		{"zstd cut", cut("zstd"), io.ErrUnexpectedEOF},
		{"gzip damaged", answer(200, damaged[:len(damaged)-8]+"\x00\x00\x00\x00"+damaged[len(damaged)-4:], "Content-Encoding", "gzip"), gzip.ErrChecksum},
		{"gzip in name alone", answer(200, listOf(100), "Content-Encoding", "gzip"), "content encoding gzip: gzip: invalid header"},
		{"an encoding over another", answer(200, pack(t, "gzip", pack(t, "br", listOf(100))), "Content-Encoding", "br, gzip"), errStacked},

		{"an endless body", func(w http.ResponseWriter, _ *http.Request) { goesOn(w, lines, 1<<40) }, ErrTooLarge},
		{"an endless body of new addresses", func(w http.ResponseWriter, _ *http.Request) {
			var b bytes.Buffer
			for i := 0; ; i++ {
				fmt.Fprintf(&b, "%d.%d.%d.%d:80\n", 11+i>>22&63, i>>14&255, i>>6&255, i&63)
				if b.Len() > 1<<16 {
					if _, err := b.WriteTo(w); err != nil {
						return
					}
				}
			}
		}, ErrTooLarge},
		{"an endless body of nothing", func(w http.ResponseWriter, _ *http.Request) { goesOn(w, strings.Repeat("\x00", 1<<16), 1<<40) }, ErrTooLarge},
		{"an endless page", func(w http.ResponseWriter, _ *http.Request) { goesOn(w, "<html>"+line, 1<<40) }, ""},
		{"a line of 1 GB", func(w http.ResponseWriter, _ *http.Request) {
			if n := goesOn(w, line, 1<<30); n > 64*mib {
				t.Errorf("%d MiB of the line were taken", n>>20)
			}
		}, ErrTooLarge},
		{"a line of 1 GB, announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1073741824")
			goesOn(w, line, 1<<30)
		}, ErrTooLarge},
		{"a length that is none", raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"), "bad Content-Length"},

		{"a redirect loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, errRedirects},
		{"a redirect to 169.254.169.254", answer(302, "", "Location", "http://169.254.169.254/latest/meta-data/"), "address 169.254.169.254 may not be dialled: link-local"},
		{"a redirect to this very host", answer(307, "", "Location", "http://[::1]:6379/"), "address ::1 may not be dialled: loopback"},
		{"a redirect to a file", answer(302, "", "Location", "file:///etc/passwd"), errElsewhere},
		{"a redirect nowhere", answer(302, listOf(100)), "status 302 (Found)"},
		{"a redirect to what is no URL", answer(302, "", "Location", "http://[::hunter2"), errLocation},
		{"a choice", answer(300, listOf(100)), "status 300 (Multiple Choices)"},
		{"not modified, unasked", answer(304, ""), "status 304 (Not Modified)"},

		{"no content", answer(204, ""), "status 204 (No Content)"},
		{"a part of it", answer(206, listOf(99), "Content-Range", "bytes 0-1000/2000"), "status 206 (Partial Content)"},
		{"forbidden", answer(403, listOf(100)), "status 403 (Forbidden)"},
		{"not found", answer(404, listOf(100)), "status 404 (Not Found)"},
		{"gone", answer(410, ""), "status 410 (Gone)"},
		{"too many requests", answer(429, "", "Retry-After", "7200"), "asks to be left alone until"},
		{"a status that is none", raw("HTTP/1.1 999 \x1b[31m\r\n\r\n"), "status 999"},
		{"no HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), "malformed HTTP"},
		{"nothing", raw(""), "EOF"},

		{"headers of 1 MB", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", mib))
			io.WriteString(w, listOf(100))
		}, "headers exceeded"},
		{"endless headers", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			goesOn(conn, "X: y\r\n", 1<<40)
		}, "headers exceeded"},
		{"endless hints", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			goesOn(conn, "HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n", 1<<40)
		}, ""},
		{"endless trailers", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n1.2.3.4:8080\n\r\n0\r\n")
			goesOn(conn, "X: y\r\n", 1<<40)
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(&turning{bad: c.bad})
			s.Config.ErrorLog = quiet()
			s.Start()
			defer s.Close()
			src := source(s.URL)
			src.Allow, src.MaxCandidates = allow("127.0.0.1/32"), 20_000
			opts := Options{Dir: t.TempDir(), RetryWait: time.Millisecond, Timeout: 20 * time.Second}
			once(t, opts, src)
			stays(t, opts, src, c.want)
		})
	}
}

// What is only said wrongly costs nothing.
func TestBadInput_WronglyNamedListsAreRead(t *testing.T) {
	for _, contentType := range []string{"", "text/html", "image/png", "application/octet-stream", "application/json", "x", "text/plain; charset=utf-16",
		"text/plain; charset=klingon", "text/plain; charset", strings.Repeat("x", 1000)} {
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source(serveBody(t, listOf(100), "Content-Type", contentType)))
		if err != nil || len(l.Candidates) != 100 {
			t.Errorf("Content-Type %.40s: %d candidates, %v", contentType, len(l.Candidates), err)
		}
	}
}

// Bombs, by content encoding and as a file that is served.
func TestBadInput_Bombs(t *testing.T) {
	for encoding := range packers() {
		bomb := bomb(t, encoding)
		headers := map[string][]string{encoding: {"Content-Encoding", encoding}}
		if encoding == "gzip" {
			headers["list.txt.gz"] = []string{"Content-Type", "application/gzip"}
		}
		for name, h := range headers {
			t.Run(name, func(t *testing.T) {
				src := source(serve(t, &turning{bad: answer(200, bomb, h...)}))
				opts := Options{Dir: t.TempDir(), Timeout: 20 * time.Second}
				once(t, opts, src)
				stays(t, opts, src, ErrTooLarge)
			})
		}
	}
}
