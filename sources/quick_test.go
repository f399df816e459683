package sources

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"evenpool/sources/proxyurl"
)

// Whether a line is read quickly or the long way, its number, the format that it
// counts for, and what is shown of it are the same.
func TestQuickLines(t *testing.T) {
	for _, c := range []struct {
		name, text string
		src        Source
		maxLine    int
		want       []string
		format     string
		records    int
		samples    []string // line, reason and text
		err        error
	}{
		{name: "numbers, among others, blank ones and ends of both kinds", src: Source{Scheme: proxyurl.HTTP},
			text:   "1.2.3.4:80\r\n\r\n10.0.0.1:80\nnonsense\nsocks5://10.0.0.2:80\r\n\n# x\nvmess://x\n1.2.3.5:80\r\n10.0.0.3:80",
			want:   []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]"},
			format: "plain", records: 7,
			samples: []string{"3 private 10.0.0.1:80", "4 unparseable nonsense", "5 private socks5://10.0.0.2:80", "8 unsupported-scheme vmess://***", "10 private 10.0.0.3:80"}},
		{name: "beyond the last that is shown", src: Source{Scheme: proxyurl.HTTP},
			text: "1.2.3.4:80\n" + strings.Repeat("10.0.0.1:80\n", 7) + strings.Repeat("1.2.3.4:80\n", 8), want: []string{"1.2.3.4:80[http]"}, format: "plain", records: 16,
			samples: []string{"2 private 10.0.0.1:80", "3 private 10.0.0.1:80", "4 private 10.0.0.1:80", "5 private 10.0.0.1:80", "6 private 10.0.0.1:80"}},
		{name: "all of them", src: Source{Scheme: proxyurl.HTTP}, text: "1.2.3.4:80\n1.2.3.5:80\n1.2.3.6:80\n",
			want: []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]", "1.2.3.6:80[http]"}, format: "plain", records: 3},
		{name: "the last one has no end", src: Source{Scheme: proxyurl.HTTP}, text: "1.2.3.4:80\n1.2.3.5:80\n1.2.3.6:80",
			want: []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]", "1.2.3.6:80[http]"}, format: "plain", records: 3},
		{name: "more with a scheme", src: Source{Scheme: proxyurl.HTTP}, text: "1.2.3.4:80\n1.2.3.5:80\nhttps://1.2.3.4:80\nsocks4a://1.2.3.6:80\nsocks4://1.2.3.7:80\n",
			want: []string{"1.2.3.4:80[http https]", "1.2.3.5:80[http]", "1.2.3.6:80[socks4a]", "1.2.3.7:80[socks4]"}, format: "scheme", records: 5},
		{name: "just the longest", src: Source{Scheme: proxyurl.HTTP}, maxLine: 19, text: "1.2.3.4:80\n9.255.255.255:65535\r\n9.255.255.255:65535\n",
			want: []string{"1.2.3.4:80[http]", "9.255.255.255:65535[http]"}, format: "plain", records: 3},
		{name: "longer than the longest", src: Source{Scheme: proxyurl.HTTP}, maxLine: 18, text: "1.2.3.4:80\n1.2.3.4:81\n9.255.255.255:65535\r\nhttp://1.2.3.4:4321\n",
			want: []string{"1.2.3.4:80[http]", "1.2.3.4:81[http]"}, format: "plain", records: 4,
			samples: []string{"3 line-too-long 9.255.255.255...", "4 line-too-long http://1.2.3.4..."}},
		{name: "a scheme to be found out", src: Source{Scheme: proxyurl.Any}, text: "\n1.2.3.4:80\nsocks5://1.2.3.4:80\nany://1.2.3.5:80\n1.2.3.6:80\n",
			want: []string{"1.2.3.4:80[socks5 any]", "1.2.3.6:80[any]"}, format: "scheme", records: 4,
			samples: []string{"4 unsupported-scheme any://***"}},
		{name: "no scheme", text: "\n1.2.3.4:80\nsocks5://1.2.3.5:80\nhttp://1.2.3.6:80\n",
			want: []string{"1.2.3.5:80[socks5]", "1.2.3.6:80[http]"}, format: "scheme", records: 3, samples: []string{"2 no-scheme 1.2.3.4:80"}},
		{name: "no scheme in any", text: "\n1.2.3.4:80\n1.2.3.5:80\n", format: "plain", records: 2,
			samples: []string{"2 no-scheme 1.2.3.4:80", "3 no-scheme 1.2.3.5:80"}, err: ErrEmpty},
		{name: "one format alone: plain", src: Source{Scheme: proxyurl.HTTP, Format: "plain"}, text: "\n1.2.3.4:80\n1.2.3.6:80\nsocks5://1.2.3.5:80\n",
			want: []string{"1.2.3.4:80[http]", "1.2.3.6:80[http]"}, format: "plain", records: 3, samples: []string{"4 unparseable socks5://1.2.3.5:80"}},
		{name: "one format alone: scheme", src: Source{Scheme: proxyurl.HTTP, Format: "scheme"}, text: "\nsocks5://1.2.3.5:80\n1.2.3.4:80\nhttp://1.2.3.6:80\n",
			want: []string{"1.2.3.5:80[socks5]", "1.2.3.6:80[http]"}, format: "scheme", records: 3, samples: []string{"3 unparseable 1.2.3.4:80"}},
		{name: "none of both", src: Source{Scheme: proxyurl.HTTP, Format: "userpass"}, text: "\n1.2.3.4:80\nhttp://1.2.3.5:80\n1.2.3.4:80:joe:x\n1.2.3.5:80:joe:x\n1.2.3.6:80:joe:x\n",
			want:   []string{"joe:x@1.2.3.4:80[http]", "joe:x@1.2.3.5:80[http]", "joe:x@1.2.3.6:80[http]"},
			format: "userpass", records: 5, samples: []string{"2 unparseable 1.2.3.4:80", "3 unparseable http://1.2.3.5:80"}},
	} {
		l, got, err := parse(t, c.text, c.src, Limits{MaxLine: c.maxLine})
		var samples []string
		for _, s := range l.Samples {
			samples = append(samples, fmt.Sprintf("%d %s %s", s.Line, s.Reason, s.Text))
		}
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, err, c.want, c.err)
		}
		if l.Format != c.format || l.Records != c.records || !slices.Equal(samples, c.samples) {
			t.Errorf("%s: %s, %d records, samples %q; want %s, %d, %q", c.name, l.Format, l.Records, samples, c.format, c.records, c.samples)
		}
	}
}

