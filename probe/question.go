package probe

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"evenpool/sources/proxyurl"
)

// ask is a question made ready to be sent through many proxies: a capability to be
// shown to a judge, or a target to be reached. It is shared between probes.
type ask struct {
	judge      Judge   // zero for a target
	target     *Target // nil for a judge
	capability Capability
	to         destination
	allow      proxyurl.Allow // that the destination may be at
	host       string         // the Host header
	path       string         // path and query, as in an origin-form request, up to the nonce
	rest       string         // of the query, behind the nonce
	header     string         // that holds the nonce; "": none does
	nonce      bool           // there is one
	tls        *tls.Config    // nil: plain http

	mu      sync.Mutex
	addrs   []netip.Addr  // of to.host, once it was resolved
	pending chan struct{} // closed when somebody has tried to
}

// destination is where the proxy is asked to connect to.
type destination struct {
	host string // name or IP address, without brackets
	port uint16
	addr netip.Addr // the address, if host is one or is to be asked for by it
}

func (d destination) hostport() string { return net.JoinHostPort(d.host, strconv.Itoa(int(d.port))) }

// newAsk makes a question to a judge ready.
func newAsk(j Judge, c Capability) (*ask, error) {
	u := j.url(c)
	if u == nil {
		return nil, fmt.Errorf("judge %s cannot show %s", j.Name, c)
	}
	a := &ask{judge: j, capability: c, allow: j.Allow}
	if err := a.aim(u, j.RootCAs); err != nil {
		return nil, fmt.Errorf("judge %s: %w", j.Name, err)
	}
	separator := "?"
	if strings.Contains(a.path, "?") {
		separator = "&"
	}
	switch {
	case j.own() && c == HTTP:
		a.nonce, a.path, a.rest = true, a.path+separator+"nonce=", "&form=page"
	case j.own():
		a.nonce, a.path = true, a.path+separator+"nonce="
	case j.Echo != nil:
		where, name, ok := j.Echo.nonce()
		if !ok {
			return nil, fmt.Errorf("judge %s: no place for a nonce", j.Name)
		}
		a.nonce = true
		if where == "header" {
			a.header = name
		} else {
			a.path += separator + url.QueryEscape(name) + "="
		}
	}
	return a, nil
}

// aim takes the destination from a URL.
func (a *ask) aim(u *url.URL, roots *x509.CertPool) error {
	a.host, a.path = u.Host, u.RequestURI()
	a.to = destination{host: u.Hostname(), port: 80}
	if a.capability == TLS {
		a.to.port = 443
		a.tls = tlsConfig(u.Hostname(), roots)
		a.tls.NextProtos = []string{"http/1.1"}
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return fmt.Errorf("bad port \"%s\"", text)
		}
		a.to.port = uint16(port)
	}
	if addr, err := netip.ParseAddr(a.to.host); err == nil {
		a.to.addr = addr.Unmap()
	}
	return nil
}

// question is one sending of an ask.
type question struct {
	*ask
	random string // the nonce; "" for none
}

func (a *ask) question() question {
	q := question{ask: a}
	if a.nonce {
		var random [16]byte
		rand.Read(random[:])
		q.random = hex.EncodeToString(random[:])
	}
	return q
}

// append writes the question down. In absolute form (RFC 9112 section 3.2.2) it is
// for an http proxy, with its credentials; else for the judge itself.
func (q question) append(b []byte, absolute bool, proxy proxyurl.Endpoint) []byte {
	b = append(b, "GET "...)
	if absolute {
		b = append(append(b, "http://"...), q.host...)
	}
	b = append(b, q.path...)
	if q.header == "" {
		b = append(append(b, q.random...), q.rest...)
	}
	b = append(append(b, " HTTP/1.1\r\nHost: "...), q.host...)
	b = append(b, "\r\n"...)
	if absolute {
		b = authorize(b, proxy)
	}
	if q.header != "" {
		b = append(append(append(append(b, q.header...), ": "...), q.random...), "\r\n"...)
	}
	return append(b, "User-Agent: "+userAgent+"\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"...)
}

// resolve returns the addresses of the destination's name, as the judge's Allow
// lets them be. They are looked up once for all probes of a slice; a failure is
// kept for none.
func (a *ask) resolve(ctx context.Context, resolver proxyurl.Resolver) ([]netip.Addr, error) {
	for {
		a.mu.Lock()
		if a.addrs != nil {
			a.mu.Unlock()
			return a.addrs, nil
		}
		if pending := a.pending; pending != nil {
			a.mu.Unlock()
			select {
			case <-pending:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		pending := make(chan struct{})
		a.pending = pending
		a.mu.Unlock()

		d := proxyurl.Dialer{Allow: a.allow, Resolver: resolver}
		addrs, err := d.Lookup(ctx, a.to.host)
		a.mu.Lock()
		a.pending = nil
		if err == nil {
			a.addrs = addrs
		}
		a.mu.Unlock()
		close(pending)
		return addrs, err
	}
}

// byAddress is the destination as those need it that do not leave resolving to the
// proxy: IPv4 where there is such an address, and only that with ipv4.
func (a *ask) byAddress(ctx context.Context, resolver proxyurl.Resolver, ipv4 bool) (destination, error) {
	to := a.to
	addrs, err := a.resolve(ctx, resolver)
	if err != nil {
		return to, err
	}
	to.addr = netip.Addr{}
	for _, addr := range addrs {
		if addr.Is4() {
			to.addr = addr
			return to, nil
		}
		if !to.addr.IsValid() && !ipv4 {
			to.addr = addr
		}
	}
	if !to.addr.IsValid() {
		return to, faultf(JudgeAddress, "the judge has no IPv4 address, and SOCKS 4 knows no other")
	}
	return to, nil
}
