package proxyurl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes a text from outside safe to show in a terminal, a log or a reply:
// control characters, bidirectional controls, other invisible format characters
// and invalid UTF-8 become \xNN or \uNNNN, a backslash is doubled, and what is longer than max bytes
// (of the result) is cut, with "..." behind it.
func Escape(s string, max int) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		piece := s[:size]
		switch {
		case r == utf8.RuneError && size == 1, r < 0x20, r == 0x7f:
			piece = fmt.Sprintf(`\x%02x`, s[0])
		case r == '\\':
			piece = `\\`
		case !unicode.IsPrint(r) && r <= 0xffff:
			piece = fmt.Sprintf(`\u%04x`, r)
		case !unicode.IsPrint(r):
			piece = fmt.Sprintf(`\U%08x`, r)
		}
		if b.Len()+len(piece) > max {
			b.WriteString("...")
			break
		}
		b.WriteString(piece)
		s = s[size:]
	}
	return b.String()
}

// hidePassword takes the password out of a text that may be a URL with one.
func hidePassword(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	start := 0
	if i := strings.Index(s, "://"); i >= 0 && i < at {
		start = i + len("://")
	}
	colon := strings.IndexByte(s[start:at], ':')
	if colon < 0 {
		return s
	}
	return s[:start+colon+1] + "***" + s[at:]
}
