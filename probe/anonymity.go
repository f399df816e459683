package probe

import (
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"evenpool/sources/proxyurl"
)

// Anonymity is how much of its user a proxy gives away to the server that it asks
// over plain http; within TLS it can add nothing. The words are those of public
// lists, which define them nowhere; here they mean:
//
//   - Transparent: one of our own addresses, as the control probes saw them, stands
//     in any header that the judge received, or is the address that the question
//     came from. Headers made for it are Forwarded (RFC 7239 section 5.2, "for"),
//     its forerunner X-Forwarded-For (RFC 7239 section 1), and ones like X-Real-IP
//     and Client-IP that no document defines, which is why every header counts.
//   - Anonymous: no address of ours, but a header that we did not send and that
//     clients do not send: Via, which a proxy must add (RFC 9110 section 7.6.3),
//     Forwarded or X-Forwarded-For with another address or an obfuscated one (RFC
//     7239 section 6.3), Proxy-Connection, or any other. The server knows that it
//     speaks to a proxy.
//   - Elite: nothing of the kind. By its headers the question could have come from
//     a client.
//
// "" is unknown: no judge tells what it received, or no address of ours is known
// that the proxy could give away. What the judge itself has before it adds to a
// direct question too is not the proxy's doing.
type Anonymity string

// The levels, from low to high.
const (
	Transparent Anonymity = "transparent"
	Anonymous   Anonymity = "anonymous"
	Elite       Anonymity = "elite"
)

// maxOwn is how many addresses of ours are remembered: a host may get another one
// every day.
const maxOwn = 64

// Seen is what judges saw of us when they were asked directly.
type Seen struct {
	Own     []netip.Addr        // our addresses, each once, at most 64: the newest
	Headers map[string][]string // by judge's name: the headers that it received, names in canonical form
}

// Add adds what another control saw.
func (s *Seen) Add(other Seen) {
	for _, addr := range other.Own {
		if !slices.Contains(s.Own, addr) {
			s.Own = append(s.Own, addr)
		}
	}
	s.Own = s.Own[max(0, len(s.Own)-maxOwn):]
	for judge, names := range other.Headers {
		for _, name := range names {
			s.addHeader(judge, name)
		}
	}
}

func (s *Seen) addHeader(judge, name string) {
	if s.Headers == nil {
		s.Headers = map[string][]string{}
	}
	if !slices.Contains(s.Headers[judge], name) {
		s.Headers[judge] = append(s.Headers[judge], name)
	}
}

// ordinary are headers that clients send: they tell nothing of a proxy.
var ordinary = map[string]bool{
	"Accept": true, "Accept-Charset": true, "Accept-Encoding": true, "Accept-Language": true,
	"Cache-Control": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Dnt": true,
	"Host": true, "Keep-Alive": true, "Pragma": true, "Te": true, "Upgrade-Insecure-Requests": true, "User-Agent": true,
}

// witness is what a judge says of a question.
type witness struct {
	exit    netip.Addr          // whom it came from; invalid: not told
	headers map[string][]string // received; nil: not told
}

// anonymity judges what a judge received through a proxy at remote. direct are the
// names of headers that the judge receives without a proxy too.
func (w witness) anonymity(own []netip.Addr, direct []string, remote netip.Addr) Anonymity {
	if isOwn(own, w.exit) {
		return Transparent
	}
	if w.headers == nil {
		return ""
	}
	level := Elite
	for name, values := range w.headers {
		name = textproto.CanonicalMIMEHeaderKey(name)
		before := slices.Contains(direct, name) // put there by what stands before the judge
		if !before && !ordinary[name] {
			level = Anonymous
		}
		for _, value := range values {
			for addr := range addresses(value) {
				switch {
				case isOwn(own, addr):
					return Transparent
				case before && addr != w.exit:
					level = Anonymous
				}
			}
		}
	}
	if !known(own, remote) {
		return ""
	}
	return level
}

// isOwn compares IPv6 addresses by their /64: a host has many there, and changes
// them (RFC 8981).
func isOwn(own []netip.Addr, addr netip.Addr) bool {
	if !addr.IsValid() {
		return false
	}
	return slices.ContainsFunc(own, func(o netip.Addr) bool {
		if addr.Is4() || addr.IsLoopback() {
			return addr == o
		}
		prefix, err := addr.Prefix(64)
		return err == nil && o.Is6() && prefix.Contains(o)
	})
}

// known says whether one of our addresses is known that a proxy at remote would
// give away: of the same family, and a public one if the proxy is; a judge within
// our own network sees another.
func known(own []netip.Addr, remote netip.Addr) bool {
	return slices.ContainsFunc(own, func(o netip.Addr) bool {
		if remote.IsValid() && o.Is4() != remote.Is4() {
			return false
		}
		_, private := proxyurl.Forbidden(o)
		_, near := proxyurl.Forbidden(remote)
		return !private || near && remote.IsValid()
	})
}

// addresses yields the IP addresses that stand in a header's value, in whatever
// form: with a port, in brackets, in quotes, in a list.
func addresses(value string) func(yield func(netip.Addr) bool) {
	return func(yield func(netip.Addr) bool) {
		for _, word := range strings.FieldsFunc(value, notOfAddress) {
			if len(word) < 2 { // "::"; a digit is no address
				continue
			}
			addr, err := netip.ParseAddr(word)
			if err != nil {
				// An IPv4 address with a port. An IPv6 one with a port has brackets,
				// at which it was cut.
				host, _, _ := strings.Cut(strings.Trim(word, ":."), ":")
				if addr, err = netip.ParseAddr(host); err != nil {
					if addr, err = netip.ParseAddr(strings.Trim(word, ".")); err != nil {
						continue
					}
				}
			}
			if !yield(addr.Unmap()) {
				return
			}
		}
	}
}

func notOfAddress(c rune) bool {
	return (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') && c != ':' && c != '.'
}
