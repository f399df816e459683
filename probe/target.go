package probe

import (
	"crypto/x509"
	"fmt"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"

	"evenpool/sources/proxyurl"
)

// Target is a page that the operator may have asked through many proxies, and what
// it is to answer.
type Target struct {
	Name    string
	URL     *url.URL                  // http or https
	Status  int                       // the exact status; 0: any of 2xx
	Headers map[string]*regexp.Regexp // by name: one of its values matches
	Body    *regexp.Regexp            // matches within the first 64 KiB; nil: any
	Allow   proxyurl.Allow            // prefixes beyond public unicast that it may be at
	RootCAs *x509.CertPool            // nil: the system's authorities
}

func newTargetAsk(t Target) (*ask, error) {
	if t.URL == nil {
		return nil, fmt.Errorf("target %s has no URL", t.Name)
	}
	a := &ask{target: &t, capability: HTTP, allow: t.Allow}
	if t.URL.Scheme == "https" {
		a.capability = TLS
	}
	if err := a.aim(t.URL, t.RootCAs); err != nil {
		return nil, fmt.Errorf("target %s: %w", t.Name, err)
	}
	return a, nil
}

// matches gives TargetFailed for every other answer: whether the proxy or the
// target is at fault, a control of the target tells.
func (t *Target) matches(r response) error {
	switch {
	case t.Status != 0 && r.status != t.Status:
		return faultf(TargetFailed, "status %d in place of %d", r.status, t.Status)
	case t.Status == 0 && r.status/100 != 2:
		return faultf(TargetFailed, "status %d in place of 2xx", r.status)
	}
	for name, pattern := range t.Headers {
		if !slices.ContainsFunc(r.header[textproto.CanonicalMIMEHeaderKey(name)], pattern.MatchString) {
			return faultf(TargetFailed, "no header %s that matches %s", name, pattern)
		}
	}
	if t.Body != nil && !t.Body.Match(r.body) {
		return faultf(TargetFailed, "%s does not match \"%s\"", t.Body, start(r.body))
	}
	return nil
}
