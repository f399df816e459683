package sources

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"evenpool/sources/proxyurl"
)

// parse reads a list given as text, and shows its candidates as "endpoint
// schemes".
func parse(t *testing.T, text string, src Source, limits Limits) (List, []string, error) {
	t.Helper()
	l, err := Parse(strings.NewReader(text), src, limits)
	return l, show(l.Candidates), err
}

func show(candidates []Candidate) (shown []string) {
	for _, c := range candidates {
		shown = append(shown, fmt.Sprintf("%v%v", c.Endpoint, c.Schemes))
	}
	return shown
}

// Every way of writing a record, and every way of damaging one, with its one
// right outcome.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		line string
		want string // endpoint and schemes
		why  Reason
	}{
		{line: "1.2.3.4:80", want: "1.2.3.4:80[http]"},
		{line: "  1.2.3.4:80\t", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4:80 # the best", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4:80\t#", want: "1.2.3.4:80[http]"},
		{line: "proxy.example.org:80", want: "proxy.example.org:80[http]"},
		{line: "[2606:4700::1]:80", want: "[2606:4700::1]:80[http]"},
		{line: "[::ffff:1.2.3.4]:80", want: "1.2.3.4:80[http]"},
		{line: "joe:secret@1.2.3.4:80", want: "joe:secret@1.2.3.4:80[http]"},
		{line: "joe:secret@[2606:4700::1]:80", want: "joe:secret@[2606:4700::1]:80[http]"},
		{line: "joe:sec%3aret@1.2.3.4:80", want: "joe:sec%3Aret@1.2.3.4:80[http]"},
		{line: "joe:1234:x@1.2.3.4:80", want: "joe:1234%3Ax@1.2.3.4:80[http]"},
		{line: "1.2.3.4:80:joe:secret", want: "joe:secret@1.2.3.4:80[http]"},
		{line: "1.2.3.4:80:joe:se:c@re#t%41", want: "joe:se%3Ac%40re%23t%2541@1.2.3.4:80[http]"},
		{line: "1.2.3.4:80:joe@example.org:secret", want: "joe%40example.org:secret@1.2.3.4:80[http]"},
		{line: "[2606:4700::1]:80:joe:secret", want: "joe:secret@[2606:4700::1]:80[http]"},
		{line: "proxy.example.org:80:joe:secret", want: "joe:secret@proxy.example.org:80[http]"},

		{line: "socks5://1.2.3.4:1080", want: "1.2.3.4:1080[socks5]"},
		{line: "SOCKS5://1.2.3.4:1080/", want: "1.2.3.4:1080[socks5]"},
		{line: "socks5h://1.2.3.4:1080", want: "1.2.3.4:1080[socks5]"},
		{line: "socks4a://1.2.3.4:1080", want: "1.2.3.4:1080[socks4a]"},
		{line: "https://1.2.3.4:443", want: "1.2.3.4:443[https]"},
		{line: "socks5://joe:secret@1.2.3.4:1080", want: "joe:secret@1.2.3.4:1080[socks5]"},
		{line: "socks5://1.2.3.4:1080:joe:secret", want: "joe:secret@1.2.3.4:1080[socks5]"},
		{line: "socks5://[2606:4700::1]:1080", want: "[2606:4700::1]:1080[socks5]"},

		{line: "vmess://eyJhZGQiOiIxLjIuMy40In0=", why: "unsupported-scheme"},
		{line: "trojan://x@1.2.3.4:443?a=b#http://1.2.3.4:80", why: "unsupported-scheme"},
		{line: "ss://1.2.3.4:80", why: "unsupported-scheme"},
		{line: "socks://1.2.3.4:80", why: "unsupported-scheme"},
		{line: "ftp://1.2.3.4:80", why: "unsupported-scheme"},

		{line: "Array", why: "unparseable"},
		{line: "1.2.3.4", why: "unparseable"},
		{line: "1.2.3.4 80", why: "unparseable"},
		{line: "updated at 2026-08-22 10:00:01", why: "unparseable"},
		{line: "Socks proxy=https://example.org/socks.txt", why: "unparseable"},
		{line: "https://example.org/list.txt", why: "unparseable"},
		{line: "http://example.org:80/list.txt", why: "bad-port"},
		{line: "2606:4700::1:80", why: "unparseable"},
		{line: "\xff\xfe1\x00.\x002\x00", why: "unparseable"},
		{line: "1.2.3.4:080", why: "bad-port"},
		{line: "1.2.3.4:70000", why: "bad-port"},
		{line: "1.2.3.04:80", why: "leading-zero"},
		{line: "1.2.3.400:80", why: "bad-host"},
		{line: "01.2.3.4:80:joe:secret", why: "leading-zero"},
		{line: "1.2.3.4:080:joe:secret", why: "bad-port"},
		{line: "1.2.3.4:80::secret", why: "bad-user"},
		{line: "1.2.3.4:80:joe:", why: "bad-user"},
		{line: "joe:%zz@1.2.3.4:80", why: "bad-user"},
		{line: "[1.2.3.4]:80:joe:secret", why: "unparseable"},
		{line: "[proxy.example.org]:80:joe:secret", why: "unparseable"},

		// Two addresses that were glued together: neither is rescued, and none is
		// made up.
		{line: "1.2.3.4:805.6.7.8:80", why: "unparseable"},
		{line: "1.2.3.4:80:5.6.7.8:81", why: "unparseable"},
		{line: "1.2.3.4:80:5.6.7.800:81", why: "unparseable"},
		{line: "1.2.3.4:80:[2606:4700::1]:81", why: "unparseable"},
		{line: "1.2.3.4:80@5.6.7.8:81", why: "unparseable"},
		{line: "1.2.3.4:80 5.6.7.8:81", why: "unparseable"},
		{line: "1.2.3.4:80\t5.6.7.8:81:x:y", why: "unparseable"},
		{line: "http://1.2.3.4:80http://5.6.7.8:81", why: "unparseable"},
		{line: "1.2.3.4:80:http://5.6.7.8:81", why: "unparseable"},
		{line: "http://1.2.3.4:80:http://5.6.7.8:81", why: "unparseable"},
		{line: "http://http://1.2.3.4:80", why: "unparseable"},
		// A name with user and password behind it, or a user with a host?
		{line: "joe.doe:1234:x@1.2.3.4:80", why: "unparseable"},
		{line: "proxy.example.org:80:joe@example.org:8080", why: "unparseable"},

		{line: "10.0.0.1:80", why: "private"},
		{line: "127.0.0.1:80", why: "loopback"},
		{line: "[::ffff:127.0.0.1]:80", why: "loopback"},
		{line: "joe:secret@192.168.0.1:80", why: "private"},
		{line: "169.254.169.254:80", why: "link-local"},
		{line: "203.0.113.7:80", why: "documentation"},
		{line: "[fe80::1]:80", why: "link-local"},
	} {
		l, got, _ := parse(t, c.line, Source{Scheme: proxyurl.HTTP}, Limits{})
		want, rejects := []string{c.want}, map[Reason]int(nil)
		if c.why != "" {
			want, rejects = nil, map[Reason]int{c.why: 1}
		}
		if !slices.Equal(got, want) || !maps.Equal(l.Rejects, rejects) || l.Records != 1 {
			t.Errorf("%q: %v, rejects %v, %d records; want %v, %v", c.line, got, l.Rejects, l.Records, want, rejects)
		}
	}
}

