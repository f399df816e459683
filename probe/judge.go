package probe

import (
	"crypto/x509"
	"net/url"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// Judge is a web server to be asked through proxies. There are three kinds: our
// own, which returns a nonce and what it saw of the question; with Expect a page of
// known content, which proves that the proxy reaches it; with Echo one of somebody
// else's, which tells what it saw in a form of its own.
type Judge struct {
	Name    string
	HTTP    *url.URL       // http://..., shows HTTP; nil: not offered
	HTTPS   *url.URL       // https://..., shows TLS; nil: not offered
	Expect  *Expect        // a page; not with Echo
	Echo    *Echo          // somebody else's judge
	Key     judge.Key      // our own judge signs with it, and what is not signed is forged; nil: it does not sign
	Allow   proxyurl.Allow // prefixes beyond public unicast that this judge may be at
	RootCAs *x509.CertPool // who may sign its certificate; nil: the system's authorities
}

// Expect is what a page judge answers.
type Expect struct {
	Status   int    // the exact status
	Contains string // a text that the page holds; "": any page
}

// Shows says whether the judge can prove the capability.
func (j Judge) Shows(c Capability) bool { return j.url(c) != nil }

// Tells says whether the judge can tell what it received, and so anonymity.
func (j Judge) Tells() bool { return j.Expect == nil && j.HTTP != nil }

func (j Judge) url(c Capability) *url.URL {
	switch c {
	case HTTP:
		return j.HTTP
	case TLS:
		return j.HTTPS
	}
	return nil
}

// own: it is one of ours, with a form of its own.
func (j Judge) own() bool { return j.Expect == nil && j.Echo == nil }
