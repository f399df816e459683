package sources

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// packers are the content encodings, as servers make them.
func packers() map[string]func(io.Writer) io.WriteCloser {
	return map[string]func(io.Writer) io.WriteCloser{
		"gzip": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				panic(err)
			}
			return z
		},
	}
}

func pack(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := packers()[encoding](&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// serveBody runs a server that answers one body with the given headers.
func serveBody(t *testing.T, body string, headers ...string) (url string) {
	t.Helper()
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Add(headers[i], headers[i+1])
		}
		io.WriteString(w, body)
	}))
}

func TestContentEncodings(t *testing.T) {
	text := listOf(100)
	for _, c := range []struct {
		name, body string
		encodings  []string
		want       string // the error, "" for a good list
	}{
		{"gzip", pack(t, "gzip", text), []string{"gzip"}, ""},
		{"gzip, as it was called", pack(t, "gzip", text), []string{"x-gzip"}, ""},
		{"brotli", pack(t, "br", text), []string{"br"}, ""},
		{"zstd", pack(t, "zstd", text), []string{"ZSTD"}, ""},
		{"none, by name", text, []string{"identity"}, ""},
		{"gzip and none", pack(t, "gzip", text), []string{"identity, gzip"}, ""},
		{"a gzip file that nobody calls so", pack(t, "gzip", text), nil, ""},
		{"a gzip file, packed", pack(t, "br", pack(t, "gzip", text)), []string{"br"}, ""},
		{"two gzip files, one behind the other", pack(t, "gzip", text[:700]) + pack(t, "gzip", text[700:]), nil, ""},

		{"deflate", text, []string{"deflate"}, "fetch web: content encoding deflate, which was not asked for"},
		{"nothing that exists", text, []string{"x\u202e"}, `fetch web: content encoding x\\u202e, which was not asked for`},
		{"one over the other", pack(t, "gzip", pack(t, "br", text)), []string{"br, gzip"}, "fetch web: a body with several content encodings"},
		{"twice the same", pack(t, "gzip", pack(t, "gzip", text)), []string{"gzip", "gzip"}, "fetch web: a body with several content encodings"},
		{"gzip that is none", text, []string{"gzip"}, "fetch web: content encoding gzip: gzip: invalid header"},
		{"brotli that is none", text, []string{"br"}, "fetch web: brotli: "},
		{"zstd that is none", text, []string{"zstd"}, "fetch web: invalid input: magic number mismatch"},
	} {
		var headers []string
		for _, e := range c.encodings {
			headers = append(headers, "Content-Encoding", e)
		}
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source(serveBody(t, c.body, headers...)))
		switch {
		case c.want == "" && (err != nil || len(l.Candidates) != 100):
			t.Errorf("%s: %d candidates, %v", c.name, len(l.Candidates), err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	path := write(t, "list.txt.gz", pack(t, "gzip", text))
	if l, err := NewFetcher(Options{}).Fetch(t.Context(), source("file://"+path)); err != nil || len(l.Candidates) != 100 {
		t.Errorf("a file: %d candidates, %v", len(l.Candidates), err)
	}
}

// peakHeap runs f and returns how many bytes the heap had more than before, at the
// most, garbage included.
func peakHeap(f func()) (more int64) {
	read := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := read()
	done, stopped := make(chan struct{}), make(chan int64)
	go func() {
		peak := int64(0)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, read()-before)
			select {
			case <-done:
				stopped <- peak
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	return <-stopped
}

// bomb packs 1 GiB of nothing: 64 MiB, 16 times over, which brotli alone does not
// take for one body.
func bomb(t *testing.T, encoding string) string {
	t.Helper()
	one := pack(t, encoding, strings.Repeat("\x00", 64<<20))
	if encoding == "br" {
		return one
	}
	return strings.Repeat(one, 16)
}

// One bomb in another: what is 1 GiB in the end is 1 MiB after the first unpacking.
func TestL5_ABombInAnother(t *testing.T) {
	bomb := bomb(t, "gzip")
	for _, encoding := range []string{"gzip", "br", "zstd"} {
		url := serveBody(t, pack(t, encoding, bomb), "Content-Encoding", encoding)
		if _, err := NewFetcher(Options{}).Fetch(t.Context(), source(url)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", encoding, err)
		}
	}
	// What is packed is bounded, too: members without content unpack to nothing.
	url := serveBody(t, strings.Repeat(pack(t, "gzip", ""), 1000), "Content-Encoding", "gzip")
	if _, err := NewFetcher(Options{Limits: Limits{MaxBytes: 10_000}}).Fetch(t.Context(), source(url)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("many times nothing: %v, want ErrTooLarge", err)
	}
}

// The window is memory that a stream asks for in its first bytes.
func TestL5_ALargeZstdWindowIsRefused(t *testing.T) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, listOf(100))
	w.Flush() // before Close, which would know how little there is
	io.WriteString(w, listOf(100))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = NewFetcher(Options{}).Fetch(t.Context(), source(serveBody(t, b.String(), "Content-Encoding", "zstd")))
	if !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("%v, want %v", err, zstd.ErrWindowSizeExceeded)
	}
}

