package proxyurl

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is what makes one proxy one proxy: host, port and, if any, user and
// password. Values are canonical and comparable: two texts of one endpoint give
// equal values. The zero value is no endpoint.
type Endpoint struct {
	// Hundreds of thousands of these are kept and compared: half the size that a
	// field for each part would give.
	ip    [16]byte // an IPv4 address as the mapped one; never zoned
	port  uint16
	hasIP bool
	text  string // a DNS name, lower case, no trailing dot; behind it, after NULs, user and password, raw
}

// NewEndpoint makes an endpoint from its parts. The host is an IP address
// without brackets or a DNS name of at least two labels in ASCII; user is empty
// for none. Errors are *ParseError.
func NewEndpoint(host string, port uint16, user, pass string) (Endpoint, error) {
	if port == 0 {
		return Endpoint{}, parseError(ReasonPort, "0")
	}
	if !validUser(user, pass) {
		return Endpoint{}, &ParseError{Reason: ReasonUser, Text: Escape(user, 40)}
	}
	addr, name, err := parseHost(host)
	if err != nil {
		return Endpoint{}, err
	}
	e := Endpoint{port: port, hasIP: addr.IsValid(), text: name}
	if e.hasIP {
		e.ip = addr.As16()
	}
	if user != "" {
		e.text = name + "\x00" + user + "\x00" + pass // none of them holds a NUL
	}
	return e, nil
}

// ParseEndpoint reads "[user:pass@]host:port", an IPv6 address in brackets, user
// and password percent-encoded. Errors are *ParseError.
func ParseEndpoint(text string) (Endpoint, error) {
	if addr, port, ok := DottedPort(text); ok {
		return DottedEndpoint(addr, port), nil
	}
	return parseEndpoint(text)
}

// parseEndpoint is ParseEndpoint for every form.
func parseEndpoint(text string) (Endpoint, error) {
	var user, pass string
	hostport := text
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		hostport = text[at+1:]
		if strings.ContainsAny(text[:at], userDelimiters) {
			return Endpoint{}, parseError(ReasonUser, text)
		}
		rawUser, rawPass, _ := strings.Cut(text[:at], ":")
		var errUser, errPass error
		user, errUser = url.PathUnescape(rawUser)
		pass, errPass = url.PathUnescape(rawPass)
		if errUser != nil || errPass != nil || user == "" {
			return Endpoint{}, parseError(ReasonUser, text)
		}
	}
	host, portText, err := splitHostPort(hostport)
	if err != nil {
		return Endpoint{}, parseError(ReasonUnparseable, text)
	}
	port, err := ParsePort(portText)
	if err != nil {
		return Endpoint{}, err
	}
	return NewEndpoint(host, port, user, pass)
}

// userDelimiters must be percent-encoded in a user and a password: other readers
// of URLs take "1.1.1.1/@2.2.2.2:80" for the host 1.1.1.1 (RFC 3986 section 3.2).
const userDelimiters = "/?#\\[] "

// ParsePort reads a port: 1 to 65535 in plain digits without a leading zero.
// Errors are *ParseError with ReasonPort.
func ParsePort(text string) (uint16, error) {
	if text == "" || text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, parseError(ReasonPort, text)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, parseError(ReasonPort, text)
	}
	return uint16(n), nil
}

// splitHostPort takes brackets for an IPv6 address and only for one: net's own
// function accepts "[1.2.3.4]:80" and "[name]:80", second texts of one endpoint.
func splitHostPort(text string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(text)
	if err == nil && strings.HasPrefix(text, "[") != strings.Contains(host, ":") {
		err = errors.New("brackets are for IPv6 addresses")
	}
	return host, port, err
}

func parseHost(host string) (netip.Addr, string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return netip.Addr{}, "", parseError(ReasonHost, host)
		}
		return addr.Unmap(), "", nil
	}
	if hasLeadingZero(host) {
		return netip.Addr{}, "", parseError(ReasonLeadingZero, host)
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if !isASCII(host) || !validName(name) { // some letters lower-case into ASCII
		return netip.Addr{}, "", parseError(ReasonHost, host)
	}
	return netip.Addr{}, name, nil
}