func TestBlankLinesAndCommentsAreNoRecords(t *testing.T) {
	l, got, err := parse(t, "\xef\xbb\xbf# list\r\n\r\n1.2.3.4:80\r\n  \t\n#5.6.7.8:80\n\n1.2.3.5:80", Source{Scheme: proxyurl.HTTP}, Limits{})
	if want := []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]"}; err != nil || !slices.Equal(got, want) || l.Records != 2 {
		t.Errorf("%v, %d records, %v; want %v and 2", got, l.Records, err, want)
	}
	// A byte order mark before the first record belongs to no address.
	if _, got, err := parse(t, "\xef\xbb\xbf1.2.3.4:80\n", Source{Scheme: proxyurl.HTTP}, Limits{}); err != nil || len(got) != 1 {
		t.Errorf("behind a byte order mark: %v, %v", got, err)
	}
}

func TestSchemesAreClaimsOnOneCandidate(t *testing.T) {
	l, got, err := parse(t, `socks5://1.2.3.4:80
1.2.3.4:80
http://1.2.3.4:80
socks5://[::ffff:1.2.3.4]:80
https://1.2.3.5:80
1.2.3.5:80:joe:secret
joe:secret@1.2.3.5:80
jim:secret@1.2.3.5:80
nonsense
`, Source{Name: "mixed", Scheme: proxyurl.HTTP}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1.2.3.4:80[http socks5]", "1.2.3.5:80[https]",
		"joe:secret@1.2.3.5:80[http]", "jim:secret@1.2.3.5:80[http]"}; !slices.Equal(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
	l.Candidates = nil
	want := List{Source: "mixed", Format: "scheme", Records: 9, Duplicates: 3, Rejects: map[Reason]int{"unparseable": 1},
		Pairs:   4, // 1.2.3.4:80 under http and socks5, 1.2.3.5:80 under https and http
		Samples: []Reject{{Line: 9, Reason: "unparseable", Text: "nonsense"}}}
	if !reflect.DeepEqual(l, want) {
		t.Errorf("got  %+v\nwant %+v", l, want)
	}
}

func TestNoScheme(t *testing.T) {
	l, got, err := parse(t, "1.2.3.4:80\nsocks4://1.2.3.5:80\n", Source{}, Limits{})
	if want := []string{"1.2.3.5:80[socks4]"}; err != nil || !slices.Equal(got, want) || l.Rejects[ReasonNoScheme] != 1 {
		t.Errorf("%v, %v, %v", got, l.Rejects, err)
	}
	if l.Format != "scheme" { // of two that are as frequent, the first in formats
		t.Errorf("format %q, want scheme", l.Format)
	}
	if _, _, err := parse(t, "1.2.3.4:80\n1.2.3.5:80", Source{}, Limits{}); !errors.Is(err, ErrEmpty) ||
		err.Error() != "the list names no candidate in 2 records (no-scheme 2)" {
		t.Errorf("none with a scheme: %v", err)
	}
}

func TestL1_OnlyTheSourcesOwnPrefixesAreOpened(t *testing.T) {
	text := "127.0.0.1:80\n127.0.0.2:80\n10.0.0.1:80\n8.8.8.8:80\n"
	l, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP, Allow: allow("127.0.0.1/32")}, Limits{})
	if want := []string{"127.0.0.1:80[http]", "8.8.8.8:80[http]"}; err != nil || !slices.Equal(got, want) ||
		!maps.Equal(l.Rejects, map[Reason]int{"loopback": 1, "private": 1}) {
		t.Errorf("%v, %v, %v", got, l.Rejects, err)
	}
}

