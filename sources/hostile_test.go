package sources

import (
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// repeated reads as a text before, one that is repeated, and one behind.
func repeated(before, text string, times int, behind string) io.Reader {
	return io.MultiReader(strings.NewReader(before), &repeat{text: text, left: times}, strings.NewReader(behind))
}

type repeat struct {
	text string
	at   int
	left int // times
}

func (r *repeat) Read(p []byte) (n int, err error) {
	for n < len(p) && r.left > 0 {
		took := copy(p[n:], r.text[r.at:])
		n += took
		if r.at += took; r.at == len(r.text) {
			r.at = 0
			r.left--
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// heldReader measures what its reader holds, however busy the machine is: what is
// still held when it asks for more, and with that all that it has allocated since
// then.
type heldReader struct {
	r         io.Reader
	held      int64 // bytes of the heap that were in use at the last collection
	allocated int64 // bytes that had been allocated by then
	peak      int64 // of bytes that may have been in use
}

// collected is how many bytes are allocated from one collection to the next.
const collected = 1 << 20

func (h *heldReader) Read(p []byte) (int, error) {
	if h.measure() > collected {
		h.collect()
	}
	return h.r.Read(p)
}

func (h *heldReader) measure() (since int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	since = int64(m.TotalAlloc) - h.allocated
	h.peak = max(h.peak, h.held+since)
	return since
}

func (h *heldReader) collect() {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.held, h.allocated = int64(m.HeapAlloc), int64(m.TotalAlloc)
	h.peak = max(h.peak, h.held)
}

// Documents that are made to cost much end quickly, with little memory, whatever
// they are taken for.
func TestL5_HostileDocumentsCostLittle(t *testing.T) {
	const mib = 1 << 20
	good := `{"ip":"1.2.3.4","port":80}`
	for _, c := range []struct {
		name   string
		text   func() io.Reader
		format string // "" for auto
		want   error  // any of these; nil for a list
		count  int
	}{
		{"JSON: a million arrays in one another", func() io.Reader { return repeated("", "[", 1e6, "") }, "", ErrDamaged, 0},
		{"JSON: a million objects in one another", func() io.Reader { return repeated("", `{"data":`, 1e6, "") }, "", ErrDamaged, 0},
		{"JSON: a text of 15 MiB", func() io.Reader { return repeated(`["`, "x", 15*mib, `"]`) }, "", ErrDamaged, 0},
		{"JSON: a text of escapes", func() io.Reader { return repeated(`["`, `\u0041`, 2*mib, `"]`) }, "", ErrDamaged, 0},
		{"JSON: a number of 15 MiB", func() io.Reader { return repeated(`[{"port":`, "1", 15*mib, `}]`) }, "", ErrDamaged, 0},
		{"JSON: a key of 15 MiB", func() io.Reader { return repeated(`[{"`, "k", 15*mib, `":1}]`) }, "", ErrDamaged, 0},
		{"JSON: a million keys", func() io.Reader { return repeated(`[{`, `"k":1,`, 1e6, `"ip":"1.2.3.4","port":80}]`) }, "", nil, 1},
		{"JSON: a million addresses of one object", func() io.Reader { return repeated(`[{`, `"ip":"1.2.3.4","proxy":"1.2.3.4:80",`, 2e5, `"port":80}]`) }, "", nil, 1},
		{"JSON: a million ports of one object", func() io.Reader { return repeated(`[{"ip":"1.2.3.4","ports":[`, `80,`, 1e6, `81]}]`) }, "", nil, 1},
		{"JSON: a million columns", func() io.Reader { return repeated(`[["1.2.3.4",80`, `,"x"`, 1e6, `]]`) }, "", ErrUnreadable, 0},
		{"JSON: records in a record", func() io.Reader { return repeated(`[{"ip":"1.2.3.4","port":80,"before":[`, good+",", 1e5, good+`]}]`) }, "", nil, 1},
		{"JSON: records in what is none", func() io.Reader { return repeated(`[{"before":[`, good+",", 1e5, good+`]}]`) }, "", nil, 1},
		{"JSON: spaces", func() io.Reader { return repeated(`[`, " ", 15*mib, good+`]`) }, "", ErrUnreadable, 0},
		{"JSON: empty objects", func() io.Reader { return repeated(`[`, "{},", 3e6, good+`]`) }, "", ErrUnreadable, 1},
		{"JSON: documents without an end", func() io.Reader { return repeated("", "[]", 7*mib, "") }, "", ErrEmpty, 0},
		{"JSON lines: a long one", func() io.Reader { return repeated(good+"\n"+good+"\n"+`{"x":"`, "x", 15*mib, "\"}\n"+good) }, "", nil, 1},
		{"JSON lines: deep ones", func() io.Reader {
			return repeated(good+"\n"+good+"\n", `{"data":`+strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+"}\n", 5e3, good)
		}, "", ErrUnreadable, 1},
		{"CSV: a million columns", func() io.Reader { return repeated("ip,port\n1.2.3.4,80\n1.2.3.5,80", ",x", 1e6, "\n1.2.3.6,80\n") }, "", nil, 2},
		{"CSV: a head of a million columns", func() io.Reader { return repeated("ip,port", ",x", 1e6, "\n1.2.3.6,80\n") }, "csv", nil, 1},
		{"CSV: a thousand columns, in each row", func() io.Reader {
			return repeated("ip,port"+strings.Repeat(",x", 1000)+"\n", "1.2.3.4,80"+strings.Repeat(",y", 1000)+"\n", 5000, "")
		}, "csv", ErrUnreadable, 0},
		{"CSV: a quote that is never closed", func() io.Reader { return repeated("ip,port\n1.2.3.4,80\n1.2.3.5,\"", "80\n", 4e6, "") }, "", ErrUnreadable, 1},
		{"CSV: quotes alone", func() io.Reader { return repeated("ip,port\n1.2.3.4,80\n", "\"\n", 7*mib, "") }, "", ErrUnreadable, 1},
		{"CSV: half-quoted long rows", func() io.Reader {
			return repeated("ip,port\n1.2.3.4,80\n", "\""+strings.Repeat("x", 4000)+"\n", 3900, "")
		}, "", ErrUnreadable, 1},
		{"lines: one of 15 MiB", func() io.Reader { return repeated("1.2.3.4:80\n", "x", 15*mib, "\n1.2.3.5:80\n") }, "", nil, 2},
		{"lines: separators", func() io.Reader { return repeated("1.2.3.4:80\n", strings.Repeat(",", 500)+"\n", 3e4, "") }, "", ErrUnreadable, 1},
		{"lines: schemes before schemes", func() io.Reader { return repeated("1.2.3.4:80\n", strings.Repeat("http://", 70)+"\n", 3e4, "") }, "", ErrUnreadable, 1},
		{"YAML: aliases of aliases", func() io.Reader {
			return strings.NewReader("proxies:\n - ip: 1.2.3.4\n   port: 80\n - a: &a [x,x,x,x,x,x,x,x,x]\n" +
				"   b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n   c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n   d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n   e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n")
		}, "", nil, 1},
		{"YAML: brackets", func() io.Reader { return repeated("proxies:\n - ip: 1.2.3.4\n   port: 80\n - x: ", "[", 16000, "\n") }, "", nil, 1},
		{"YAML: brackets without an end", func() io.Reader { return repeated("- ", "[", 15*mib, "\n- 1.2.3.4:80\n") }, "", nil, 1},
		{"YAML: dashes", func() io.Reader { return repeated("- 1.2.3.4:80\n", "- ", 8000, "x\n") }, "", nil, 1},
		{"YAML: deeper and deeper", func() io.Reader {
			var b strings.Builder
			b.WriteString("- 1.2.3.4:80\n-\n")
			for i := range 170 {
				b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
			}
			return strings.NewReader(b.String())
		}, "", nil, 1},
		{"YAML: quotes", func() io.Reader { return repeated("- 1.2.3.4:80\n- ", `"`, 16001, "\n") }, "", nil, 1},
		{"YAML: keys", func() io.Reader { return repeated("- 1.2.3.4:80\n- ", "a: ", 5000, "\n") }, "", nil, 1},
		{"YAML: questions", func() io.Reader { return repeated("- 1.2.3.4:80\n- ", "? ", 8000, "\n") }, "", nil, 1},
		{"YAML: an item of 15 MiB", func() io.Reader { return repeated("- 1.2.3.4:80\n- x:\n", "  - 1.2.3.5:80\n", mib, "") }, "", nil, 1},
		{"YAML: keys without an end", func() io.Reader { return repeated("a:\n b:\n", " c: d\n", 2*mib, "") }, "", ErrDamaged, 0},
		{"XML: elements in one another", func() io.Reader { return repeated("<p>", "<p>", 1e6, "") }, "xml", ErrMarkup, 0},
		{"XML: elements in one another, behind a record", func() io.Reader { return repeated("<p><q><ip>1.2.3.4</ip><port>80</port></q>", "<p>", 1e6, "") }, "xml", ErrDamaged, 1},
		{"XML: a text of 15 MiB", func() io.Reader { return repeated("<p><q><ip>1.2.3.4</ip><port>80</port></q>", "x", 15*mib, "</p>") }, "xml", ErrDamaged, 1},
		{"XML: a comment of 15 MiB", func() io.Reader {
			return repeated("<p><q><ip>1.2.3.4</ip><port>80</port></q><!--", "x", 15*mib, "--></p>")
		}, "xml", ErrDamaged, 1},
		{"XML: a tag of 15 MiB", func() io.Reader {
			return repeated("<p><q><ip>1.2.3.4</ip><port>80</port></q><r", " a='b'", 2*mib, "></r></p>")
		}, "xml", ErrDamaged, 1},
		{"XML: pieces of one text", func() io.Reader {
			return repeated("<p><q><ip>1.2.3.4</ip><port>80</port></q><r>", "x<!---->", 1e6, "</r></p>")
		}, "xml", nil, 1},
		{"XML: entities of entities", func() io.Reader {
			return strings.NewReader(`<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "1.2.3.4"><!ENTITY b "&a;&a;&a;&a;">]><p><q><ip>1.2.3.4</ip><port>80</port></q><q><ip>&b;</ip><port>80</port></q></p>`)
		}, "", ErrDamaged, 1},
		{"XML: an external entity", func() io.Reader {
			return strings.NewReader(`<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a SYSTEM "file:///etc/passwd">]><p><q><ip>1.2.3.4</ip><port>80</port></q><q>&a;</q></p>`)
		}, "", ErrDamaged, 1},
		{"HTML: a script of 15 MiB", func() io.Reader {
			return repeated("<html><table><tr><th>IP</th><th>Port</th></tr><script>", "x", 15*mib, "</script></table></html>")
		}, "", ErrDamaged, 0},
		{"HTML: a million columns", func() io.Reader {
			return repeated("<table><tr><th>IP</th><th>Port</th></tr><tr><td>1.2.3.4</td><td>80</td></tr><tr>", "<td>1</td>", 1e6, "</tr></table>")
		}, "", nil, 1},
		{"HTML: a cell of 15 MiB", func() io.Reader {
			return repeated("<table><tr><th>IP</th><th>Port</th></tr><tr><td>1.2.3.4</td><td>80</td></tr><tr><td>", "x<b>", 3*mib, "</td></tr></table>")
		}, "", nil, 1},
		{"HTML: tables in tables", func() io.Reader {
			return repeated("<table><tr><th>IP</th><th>Port</th></tr><tr><td>1.2.3.4</td><td>80</td></tr>", "<table>", 1e6, "</table>")
		}, "", ErrTruncated, 1},
		{"HTML: an attribute of 15 MiB", func() io.Reader { return repeated("<html><a href='", "x", 15*mib, "'></html>") }, "", ErrMarkup, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l List
			var err error
			start := time.Now()
			m := &heldReader{r: c.text()}
			m.collect()
			before := m.held
			l, err = Parse(m, Source{Scheme: proxyurl.HTTP, Format: c.format}, Limits{})
			m.measure()
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
			if peak := m.peak - before; peak > 8*mib {
				t.Errorf("%d KiB more memory at the peak", peak>>10)
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || len(l.Candidates) != c.count {
				t.Errorf("%d candidates, %v; want %d, %v; format %s, rejects %v", len(l.Candidates), err, c.count, c.want, l.Format, l.Rejects)
			}
			for _, s := range l.Samples {
				if len(s.Text) > sampleBytes+len("...") {
					t.Errorf("a sample of %d bytes", len(s.Text))
				}
			}
		})
	}
}
