package sources

import (
	"errors"

	"evenpool/sources/proxyurl"
)

// Reason says why a record gave no candidate. Beside the constants below it is
// one of proxyurl's: "unparseable", "unsupported-scheme", "bad-host",
// "leading-zero", "bad-port", "bad-user"; or, for an address that is not public
// and that the source does not open, the word of proxyurl.Forbidden: "private",
// "loopback", "cgnat" and so on.
type Reason string

// The reasons that this package adds.
const (
	ReasonNoScheme    Reason = "no-scheme"     // the record names no scheme, and neither does the source
	ReasonLineTooLong Reason = "line-too-long" // longer than Limits.MaxLine
	ReasonTooMany     Reason = "too-many"      // a new endpoint beyond Limits.MaxCandidates

	reasonUnparseable = Reason(proxyurl.ReasonUnparseable)
)

// reasonOf returns the reason of an error of proxyurl's parsers, "" for nil.
func reasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	var parse *proxyurl.ParseError
	var forbidden *proxyurl.ForbiddenError
	switch {
	case errors.As(err, &parse):
		return Reason(parse.Reason)
	case errors.As(err, &forbidden):
		return Reason(forbidden.Reason)
	default:
		return reasonUnparseable
	}
}

// unreadable says whether records with this reason speak of a damaged list, and
// not merely of one that names what cannot be used.
func unreadable(reason Reason) bool {
	switch reason {
	case reasonUnparseable, ReasonLineTooLong,
		Reason(proxyurl.ReasonHost), Reason(proxyurl.ReasonLeadingZero),
		Reason(proxyurl.ReasonPort), Reason(proxyurl.ReasonUser):
		return true
	}
	return false
}
