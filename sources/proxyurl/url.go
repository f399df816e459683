package proxyurl

import "strings"

// URL is a proxy as it is spoken to: "http://203.0.113.7:8080". It is the form
// of a pool's members. Values are canonical and comparable.
type URL struct {
	Scheme   Scheme
	Endpoint Endpoint
}

// ParseURL reads "scheme://[user:pass@]host:port", with at most one "/" behind
// it. Errors are *ParseError.
func ParseURL(text string) (URL, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return URL{}, parseError(ReasonUnparseable, text)
	}
	s, err := ParseScheme(scheme)
	if err != nil {
		return URL{}, err
	}
	e, err := ParseEndpoint(strings.TrimSuffix(rest, "/"))
	if err != nil {
		return URL{}, err
	}
	return URL{Scheme: s, Endpoint: e}, nil
}

// IsZero says whether u is no URL.
func (u URL) IsZero() bool { return u.Endpoint.IsZero() }

// String returns the canonical text, password included: see Redacted.
func (u URL) String() string {
	if u.IsZero() {
		return ""
	}
	return string(u.Scheme) + "://" + u.Endpoint.String()
}

// Redacted returns the canonical text with the password hidden.
func (u URL) Redacted() string {
	if u.IsZero() {
		return ""
	}
	return string(u.Scheme) + "://" + u.Endpoint.Redacted()
}

// MarshalText gives String.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText is ParseURL; the empty text is the zero value.
func (u *URL) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*u = URL{}
		return nil
	}
	*u, err = ParseURL(string(text))
	return err
}
