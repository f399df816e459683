package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// Whatever a list says, however it is written, its numbers add up, its candidates
// are unique and canonical, and what is shown of the rest is safe and short.
func checkList(t *testing.T, text, format string) {
	t.Helper()
	limits := Limits{MaxBytes: 1 << 16, MaxCandidates: 4, MaxLine: 64}
	start := time.Now()
	l, err := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP, Format: format}, limits)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	if err == nil && len(l.Candidates) == 0 {
		t.Error("no candidates and no error")
	}
	if len(l.Candidates) > limits.MaxCandidates || l.Records > len(text) || len(l.Samples) > maxSamples {
		t.Errorf("%d candidates, %d records, %d samples", len(l.Candidates), l.Records, len(l.Samples))
	}
	claims, users := 0, false
	seen := make(map[proxyurl.Endpoint]bool)
	for _, c := range l.Candidates {
		if seen[c.Endpoint] || c.Endpoint.IsZero() || len(c.Schemes) == 0 {
			t.Errorf("candidate %v %v", c.Endpoint, c.Schemes)
		}
		if addr, ok := c.Endpoint.Addr(); ok {
			if reason, forbidden := proxyurl.Forbidden(addr); forbidden {
				t.Errorf("candidate %v is %s", c.Endpoint, reason)
			}
		}
		again, err := proxyurl.ParseEndpoint(c.Endpoint.String())
		if err != nil || again != c.Endpoint || again.String() != c.Endpoint.String() {
			t.Errorf("candidate %v is read again as %v, %v", c.Endpoint, again, err)
		}
		for _, hint := range []string{c.Hint.Country, c.Hint.Anonymity} {
			if len(hint) > hintBytes || !isSafe(hint) {
				t.Errorf("hint %q", hint)
			}
		}
		seen[c.Endpoint] = true
		claims += len(c.Schemes)
		users = users || c.Endpoint.HasUser()
	}
	// A record may claim several schemes, or have several addresses in it.
	if l.Records > 0 && claims+l.Duplicates+l.Rejected() == 0 || l.Records == 0 && claims+l.Rejected() > 0 {
		t.Errorf("%d claims, %d duplicates, %d rejects of %d records", claims, l.Duplicates, l.Rejected(), l.Records)
	}
	if l.Pairs > claims || !users && l.Pairs != claims {
		t.Errorf("%d pairs of %d claims", l.Pairs, claims)
	}
	if (l.Format == "") != (l.Records == 0) {
		t.Errorf("format %q of %d records", l.Format, l.Records)
	}
	for _, s := range l.Samples {
		if s.Line < 1 || s.Reason == "" || len(s.Text) > sampleBytes+len("...") || !isSafe(s.Text) {
			t.Errorf("sample %+v", s)
		}
	}
}

func isSafe(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 })
}

// fuzzFormat begins with the lists of testdata whose name begins so, and with what
// else is given.
func fuzzFormat(f *testing.F, format, files string, texts ...string) {
	paths, err := filepath.Glob(filepath.Join("testdata", "lists", files))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%s: %v", files, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkList(t, text, format) })
}

func FuzzL2_Plain(f *testing.F) { fuzzFormat(f, "plain", "plain*", "[::ffff:1.2.3.4]:80") }

func FuzzL2_Scheme(f *testing.F) {
	fuzzFormat(f, "scheme", "scheme*", "http://http://1.2.3.4:80", "vmess://x")
}

func FuzzL2_UserPass(f *testing.F) { fuzzFormat(f, "userpass", "userpass*", "1.2.3.4:80:5.6.7.8:90") }

func FuzzL2_ColonCountry(f *testing.F) { fuzzFormat(f, "colon-country", "colon-country*") }

func FuzzL2_Pipe(f *testing.F) { fuzzFormat(f, "pipe", "pipe*") }

func FuzzL2_Annotated(f *testing.F) { fuzzFormat(f, "annotated", "annotated*") }

func FuzzL2_Emoji(f *testing.F) { fuzzFormat(f, "emoji", "emoji*") }

func FuzzL2_CSV(f *testing.F) {
	fuzzFormat(f, "csv", "csv*", "ip,port\n1.2.3.4,\"8\n0\"\n", "ip|port\n\"\n\"\n", "http;socks5\n1.2.3.4:80;\n", "http;socks5\n; ")
}

func FuzzL2_JSON(f *testing.F) {
	fuzzFormat(f, "json", "json-*", `{"a":{"b":[[["1.2.3.4",80]]]}}`, `[{"protocols":[{"type":"http","port":1}],"ip":"1.2.3.4"}]`)
}

func FuzzL2_JSONLines(f *testing.F) { fuzzFormat(f, "jsonl", "jsonl*") }

func FuzzL2_YAML(f *testing.F) {
	fuzzFormat(f, "yaml", "yaml*", "a: &a [*a]", "- |\n  1.2.3.4:80\n", "- ? a\n  : b\n", "{proxies: [1.2.3.4:80]}", "- !!binary x\n- <<: *a\n", "---\n- 1.2.3.4:80\n...\n---\n- x\n")
}

func FuzzL2_XML(f *testing.F) {
	fuzzFormat(f, "xml", "xml*", `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`, "<a><b ip='1.2.3.4' port='80'/></a>", "<a><![CDATA[1.2.3.4:80]]></a>")
}

func FuzzL2_HTML(f *testing.F) {
	fuzzFormat(f, "html", "html*", "<table><tr><th>IP<th>Port<tr><td>1.2.3.4<td>80</table>", "<table><table></table><tr></table></table>", "<table><td>x<table>y</table>z</table>")
}

// With the format found by content, one line more of a list of lines costs nothing
// but itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "1.2.3.4:80\n", "socks5://1.2.3.4:80\n1.2.3.4:80", "1.2.3.4:80:joe:secret\r\n# x\n", "\xef\xbb\xbf[::ffff:1.2.3.4]:80",
		"joe:secret@proxy.example.org:80", "<html>", "vmess://x", "1.2.3.4:80:5.6.7.8:90", "http://http://1.2.3.4:80", strings.Repeat("x", 70),
		"[", "{\"", "- x", "a:\n b:\n", "ip,port\n", "<a>", "🇩🇪 1.2.3.4:80", "1.2.3.4,80,\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkList(t, text, "")
		limits := Limits{MaxBytes: 1 << 16, MaxCandidates: 4, MaxLine: 64}
		l, _ := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP}, limits)
		of := formatOf([]byte(text))
		if _, lines := of.(lineList); !lines || looksLikeMarkup([]byte(text)) || strings.HasPrefix(text, "\xef\xbb\xbf") ||
			!strings.HasSuffix(text, "\n") || len(text) >= 1<<15 || len(l.Candidates) == limits.MaxCandidates {
			return
		}
		const line = "203.0.113.7:1\n"
		if _, lines := formatOf([]byte(text + line)).(lineList); !lines {
			return // the line shows that it is another format
		}
		more, _ := Parse(strings.NewReader(text+line), Source{Scheme: proxyurl.HTTP}, limits)
		if more.Records != l.Records+1 || more.Rejects["documentation"] != l.Rejects["documentation"]+1 || more.Pairs != l.Pairs {
			t.Errorf("with a line more: %+v, before: %+v", more, l)
		}
	})
}