// hasLeadingZero says whether host would be a dotted IPv4 address but for
// octets written with leading zeros, which some resolvers read as octal.
func hasLeadingZero(host string) bool {
	octets := strings.Split(host, ".")
	if len(octets) != 4 {
		return false
	}
	zero := false
	for i, octet := range octets {
		if octet == "" || strings.Trim(octet, "0123456789") != "" {
			return false
		}
		if len(octet) > 1 && octet[0] == '0' {
			zero = true
			if octet = strings.TrimLeft(octet, "0"); octet == "" {
				octet = "0"
			}
			octets[i] = octet
		}
	}
	_, err := netip.ParseAddr(strings.Join(octets, "."))
	return zero && err == nil
}

// validName takes lower-case letter-digit-hyphen labels (RFC 1123 section 2.1),
// at least two of them. A name whose last label is a number is refused: resolvers
// of C libraries read "127.1" and "0x7f.1" as addresses.
func validName(name string) bool {
	if len(name) > 253 {
		return false
	}
	labels := strings.Split(name, ".")
	if len(labels) < 2 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9'
}

// validUser holds RFC 1929's lengths (a byte each) and RFC 7617's ban on a colon
// in the user and on control characters.
func validUser(user, pass string) bool {
	if user == "" {
		return pass == ""
	}
	if len(user) > 255 || len(pass) > 255 || strings.Contains(user, ":") {
		return false
	}
	for _, c := range []byte(user + pass) {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}

// IsZero says whether e is no endpoint.
func (e Endpoint) IsZero() bool { return e.port == 0 }

// Addr returns the IP address, and false when the host is a DNS name.
func (e Endpoint) Addr() (netip.Addr, bool) {
	if !e.hasIP {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16(e.ip).Unmap(), true
}

// Host returns the IP address without brackets, or the DNS name.
func (e Endpoint) Host() string {
	if addr, ok := e.Addr(); ok {
		return addr.String()
	}
	name, _, _ := strings.Cut(e.text, "\x00")
	return name
}

// Port returns the port, 1 to 65535.
func (e Endpoint) Port() uint16 { return e.port }

// HostPort returns "host:port", an IPv6 address in brackets: what is dialled.
func (e Endpoint) HostPort() string {
	return net.JoinHostPort(e.Host(), strconv.Itoa(int(e.port)))
}

// User returns the user name, "" for none.
func (e Endpoint) User() string {
	user, _ := e.login()
	return user
}

// Password returns the password; it may be empty beside a user.
func (e Endpoint) Password() string {
	_, pass := e.login()
	return pass
}

func (e Endpoint) login() (user, pass string) {
	_, login, _ := strings.Cut(e.text, "\x00")
	user, pass, _ = strings.Cut(login, "\x00")
	return user, pass
}

// HasUser says whether the proxy asks for a user and a password.
func (e Endpoint) HasUser() bool { return strings.IndexByte(e.text, 0) >= 0 }

// String returns the canonical text, which ParseEndpoint reads back to an equal
// value. It holds the password: see Redacted.
func (e Endpoint) String() string { return e.write(encode(e.Password())) }

// Redacted returns the canonical text with the password hidden, for logs,
// status and errors.
func (e Endpoint) Redacted() string { return e.write("***") }

func (e Endpoint) write(pass string) string {
	switch {
	case e.IsZero():
		return ""
	case !e.HasUser():
		return e.HostPort()
	default:
		return encode(e.User()) + ":" + pass + "@" + e.HostPort()
	}
}

// MarshalText gives String.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText is ParseEndpoint; the empty text is the zero value.
func (e *Endpoint) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*e = Endpoint{}
		return nil
	}
	*e, err = ParseEndpoint(string(text))
	return err
}

// encode percent-encodes all but RFC 3986's unreserved characters, so that each
// text has one form.
func encode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}