func TestCharsets(t *testing.T) {
	const text = "1.2.3.4:80 # Côte d’Ivoire\n1.2.3.5:8080 # Österreich\n"
	in := func(e encoding.Encoding) string {
		s, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ascii := strings.NewReplacer("ô", "o", "’", "", "Ö", "O").Replace(text)
	for _, c := range []struct{ name, body, contentType, want string }{
		{"UTF-8", text, "text/plain; charset=utf-8", text},
		{"UTF-8, unnamed", text, "text/plain", text},
		{"UTF-8 with a mark", "\xef\xbb\xbf" + text, "", text},
		{"windows-1252", in(charmap.Windows1252), "text/plain; charset=windows-1252", text},
		{"windows-1252, called Latin-1", in(charmap.Windows1252), `text/plain; charset="ISO-8859-1"`, text},
		{"windows-1251 for ASCII", ascii, "text/plain; charset=windows-1251", ascii},
		{"UTF-16 with a mark", in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)), "", text},
		{"UTF-16, the other way", in(unicode.UTF16(unicode.BigEndian, unicode.UseBOM)), "text/plain", text},
		{"UTF-16 with a mark, called UTF-8", in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)), "text/plain; charset=utf-8", text},
		{"UTF-16, named, without a mark", in(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)), "text/plain; charset=utf-16be", text},
		{"UTF-16, unnamed, without a mark", in(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)), "", text},
		{"a page that names it", `<meta charset="windows-1252">` + in(charmap.Windows1252), "text/html", `<meta charset="windows-1252">` + text},
		{"a page that says nothing", "<html>" + in(charmap.Windows1252), "text/html", "<html>" + text},

		// Not named, and no UTF-8: left as it is, for the parser to cope with.
		{"windows-1252, unnamed", in(charmap.Windows1252), "text/plain", in(charmap.Windows1252)},
		// Named wrongly: the addresses are there whatever the names look like.
		{"ASCII, called UTF-16", ascii, "text/plain; charset=utf-16", ascii},
		{"ASCII, called UTF-16BE", ascii, "text/plain; charset=utf-16be", ascii},
		{"ASCII, called what is never decoded", ascii, "text/plain; charset=iso-2022-kr", ascii},
		{"UTF-8, called windows-1252", "1.2.3.4:80 # é\n", "text/plain; charset=windows-1252", "1.2.3.4:80 # Ã©\n"},
		{"a charset that nobody knows", text, "text/plain; charset=klingon", text},
		{"a type that is none", text, "text/plain; charset", text},
		{"nothing", "", "text/plain; charset=utf-16", ""},
		{"a single byte", "1", "", "1"},
	} {
		r, err := decode(strings.NewReader(c.body), nil, c.contentType, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}

	// Whichever way, the list is there.
	for _, body := range []string{in(charmap.Windows1252), in(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)), text} {
		for _, charset := range []string{"", "; charset=utf-8", "; charset=windows-1252", "; charset=utf-16", "; charset=shift_jis", "; charset=gb18030", "; charset=x-user-defined", "; charset=hz-gb-2312"} {
			l, err := NewFetcher(Options{}).Fetch(t.Context(), source(serveBody(t, body, "Content-Type", "text/plain"+charset)))
			if err != nil || len(l.Candidates) != 2 {
				t.Errorf("%.20q as %q: %d candidates, %v", body, charset, len(l.Candidates), err)
			}
		}
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source("file://"+write(t, "list.txt", body)))
		if err != nil || len(l.Candidates) != 2 {
			t.Errorf("%.20q as a file: %d candidates, %v", body, len(l.Candidates), err)
		}
	}
}

// Each layer is bounded by itself: what one makes much of, the next may make little
// of again.
func TestL5_DecodedTextIsBounded(t *testing.T) {
	utf16, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(strings.Repeat("x", 1000))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ body, encoding string }{
		"unpacked, many times nothing": {pack(t, "br", strings.Repeat(pack(t, "gzip", ""), 1000)), "br"},
		"a file of two bytes for one":  {pack(t, "gzip", utf16), ""},
	} {
		r, err := decode(strings.NewReader(c.body), []string{c.encoding}, "", 1500)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	// A charset makes more of a text than there was.
	r, err := decode(strings.NewReader(strings.Repeat("\xe4", 1000)), nil, "text/plain; charset=latin1", 1500)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%d bytes, %v; want ErrTooLarge", n, err)
	}
}

func FuzzL5_Decode(f *testing.F) {
	encodings := []string{"", "gzip", "br", "zstd"}
	for i, encoding := range encodings {
		var b bytes.Buffer
		if encoding == "" {
			b.WriteString(listOf(3))
		} else {
			w := packers()[encoding](&b)
			io.WriteString(w, listOf(3))
			w.Close()
		}
		f.Add(b.Bytes(), uint8(i), "text/plain; charset=utf-16")
	}
	f.Add([]byte("\xff\xfe1\x00.\x00"), uint8(0), "")
	f.Fuzz(func(t *testing.T, body []byte, encoding uint8, contentType string) {
		const limit = 1 << 16
		r, err := decode(bytes.NewReader(body), []string{encodings[int(encoding)%len(encodings)]}, contentType, limit)
		if err != nil {
			return
		}
		defer r.Close()
		// The byte beyond the limit comes with the error.
		if n, err := io.Copy(io.Discard, r); n > limit+1 || n > limit && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}
