package proxyurl

import (
	"slices"
	"strings"
)

// Scheme is a protocol spoken to a proxy; one of the constants below.
type Scheme string

// The closed list of schemes. A list may claim any of them; what a proxy really
// speaks is found out by probing.
const (
	HTTP    Scheme = "http"    // absolute-form requests and CONNECT, in plain (RFC 9112, RFC 9110 section 9.3.6)
	HTTPS   Scheme = "https"   // the same inside TLS; in lists often only "answers CONNECT"
	SOCKS4  Scheme = "socks4"  // SOCKS 4: the client resolves names
	SOCKS4A Scheme = "socks4a" // SOCKS 4A: the proxy resolves names
	SOCKS5  Scheme = "socks5"  // RFC 1928, with RFC 1929 for user and password; the proxy resolves names
)

// Any stands in a claim for a scheme that is not known: it is to be found out. No
// proxy's URL has it, and neither Schemes nor ParseScheme knows it.
const Any Scheme = "any"

// Claims returns what may be claimed of a proxy: Schemes, and Any.
func Claims() []Scheme { return append(Schemes(), Any) }

// Schemes returns the closed list, in its fixed order.
func Schemes() []Scheme { return []Scheme{HTTP, HTTPS, SOCKS4, SOCKS4A, SOCKS5} }

// ParseScheme reads a scheme's name in any case; "socks5h" is SOCKS5. Errors are
// *ParseError with ReasonScheme.
func ParseScheme(text string) (Scheme, error) {
	if !isASCII(text) {
		return "", parseError(ReasonScheme, text) // some letters lower-case into ASCII
	}
	s := Scheme(strings.ToLower(text))
	if s == "socks5h" {
		s = SOCKS5
	}
	if slices.Contains(Schemes(), s) {
		return s, nil
	}
	return "", parseError(ReasonScheme, text)
}

// CutScheme cuts "NAME://REST". ok is false where NAME has not the form of a
// scheme (RFC 3986 section 3.1: a letter, then letters, digits, "+", "-" and
// "."); whether it is one of Schemes is for ParseScheme to say.
func CutScheme(text string) (name, rest string, ok bool) {
	name, rest, ok = strings.Cut(text, "://")
	if !ok || name == "" {
		return "", "", false
	}
	for i, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		other := c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return "", "", false
		}
	}
	return name, rest, true
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}
