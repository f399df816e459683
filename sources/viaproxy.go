package sources

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"evenpool/sources/proxyurl"
)

// A list that is fetched through a proxy is dialled by the proxy, which resolves
// its name, too: L1 is the proxy's business then. What is an address already, or
// may be read as one, is looked at here all the same.

// anyAddress opens all addresses for the dial to a source's proxy: that one is the
// operator's, and may be a neighbour.
var anyAddress = proxyurl.Allow{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

// What is wrong with a proxy or with what it is asked for. The proxy's URL is in
// no text: it holds a password.
var (
	errProxyURL  = errors.New("the proxy's URL is not one of http://, https:// or socks5://[user:password@]host[:port]")
	errOddHost   = errors.New("the host is neither an address nor a name")
	proxySchemes = []string{"http", "https", "socks5"}
	loopbackAddr = netip.MustParseAddr("127.0.0.1")
)

func parseProxy(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !slices.Contains(proxySchemes, u.Scheme) || u.Hostname() == "" ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errProxyURL
	}
	return u, nil
}

// checkTarget refuses a host that is literally an address which may not be
// dialled, or that a careless resolver would read as one ("127.1", "0x7f000001").
func checkTarget(host string, allow proxyurl.Allow) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return allow.Check(addr)
	}
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	last := labels[len(labels)-1]
	switch {
	case last == "localhost": // RFC 6761: and all names in it
		return allow.Check(loopbackAddr)
	case last == "", strings.Trim(last, "0123456789") == "", strings.HasPrefix(last, "0x"):
		return errOddHost
	}
	return nil
}
