package probe

import (
	"evenpool/sources/proxyurl"
)

// protocol is one way to speak to a proxy.
type protocol struct {
	// tunnel asks the proxy on conn for a connection to the target. After nil
	// the next byte on conn is the target's.
	tunnel func(conn *stream, proxy proxyurl.Endpoint, to destination) error
	// forwards: plain http is asked without a tunnel, by a request in absolute form.
	forwards bool
	// needsIPv4: the target's name has to be resolved here, to an IPv4 address.
	needsIPv4 bool
	// secured: all of it goes within TLS with the proxy itself.
	secured bool
}

// protocols lists what can be spoken; each stands in a file of its own.
var protocols = map[proxyurl.Scheme]protocol{
	proxyurl.HTTP:    {tunnel: connect, forwards: true},
	proxyurl.HTTPS:   {tunnel: connect, forwards: true, secured: true},
	proxyurl.SOCKS4:  {tunnel: socks4, needsIPv4: true},
	proxyurl.SOCKS4A: {tunnel: socks4a},
	proxyurl.SOCKS5:  {tunnel: socks5},
}

// Schemes returns the schemes that a Prober speaks, in the order of
// proxyurl.Schemes.
func Schemes() []proxyurl.Scheme {
	var spoken []proxyurl.Scheme
	for _, s := range proxyurl.Schemes() {
		if _, ok := protocols[s]; ok {
			spoken = append(spoken, s)
		}
	}
	return spoken
}