func TestL5_AnOverlongLineCostsItselfAlone(t *testing.T) {
	fits := "1.2.3.4:80:joe:" + strings.Repeat("x", 255)
	fits += " # " + strings.Repeat("y", 512-3-len(fits))
	text := "1.2.3.5:80\n" + strings.Repeat("z", 513) + "\r\n" + fits + "\r\n" + strings.Repeat("1.2.3.4:80 ", 100_000) + "\n1.2.3.6:80\n"
	l, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{})
	if err != nil || len(got) != 3 || l.Records != 5 || !maps.Equal(l.Rejects, map[Reason]int{ReasonLineTooLong: 2}) {
		t.Errorf("%d candidates, %d records, rejects %v, %v", len(got), l.Records, l.Rejects, err)
	}
	if want := []int{2, 4}; len(l.Samples) != 2 || l.Samples[0].Line != want[0] || l.Samples[1].Line != want[1] {
		t.Errorf("samples %v, want lines %v", l.Samples, want)
	}
	// The last line may be the long one, with nothing behind it.
	l, got, err = parse(t, "1.2.3.5:80\n"+strings.Repeat("z", 100_000), Source{Scheme: proxyurl.HTTP}, Limits{})
	if err != nil || len(got) != 1 || l.Rejects[ReasonLineTooLong] != 1 {
		t.Errorf("at the end: %v, %v, %v", got, l.Rejects, err)
	}
}

