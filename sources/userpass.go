package sources

import (
	"net/netip"
	"strings"

	"evenpool/sources/proxyurl"
)

// userPassFormat reads "user:pass@host:port" and "host:port:user:pass".
type userPassFormat struct{}

func (userPassFormat) name() string { return "userpass" }

func (userPassFormat) parse(line string) (record, bool) {
	if _, _, _, _, tail := cutTail(line); !tail && !strings.Contains(line, "@") {
		return record{}, false
	}
	e, err := parseAddress(line)
	return record{endpoint: e, reject: reasonOf(err)}, true
}

// parseAddress reads the three ways of writing an address: "host:port" and those
// of the userPassFormat. In "user:pass@" both are percent-encoded, as in a URL; in
// "host:port:user:pass" they are raw, and the password is the rest of the line.
//
// Lists are damaged in ways that look like these: two addresses glued together
// read as an address with a user. What looks like that is refused; a proxy
// whose user is called 192.0.2.7 is lost, and no made-up one is offered.
func parseAddress(text string) (proxyurl.Endpoint, error) {
	damaged := &proxyurl.ParseError{Reason: proxyurl.ReasonUnparseable}
	if strings.ContainsAny(text, " \t") || strings.Contains(text, "://") {
		return proxyurl.Endpoint{}, damaged // prose, or several addresses
	}
	host, port, user, pass, ok := cutTail(text)
	if !ok {
		e, err := proxyurl.ParseEndpoint(text)
		if err == nil && looksLikeAddress(e.User()) {
			return proxyurl.Endpoint{}, damaged
		}
		return e, err
	}
	_, err := netip.ParseAddr(host)
	named := err != nil
	if looksLikeAddress(user) || endsInAddress(user+":"+pass) ||
		named && strings.Contains(user+pass, "@") { // or is it user:pass@host:port?
		return proxyurl.Endpoint{}, damaged
	}
	number, err := proxyurl.ParsePort(port)
	if err != nil {
		return proxyurl.Endpoint{}, err
	}
	if user == "" || pass == "" {
		return proxyurl.Endpoint{}, &proxyurl.ParseError{Reason: proxyurl.ReasonUser}
	}
	return proxyurl.NewEndpoint(host, number, user, pass)
}

// cutTail cuts "host:port:user:pass" into its parts. ok is false unless host is
// dotted or an IPv6 address in brackets, and port a number: else the first parts
// may as well be a user and a password.
func cutTail(text string) (host, port, user, pass string, ok bool) {
	rest := text
	if strings.HasPrefix(text, "[") {
		host, rest, ok = strings.Cut(text[1:], "]:")
		ok = ok && strings.Contains(host, ":")
	} else {
		host, rest, ok = strings.Cut(text, ":")
		ok = ok && strings.Contains(host, ".")
	}
	if !ok {
		return "", "", "", "", false
	}
	port, rest, ok = strings.Cut(rest, ":")
	if !ok || port == "" || strings.Trim(port, "0123456789") != "" {
		return "", "", "", "", false
	}
	user, pass, ok = strings.Cut(rest, ":")
	return host, port, user, pass, ok
}

// looksLikeAddress says whether a user's name is an address, or one that was
// damaged: dotted numbers, or the beginning of an IPv6 address in brackets.
func looksLikeAddress(user string) bool {
	return strings.HasPrefix(user, "[") ||
		strings.Contains(user, ".") && strings.Trim(user, "0123456789.") == ""
}

// endsInAddress says whether a port, and an IPv4 address before it, end the part of
// a text before some ":", or the text: another line has been glued to the one that
// it belongs to ("1.2.3.4:80:Germany5.6.7.8:80:Peru"). A user may have an address
// in its name, for a provider to go out by; a port behind it is none.
func endsInAddress(text string) bool {
	parts := strings.Split(text, ":")
	for i, port := range parts[1:] {
		if _, err := proxyurl.ParsePort(port); err != nil {
			continue
		}
		before := parts[i]
		digits := before[len(strings.TrimRight(before, "0123456789.")):]
		if strings.Count(digits, ".") >= 3 {
			return true
		}
	}
	return false
}
