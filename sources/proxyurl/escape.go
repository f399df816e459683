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

// Redact is Escape for a text that is a proxy's address, or meant to be one: what
// is or may be a password is replaced by "***" first, before anything is cut off
// that would tell a password from the rest.
func Redact(s string, max int) string {
	scheme, rest, ok := CutScheme(s)
	if !ok {
		return Escape(hidePassword(s), max)
	}
	if _, err := ParseScheme(scheme); err != nil {
		return Escape(scheme+"://***", max) // vmess and its like are secrets as a whole
	}
	return Escape(scheme+"://"+hidePassword(rest), max)
}

// hidePassword leaves "user:***@host:port", "host:port:***", or less where it
// cannot tell the two apart.
func hidePassword(s string) string {
	host, port := strings.IndexByte(s, ':'), -1 // where they end
	if strings.HasPrefix(s, "[") {
		if end := strings.Index(s, "]:"); end >= 0 {
			host = end + 1
		}
	}
	if host >= 0 {
		if i := strings.IndexByte(s[host+1:], ':'); i >= 0 {
			port = host + 1 + i
		}
	}
	at := strings.LastIndexByte(s, '@')
	numeric := host > 0 && (s[0] == '[' || strings.Trim(s[:host], "0123456789.") == "")
	named := host > 0 && strings.Contains(s[:host], ".")
	switch {
	case port >= 0 && numeric, port >= 0 && named && at < 0:
		return s[:port] + ":***"
	case port >= 0 && named:
		return "***"
	case at >= 0 && host >= 0 && host < at:
		return s[:host] + ":***" + s[at:]
	case at >= 0:
		return "***" + s[at:]
	case port >= 0:
		return s[:host] + ":***"
	}
	return s
}