// endless is a line without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestL5_AnEndlessLineIsNotBuffered(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	l, err := Parse(endless{}, Source{Scheme: proxyurl.HTTP}, Limits{MaxBytes: 64 << 20})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooLarge) || l.Records != 0 {
		t.Errorf("%v, %d records", err, l.Records)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated for 64 MiB of one line", used)
	}
}

func TestL5_MaxBytes(t *testing.T) {
	text := "1.2.3.4:80\n1.2.3.5:80\n"
	if _, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{MaxBytes: int64(len(text))}); err != nil || len(got) != 2 {
		t.Errorf("just the limit: %v, %v", got, err)
	}
	_, _, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{MaxBytes: int64(len(text)) - 1})
	if !errors.Is(err, ErrTooLarge) || err.Error() != "the list is too large: more than 21 bytes" {
		t.Errorf("one byte more: %v", err)
	}
}

func TestL5_MaxCandidates(t *testing.T) {
	text := "1.2.3.4:80\n1.2.3.5:80\n1.2.3.6:80\n1.2.3.7:80\nsocks5://1.2.3.4:80\n1.2.3.5:80\n"
	l, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{MaxCandidates: 2})
	want := []string{"1.2.3.4:80[http socks5]", "1.2.3.5:80[http]"}
	if err != nil || !slices.Equal(got, want) || l.Duplicates != 1 || !maps.Equal(l.Rejects, map[Reason]int{ReasonTooMany: 2}) {
		t.Errorf("%v, %d duplicates, %v, %v", got, l.Duplicates, l.Rejects, err)
	}
}

func TestDefaultLimits(t *testing.T) {
	if got, want := (Limits{}).orDefault(), (Limits{MaxBytes: 16 << 20, MaxCandidates: 200_000, MaxLine: 512}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A list that breaks off gives its reader's error, and the broken line is not
// read: "1.2.3.4:80" may be the beginning of "1.2.3.4:8080".
func TestABrokenStream(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("1.2.3.4:80\n1.2.3.5:80"), iotest.ErrReader(io.ErrUnexpectedEOF))
	l, err := Parse(broken, Source{Scheme: proxyurl.HTTP}, Limits{})
	if got := show(l.Candidates); !errors.Is(err, io.ErrUnexpectedEOF) || !slices.Equal(got, []string{"1.2.3.4:80[http]"}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestReadsInAnyPieces(t *testing.T) {
	text := "1.2.3.4:80\r\n" + strings.Repeat("z", 9000) + "\n1.2.3.5:80"
	l, err := Parse(iotest.OneByteReader(strings.NewReader(text)), Source{Scheme: proxyurl.HTTP}, Limits{})
	if err != nil || len(l.Candidates) != 2 || l.Rejects[ReasonLineTooLong] != 1 {
		t.Errorf("%v, %v, %v", show(l.Candidates), l.Rejects, err)
	}
}

func TestP7_R13_SamplesAreSafeToShow(t *testing.T) {
	l, _, _ := parse(t, strings.Join([]string{
		"\x1b[31mred",
		"joe:hunter2@10.0.0.1:80",
		"10.0.0.1:80:joe:hunter2",
		"vmess://hunter2",
		"http://joe:hunter2" + strings.Repeat("x", 600) + "@1.2.3.4:80",
		"the sixth",
	}, "\n"), Source{Scheme: proxyurl.HTTP}, Limits{})
	want := []Reject{
		{1, "unparseable", `\x1b[31mred`},
		{2, "private", "joe:***@10.0.0.1:80"},
		{3, "private", "10.0.0.1:80:***"},
		{4, "unsupported-scheme", "vmess://***"},
		{5, "line-too-long", "http://joe..."},
	}
	if !slices.Equal(l.Samples, want) {
		t.Errorf("got  %+v\nwant %+v", l.Samples, want)
	}
}
