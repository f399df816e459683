package sources

import (
	"bytes"

	"evenpool/sources/proxyurl"
)

// quickLines reads the lines that most lists have nothing but, "1.2.3.4:80" and
// "scheme://1.2.3.4:80", as the plainFormat and the schemeFormat would: right from
// the buffer, without making texts of them.
type quickLines struct {
	c             *collector
	lines         *lineReader
	plain, scheme bool // which of them are read
}

// read takes in as many such lines as come next, as far as they have been read into
// the buffer. It may be none.
func (q *quickLines) read() {
	text := q.lines.ahead(false)
	at, lines, plain := 0, 0, 0
	for {
		length, named := 0, claims(0)
		if q.scheme {
			length, named = quickScheme(text[at:])
		}
		addr, port, n := proxyurl.DottedPrefix(text[at+length:])
		if n == 0 || named == 0 && !q.plain {
			break
		}
		end := at + length + n
		rest := text[end:]
		if len(rest) > 0 && rest[0] == '\r' {
			rest = rest[1:]
		}
		if len(rest) == 0 || rest[0] != '\n' || end-at > q.lines.max {
			break
		}
		lines++
		q.c.begin(q.lines.number + lines)
		if named == 0 {
			plain++
			named = q.c.fallback
		}
		if reason := q.c.take4(addr, port, named, 0); reason != "" {
			q.c.rejectLine(reason, text[at:end])
		}
		at = len(text) - len(rest) + 1
	}
	q.lines.skip(at)
	q.c.formats[plainFormat{}.name()] += plain
	q.c.formats[schemeFormat{}.name()] += lines - plain
}

// quickScheme returns the length of a scheme and "://" that a line begins with, and
// what they claim; 0 where it begins otherwise, or not in the usual way.
func quickScheme(line []byte) (length int, named claims) {
	if len(line) == 0 || isDigit(line[0]) {
		return 0, 0
	}
	name, _, ok := bytes.Cut(line[:min(len(line), len("socks4a://"))], []byte("://"))
	if named = claimsOfSchemes[proxyurl.Scheme(name)]; !ok || named == 0 || string(name) == string(proxyurl.Any) {
		return 0, 0
	}
	return len(name) + len("://"), named
}
