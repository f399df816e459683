package sources

import (
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// Whatever a list says, its numbers add up, its candidates are unique, and what
// is shown of the rest is safe.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "1.2.3.4:80\n", "socks5://1.2.3.4:80\n1.2.3.4:80", "1.2.3.4:80:joe:secret\r\n# x\n", "\xef\xbb\xbf[::ffff:1.2.3.4]:80",
		"joe:secret@proxy.example.org:80", "<html>", "vmess://x", "1.2.3.4:80:5.6.7.8:90", "http://http://1.2.3.4:80", strings.Repeat("x", 40),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits := Limits{MaxBytes: 1 << 16, MaxCandidates: 4, MaxLine: 32}
		l, err := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP}, limits)
		if err == nil && len(l.Candidates) == 0 {
			t.Error("no candidates and no error")
		}
		if len(l.Candidates) > limits.MaxCandidates || l.Pairs > l.Records {
			t.Errorf("%d candidates, %d pairs of %d records", len(l.Candidates), l.Pairs, l.Records)
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
			seen[c.Endpoint] = true
			claims += len(c.Schemes)
			users = users || c.Endpoint.HasUser()
		}
		if claims+l.Duplicates+l.Rejected() != l.Records {
			t.Errorf("%d claims, %d duplicates, %d rejects of %d records", claims, l.Duplicates, l.Rejected(), l.Records)
		}
		if l.Pairs > claims || !users && l.Pairs != claims {
			t.Errorf("%d pairs of %d claims", l.Pairs, claims)
		}
		for _, s := range l.Samples {
			if strings.ContainsFunc(s.Text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }) {
				t.Errorf("sample %q", s.Text)
			}
		}
		// One line more costs nothing but itself.
		if strings.HasSuffix(text, "\n") && len(text) < 1<<15 && len(l.Candidates) < limits.MaxCandidates {
			more, _ := Parse(strings.NewReader(text+"203.0.113.7:1\n"), Source{Scheme: proxyurl.HTTP}, limits)
			if more.Records != l.Records+1 || more.Rejects["documentation"] != l.Rejects["documentation"]+1 || more.Pairs != l.Pairs {
				t.Errorf("with a line more: %+v, before: %+v", more, l)
			}
		}
	})
}
