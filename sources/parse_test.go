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

		// A country, a level and more behind the address, in every way of writing it.
		{line: "1.2.3.4:80 US", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4:80\tUS-H-S! +", want: "1.2.3.4:80[http]"},
		{line: "[2606:4700::1]:80 US-A", want: "[2606:4700::1]:80[http]"},
		{line: "proxy.example.org:80 ZZ", want: "proxy.example.org:80[http]"},
		{line: "1.2.3.4:80 120ms US [A Network (of 5.6.7.0), Inc.]", why: "unparseable"},
		{line: "1.2.3.4:80 120ms US [A Network, Inc.]", want: "1.2.3.4:80[http]"},
		{line: "🇺🇸 1.2.3.4:80 120ms US [A Network, Inc.]", want: "1.2.3.4:80[http]"},
		{line: "🇺🇸 1.2.3.4:80", want: "1.2.3.4:80[http]"},
		{line: "socks5://1.2.3.4:1080 US-H", want: "1.2.3.4:1080[socks5]"},
		{line: "socks5://1.2.3.4:1080|Peru", want: "1.2.3.4:1080[socks5]"},
		{line: "1.2.3.4:80:Germany", want: "1.2.3.4:80[http]"},
		{line: "[2606:4700::1]:80:Germany", want: "[2606:4700::1]:80[http]"},
		{line: "1.2.3.4:1080:SOCKS5", want: "1.2.3.4:1080[socks5]"},
		{line: "1.2.3.4:80|Peru|Lima", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4|80|Peru", want: "1.2.3.4:80[http]"},
		{line: "[2606:4700::1]|80", want: "[2606:4700::1]:80[http]"},
		{line: "1.2.3.4:80,US", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4,80", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4\t80\tSOCKS4", want: "1.2.3.4:80[socks4]"},
		{line: "1.2.3.4;80;socks5;US", want: "1.2.3.4:80[socks5]"},
		{line: "SOCKS5,1.2.3.4,1080", want: "1.2.3.4:1080[socks5]"},
		{line: "\"1.2.3.4\",\"80\",\"Korea, Republic of\"", want: "1.2.3.4:80[http]"},
		{line: "1.2.3.4:80:joe:se,c|r;et", want: "joe:se%2Cc%7Cr%3Bet@1.2.3.4:80[http]"},
		{line: "1.2.3.4:80:user-ip-5.6.7.8:secret", want: "user-ip-5.6.7.8:secret@1.2.3.4:80[http]"},

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
		{line: "1.2.3.4:80:Germany5.6.7.8:80:Peru", why: "unparseable"},
		{line: "1.2.3.4:80 US5.6.7.8:80 PE", why: "unparseable"},
		{line: "1.2.3.4:80 US-N 5.6.7.8:80 PE-N", why: "unparseable"},
		{line: "1.2.3.4:80|Peru5.6.7.8:80|Chile", why: "unparseable"},
		{line: "1.2.3.4,80,Peru5.6.7.8,80,Chile", why: "unparseable"},
		{line: "1.2.3.4,805.6.7.8,80", why: "bad-port"},
		{line: "1.2.3.4,80,5.6.7.8,80", why: "unparseable"},
		{line: "🇺🇸 1.2.3.4:80 🇺🇸 5.6.7.8:80", why: "unparseable"},
		{line: "🇺🇸 1.2.3.4:80 5ms US [A🇺🇸 5.6.7.8:80 5ms US [B]", why: "unparseable"},
		// Prose, times and pages.
		{line: "1.2.3.4:80 is a proxy", why: "unparseable"},
		{line: "Example: 1.2.3.4:80", why: "unparseable"},
		{line: "updated 10:00:01, 1.2.3.4:80", why: "unparseable"},
		{line: "https://example.org:8080/list.txt", why: "bad-port"},
		{line: "2026-08-22T10:00:01.000:80", why: "unparseable"},
		{line: "1.2.3.400,80,US", why: "bad-host"},
		{line: "1.2.3.4,080,US", why: "bad-port"},
		{line: "1.2.3.4,80.0,US", why: "bad-port"},
		{line: "01.2.3.4|80", why: "leading-zero"},
		{line: "1.2.3.4:99999 US", why: "bad-port"},
		{line: "1.2.3.4:80 U$", why: "unparseable"},
		{line: "\"1.2.3.4,80", why: "unparseable"},
		{line: "１.2.3.4:80", why: "bad-host"},
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

// Wherever somebody puts a password, it is not in what is shown of a line that
// gave no candidate.
func TestR13_NoPasswordIsInASample(t *testing.T) {
	for line, want := range map[string]string{
		"10.0.0.1,80,joe,hunter2":                         "10.0.0.1,80,***",
		"10.0.0.1;80;joe;hunter2":                         "10.0.0.1;80;***",
		"10.0.0.1|80|joe|hunter2":                         "10.0.0.1|80|***",
		"10.0.0.1\t80\tjoe\thunter2":                      `10.0.0.1\x0980\x09***`,
		"10.0.0.1 80 joe hunter2":                         "10.0.0.1 80 ***",
		"10.0.0.1:80 joe hunter2":                         "10.0.0.1:80 ***",
		"joe,hunter2,10.0.0.1,80":                         "***,10.0.0.1,80",
		"joe hunter2 10.0.0.1:80":                         "*** 10.0.0.1:80",
		"hunter2@10.0.0.1:80 US":                          "***@10.0.0.1:80 ***",
		"joe:hunter2@10.0.0.1:80,US":                      "joe:***@10.0.0.1:80,***",
		"http://10.0.0.1:80,joe,hunter2":                  "http://10.0.0.1:80,***",
		"http://joe:hunter2@10.0.0.1:80 hunter2":          "http://joe:***@10.0.0.1:80 ***",
		"10.0.0.1:80:joe:hun,ter2":                        "10.0.0.1:80:***,***",
		"10.0.0.1:80:joe:hunter2 hunter2":                 "10.0.0.1:80:*** ***",
		"localhost,8080,joe,hunter2":                      "***",
		"localhost 8080 joe hunter2":                      "***",
		"proxy.invalid_name:80 joe hunter2":               "proxy.invalid_name:80 ***",
		"1.2.3,80,joe,hunter2":                            "1.2.3,80,***",
		"joe/hunter2@10.0.0.1:80":                         "***@10.0.0.1:80",
		`{"ip":"10.0.0.1","port":80,"password":"hunter2"`: `{"***"10.0.0.1","***"`,
		"the proxy is 10.0.0.1:80 and the word hunter2":   "*** 10.0.0.1:80 ***",
	} {
		l, got, _ := parse(t, line, Source{Scheme: proxyurl.HTTP, Format: "plain"}, Limits{})
		if len(got) != 0 || len(l.Samples) != 1 || l.Samples[0].Text != want {
			t.Errorf("%q: %v, %+v; want the sample %s", line, got, l.Samples, want)
		}
		l, _, _ = parse(t, line, Source{Scheme: proxyurl.HTTP}, Limits{})
		for _, s := range l.Samples {
			if strings.Contains(s.Text, "hunter2") || strings.Contains(s.Text, "ter2") {
				t.Errorf("%q: sample %q", line, s.Text)
			}
		}
	}
	// Nor in a hint, which is shown, too.
	l, _, _ := parse(t, "1.2.3.4,80,joe,Hunter\n1.2.3.5|80|Joe|Hunter\n1.2.3.6:80:Hunter\n", Source{Scheme: proxyurl.HTTP}, Limits{})
	for _, c := range l.Candidates {
		if c.Hint != (Hint{}) {
			t.Errorf("%v: hint %+v", c.Endpoint, c.Hint)
		}
	}
	// Nor of a document.
	for _, text := range []string{
		`[{"ip":"10.0.0.1","port":80,"username":"joe","password":"hunter2"}]`,
		`[{"proxy":"joe:hunter2@10.0.0.1:80"}, {"ip":"joe:hunter2@10.0.0.1","port":80}, "joe:hunter2@10.0.0.1:80", ["10.0.0.1","80","joe","hunter2"]]`,
		"ip,port,user,password\n10.0.0.1,80,joe,hunter2\n10.0.0.1,80,joe,hunter2,x\n10.0.0.1,80,joe,\"hunter2\n",
		"- ip: 10.0.0.1\n  port: 80\n  password: hunter2\n- ip: [10.0.0.1\n  password: hunter2\n",
		"<p><q><ip>10.0.0.1</ip><port>80</port><password>hunter2</password></q></p>",
		"<table><tr><th>IP<th>Port<th>Password</tr><tr><td>10.0.0.1<td>80<td>hunter2</tr><tr><td>10.0.0.1<td>80<td>hunter2<td>x</tr></table>",
	} {
		l, got, _ := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{})
		if len(l.Samples) == 0 {
			t.Errorf("%q: %v, no sample", text, got)
		}
		for _, s := range l.Samples {
			if strings.Contains(s.Text, "hunter2") {
				t.Errorf("%q: sample %q", text, s.Text)
			}
		}
	}
}