// readLines reads a text in some of the formats of lines.
func readLines(l lineList, r io.Reader, scheme proxyurl.Scheme, maxLine int) (List, map[string]int, error) {
	c := newCollector(Source{Scheme: scheme}, Limits{MaxLine: maxLine, MaxCandidates: 100}.orDefault())
	err := l.read(newInput(r), c)
	formats := maps.Clone(c.formats)
	maps.DeleteFunc(formats, func(_ string, n int) bool { return n == 0 })
	return c.finish(), formats, err
}

// checkQuick compares what is read of a text with what is read where a space before
// each line makes it none of the quick ones.
func checkQuick(t *testing.T, text string) {
	t.Helper()
	if strings.HasPrefix(text, "\xef\xbb\xbf") {
		return // a mark of byte order at the beginning alone
	}
	const maxLine = 20
	long := " " + strings.ReplaceAll(text, "\n", "\n ")
	for _, l := range []lineList{lineFormats(), {plainFormat{}}, lineFormats()[:1], {userPassFormat{}}} {
		for _, scheme := range []proxyurl.Scheme{"", proxyurl.HTTP, proxyurl.Any} {
			quick, quickFormats, _ := readLines(l, strings.NewReader(text), scheme, maxLine)
			slow, slowFormats, _ := readLines(l, strings.NewReader(long), scheme, maxLine+1)
			if !reflect.DeepEqual(quick, slow) || !maps.Equal(quickFormats, slowFormats) {
				t.Fatalf("%s, scheme %q, %q:\nquick %+v %v\nslow  %+v %v", l.name(), scheme, text, quick, quickFormats, slow, slowFormats)
			}
		}
	}
}

// quickPieces are what lists are made of that are read quickly, and of what is
// nearly so.
var quickPieces = []string{
	"1.2.3.4:80", "1.2.3.5:8080", "10.0.0.1:80", "9.255.255.255:65535", "1.2.3.4:65536", "1.2.3.4:080", "1.2.3.4:0", "01.2.3.4:80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:8080801",
	"http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://", "any://", "HTTP://", "vmess://", "://", "http:/", "/", "#", " ", "\t", "\r", "\n", "\r\n", "\n\n",
	":joe:x", ":Germany", ",US", "|Peru", " US", strings.Repeat("x", 11), "\x00", "\xff", "",
}

// However lines are spread over the pieces that are read at a time, whatever stands
// between them.
func TestQuickLinesAreReadAsTheLongWay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b strings.Builder
		for size := random.IntN(10_000); b.Len() < size; {
			for range 1 + random.IntN(2) {
				b.WriteString(quickPieces[random.IntN(len(quickPieces))])
			}
			b.WriteString([]string{"\n", "\n", "\n", "\r\n", ""}[random.IntN(5)])
			b.WriteString(strings.Repeat("1.2.3.4:80\n", random.IntN(40)))
		}
		checkQuick(t, b.String())
	}
}

func FuzzL2_QuickIsAsTheLongWay(f *testing.F) {
	for _, piece := range quickPieces {
		f.Add("1.2.3.4:80\n" + piece + "1.2.3.4:80\n1.2.3.4:80" + piece + "\r\nhttp://1.2.3.4:80" + piece)
	}
	f.Fuzz(checkQuick)
}

// The end of what has been read is not the end of a line, nor is that of a stream
// that breaks off.
func TestQuickLinesEndWithTheirLine(t *testing.T) {
	text := strings.Repeat("1.2.3.4:8080\nsocks5://1.2.3.4:8080\r\n", 1000) + "1.2.3.4:80\n1.2.3.4:8080"
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		"halves": iotest.HalfReader(strings.NewReader(text)), "with the end": iotest.DataErrReader(strings.NewReader(text)),
	} {
		l, _, err := readLines(lineFormats(), r, proxyurl.HTTP, 0)
		if got, want := show(l.Candidates), []string{"1.2.3.4:8080[http socks5]", "1.2.3.4:80[http]"}; err != nil || !slices.Equal(got, want) || l.Records != 2002 {
			t.Errorf("%s: %v, %d records, %v; want %v, 2002", name, got, l.Records, err, want)
		}
	}
	for cut := range len("socks5://1.2.3.5:8080\r") + 1 {
		broken := "1.2.3.4:80\n1.2.3.4:80\n" + "socks5://1.2.3.5:8080\r"[:cut]
		l, _, err := readLines(lineFormats(), io.MultiReader(strings.NewReader(broken), iotest.ErrReader(io.ErrUnexpectedEOF)), proxyurl.HTTP, 0)
		if got := show(l.Candidates); !errors.Is(err, io.ErrUnexpectedEOF) || !slices.Equal(got, []string{"1.2.3.4:80[http]"}) || l.Records != 2 {
			t.Errorf("%q: %v, %d records, %v", broken, got, l.Records, err)
		}
	}
}
