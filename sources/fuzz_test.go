package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// One target for each format, and one for the format found by content.

func FuzzL2_Auto(f *testing.F)         { fuzzFormat(f, "auto") }
func FuzzL2_JSONLines(f *testing.F)    { fuzzFormat(f, "jsonl") }
func FuzzL2_JSON(f *testing.F)         { fuzzFormat(f, "json") }
func FuzzL2_HTML(f *testing.F)         { fuzzFormat(f, "html") }
func FuzzL2_XML(f *testing.F)          { fuzzFormat(f, "xml") }
func FuzzL2_YAML(f *testing.F)         { fuzzFormat(f, "yaml") }
func FuzzL2_CSV(f *testing.F)          { fuzzFormat(f, "csv") }
func FuzzL2_Scheme(f *testing.F)       { fuzzFormat(f, "scheme") }
func FuzzL2_ColonCountry(f *testing.F) { fuzzFormat(f, "colon-country") }
func FuzzL2_Pipe(f *testing.F)         { fuzzFormat(f, "pipe") }
func FuzzL2_Annotated(f *testing.F)    { fuzzFormat(f, "annotated") }
func FuzzL2_Emoji(f *testing.F)        { fuzzFormat(f, "emoji") }
func FuzzL2_UserPass(f *testing.F)     { fuzzFormat(f, "userpass") }
func FuzzL2_Plain(f *testing.F)        { fuzzFormat(f, "plain") }

// fuzzLimits are small, so that a short text meets them.
var fuzzLimits = Limits{MaxBytes: 1 << 16, MaxCandidates: 4, MaxLine: 64}

// fuzzFormat shows that whatever a list says, nothing panics, what comes out is
// bounded, unique and canonical, and what is shown of the rest is safe.
func fuzzFormat(f *testing.F, format string) {
	if _, err := formatNamed(format); err != nil {
		f.Fatal(err)
	}
	lists, err := filepath.Glob(filepath.Join("testdata", "lists", "*"))
	if err != nil || len(lists) == 0 {
		f.Fatal("no lists to begin with", err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, s := range []string{
		"", "1.2.3.4:80\n", "socks5://1.2.3.4:80\n1.2.3.4:80", "1.2.3.4:80:joe:secret\r\n# x\n", "\xef\xbb\xbf[::ffff:1.2.3.4]:80",
		"joe:secret@proxy.example.org:80", "<html>", "vmess://x", "1.2.3.4:80:5.6.7.8:90", "http://http://1.2.3.4:80", strings.Repeat("x", 80),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP, Format: format}, fuzzLimits)
		checkList(t, l, err)
		if format != "plain" || !strings.HasSuffix(text, "\n") || len(text) >= 1<<15 || len(l.Candidates) == fuzzLimits.MaxCandidates {
			return
		}
		// One line more costs nothing but itself.
		more, _ := Parse(strings.NewReader(text+"203.0.113.7:1\n"), Source{Scheme: proxyurl.HTTP, Format: format}, fuzzLimits)
		if more.Records != l.Records+1 || more.Rejects["documentation"] != l.Rejects["documentation"]+1 || more.Pairs != l.Pairs {
			t.Errorf("with a line more: %+v, before: %+v", more, l)
		}
	})
}

func checkList(t *testing.T, l List, err error) {
	t.Helper()
	if err == nil && len(l.Candidates) == 0 {
		t.Error("no candidates and no error")
	}
	if len(l.Candidates) > fuzzLimits.MaxCandidates || l.Rejected() > l.Records || len(l.Samples) > maxSamples {
		t.Errorf("%d candidates, %d rejects of %d records, %d samples", len(l.Candidates), l.Rejected(), l.Records, len(l.Samples))
	}
	claims, users := 0, false
	seen := make(map[proxyurl.Endpoint]bool)
	for _, c := range l.Candidates {
		if seen[c.Endpoint] || c.Endpoint.IsZero() || len(c.Schemes) == 0 {
			t.Errorf("candidate %v %v", c.Endpoint, c.Schemes)
		}
		if again, err := proxyurl.ParseEndpoint(c.Endpoint.String()); err != nil || again != c.Endpoint {
			t.Errorf("candidate %v is read back as %v, %v", c.Endpoint, again, err)
		}
		if addr, ok := c.Endpoint.Addr(); ok {
			if reason, forbidden := proxyurl.Forbidden(addr); forbidden {
				t.Errorf("candidate %v is %s", c.Endpoint, reason)
			}
		}
		if unsafe(c.Hint.Country) || len(c.Hint.Country) > 40 || unsafe(c.Hint.Anonymity) {
			t.Errorf("hint %+v", c.Hint)
		}
		seen[c.Endpoint] = true
		claims += len(c.Schemes)
		users = users || c.Endpoint.HasUser()
	}
	if l.Pairs > claims || !users && l.Pairs != claims {
		t.Errorf("%d pairs of %d claims", l.Pairs, claims)
	}
	for _, s := range l.Samples {
		if unsafe(s.Text) || len(s.Text) > 4*sampleBytes {
			t.Errorf("sample %q", s.Text)
		}
	}
}

// unsafe says whether a text that is shown holds what a terminal would obey.
func unsafe(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 })
}
