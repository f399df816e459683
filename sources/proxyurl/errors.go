package proxyurl

import (
	"fmt"
	"net/netip"
)

// Reason says why a text is no endpoint or URL; one of the constants below.
type Reason string

// The closed list of reasons.
const (
	ReasonUnparseable Reason = "unparseable"        // not of the form host:port or scheme://host:port
	ReasonScheme      Reason = "unsupported-scheme" // a scheme that is not one of Schemes
	ReasonHost        Reason = "bad-host"           // neither an IP address nor a DNS name
	ReasonLeadingZero Reason = "leading-zero"       // an IPv4 octet with a leading zero, which parsers read differently
	ReasonPort        Reason = "bad-port"           // not 1 to 65535 in plain digits
	ReasonUser        Reason = "bad-user"           // user or password empty where it must not be, too long, or with control characters
)

// ParseError is the error of every parser in this package.
type ParseError struct {
	Reason Reason
	Text   string // what was read, escaped, cut, without a password: safe to show
}

func (e *ParseError) Error() string { return fmt.Sprintf(`%s: "%s"`, e.Reason, e.Text) }

func parseError(reason Reason, text string) error {
	return &ParseError{Reason: reason, Text: Redact(text, 80)}
}

// ForbiddenError says that an address may not be dialled.
type ForbiddenError struct {
	Addr   netip.Addr
	Reason string // as Forbidden gives it: "loopback", "private", ...
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf("address %s may not be dialled: %s", e.Addr, e.Reason)
}
