package proxyurl

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestP7_Escape(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int
		want string
	}{
		{"plain text", 100, "plain text"},
		{"Zürich 東京", 100, "Zürich 東京"},
		{"a\x1b[31mb", 100, `a\x1b[31mb`},
		{"a\r\nb\tc\x00\x7f", 100, `a\x0d\x0ab\x09c\x00\x7f`},
		{"\u0085\u009b31m", 100, `\u0085\u009b31m`}, // C1: NEL, CSI
		{"abc\u202edcba", 100, `abc\u202edcba`},     // right-to-left override
		{"\u2066a\u2069\u200e\u200f\u061c", 100, `\u2066a\u2069\u200e\u200f\u061c`},
		{"a\u200bb\ufeff", 100, `a\u200bb\ufeff`},
		{"\u2028\u2029", 100, `\u2028\u2029`},
		{"\U000e0041", 100, `\U000e0041`}, // a tag character
		{"\xff\xc3", 100, `\xff\xc3`},
		{"\ufffd", 100, "\ufffd"},
		{`a\x1b`, 100, `a\\x1b`}, // or it could not be told from an escape
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcdef..."},
		{"abcde\x1b", 6, "abcde..."},
		{"abcdeü", 6, "abcde..."},
		{"", 0, ""},
		{"a", 0, "..."},
	} {
		if got := Escape(c.text, c.max); got != c.want {
			t.Errorf("Escape(%q, %d) = %q, want %q", c.text, c.max, got, c.want)
		}
	}
}

func TestR13_Redact(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1.2.3.4:80", "1.2.3.4:80"},
		{"http://1.2.3.4:80", "http://1.2.3.4:80"},
		{"joe:hunter2@1.2.3.4:80", "joe:***@1.2.3.4:80"},
		{"http://joe:hunter2@1.2.3.4:80", "http://joe:***@1.2.3.4:80"},
		{"http://joe:hunt@er2@1.2.3.4:80", "http://joe:***@1.2.3.4:80"},
		{"http://joe:hunt://er2@1.2.3.4:80", "http://joe:***@1.2.3.4:80"},
		{"joe@1.2.3.4:80", "***@1.2.3.4:80"}, // some lists' users are tokens
		{"1.2.3.4:80:joe:hunter2", "1.2.3.4:80:***"},
		{"1.2.3.4:80:joe:hunt@er2", "1.2.3.4:80:***"},
		{"1.2.3.4:80:joe:hunt@er2:x", "1.2.3.4:80:***"},
		{"socks5://1.2.3.4:80:joe:hunter2", "socks5://1.2.3.4:80:***"},
		{"[2606:4700::1]:80:joe:hunter2", "[2606:4700::1]:80:***"},
		{"[2606:4700::1]:80", "[2606:4700::1]:80"},
		{"vmess://eyJpZCI6InNlY3JldCJ9", "vmess://***"},
		{"trojan://hunter2@1.2.3.4:443?x=y#@z", "trojan://***"},
		{"just a banner", "just a banner"},
		{"see https://example.org/list", "see https://example.org/list"},
		{"\x1b[31m", `\x1b[31m`},
	} {
		if got := Redact(c.text, 100); got != c.want {
			t.Errorf("Redact(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzP7_EscapeLetsNothingRawThrough(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b]0;x\x07", "\u202e", "\xff\xfe", "\u009b", `\`, "ü", "\U000e0041"} {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 0 || max > 1<<16 {
			return
		}
		for _, got := range []string{Escape(s, max), Redact(s, max)} {
			if len(got) > max+len("...") {
				t.Errorf("%q: %d bytes, want at most %d and dots", got, len(got), max)
			}
			if !utf8.ValidString(got) {
				t.Errorf("%q is not UTF-8", got)
			}
			for _, r := range got {
				if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
					t.Errorf("%q holds %U", got, r)
				}
			}
		}
		// Different texts stay different, as long as nothing is cut.
		if got := Escape(s, 10*len(s)); len(s) > 0 && s[0] == '\\' && got[:2] != `\\` {
			t.Errorf("Escape(%q) = %q: the backslash is not told from an escape", s, got)
		}
	})
}
