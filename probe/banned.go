package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"evenpool/sources/proxyurl"
)

// Bans are proxies that an operator does not want. Contains says by which entry an
// endpoint is among them, and ContainsAddr the same of an address that a name led
// to. They are safe for concurrent use.
type Bans interface {
	Contains(e proxyurl.Endpoint) (entry string, banned bool)
	ContainsAddr(addr netip.Addr) (entry string, banned bool)
}

// Banned is a list of banned proxies. The zero value is empty; a list that was
// read does not change.
type Banned struct {
	endpoints map[proxyurl.Endpoint]bool // without users: those with any; with: that one
	hosts     map[string]bool            // names, and addresses in their usual form
	prefixes  [129]map[netip.Prefix]bool // by length
}

// maxBanned bounds a list, as do a source's limits.
const maxBanned = 1_000_000

// ParseBanned reads a list of banned proxies: an entry a line, which is HOST:PORT,
// USER:PASS@HOST:PORT (that user alone), a URL of either (by whichever scheme), an
// address or a name (all ports of it), or a prefix such as 1.2.3.0/24. A # begins a
// comment. A line that is none of these is an error with its number, and nothing of
// the list is taken: who bans something wants to know that it is banned.
func ParseBanned(text []byte) (*Banned, error) {
	b := &Banned{endpoints: map[proxyurl.Endpoint]bool{}, hosts: map[string]bool{}}
	number, entries := 0, 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		number++
		entry, _, _ := strings.Cut(string(line), "#")
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if entries++; entries > maxBanned {
			return nil, fmt.Errorf("line %d: more than %d entries", number, maxBanned)
		}
		if err := b.add(entry); err != nil {
			return nil, fmt.Errorf("line %d: \"%s\": %w", number, proxyurl.Redact(entry, 80), err)
		}
	}
	return b, nil
}

var errBanned = errors.New("expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24")

func (b *Banned) add(entry string) error {
	if _, rest, isURL := proxyurl.CutScheme(entry); isURL {
		entry = strings.TrimSuffix(rest, "/")
	}
	if strings.Contains(entry, "/") {
		p, err := netip.ParsePrefix(entry)
		switch {
		case err != nil || p.Addr().Is4In6():
			return errBanned
		case p != p.Masked():
			return fmt.Errorf("has bits behind the prefix; write %s, or %s for the address alone", p.Masked(), p.Addr())
		}
		b.addPrefix(p)
		return nil
	}
	if e, err := proxyurl.ParseEndpoint(entry); err == nil {
		b.endpoints[e] = true
		return nil
	}
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		b.hosts[addr.Unmap().String()] = true
		return nil
	}
	// A host alone: the form of it is the endpoint's, with any port.
	e, err := proxyurl.NewEndpoint(entry, 1, "", "")
	if err != nil {
		return errBanned
	}
	b.hosts[e.Host()] = true
	return nil
}

func (b *Banned) addPrefix(p netip.Prefix) {
	if b.prefixes[p.Bits()] == nil {
		b.prefixes[p.Bits()] = map[netip.Prefix]bool{}
	}
	b.prefixes[p.Bits()][p] = true
}

// Len is how many entries there are.
func (b *Banned) Len() int {
	n := len(b.endpoints) + len(b.hosts)
	for _, set := range b.prefixes {
		n += len(set)
	}
	return n
}

// Contains says by which entry an endpoint is banned. An entry without a user bans
// all users.
func (b *Banned) Contains(e proxyurl.Endpoint) (entry string, banned bool) {
	if b.endpoints[e] {
		return e.Redacted(), true
	}
	if e.HasUser() {
		if plain, err := proxyurl.NewEndpoint(e.Host(), e.Port(), "", ""); err == nil && b.endpoints[plain] {
			return plain.String(), true
		}
	}
	if addr, ok := e.Addr(); ok {
		return b.ContainsAddr(addr)
	}
	return e.Host(), b.hosts[e.Host()]
}

// ContainsAddr says by which entry all ports of an address are banned. It is asked
// again where a name was dialled: else a name would be a way around a prefix.
func (b *Banned) ContainsAddr(addr netip.Addr) (entry string, banned bool) {
	addr = addr.Unmap()
	if b.hosts[addr.String()] {
		return addr.String(), true
	}
	for bits, set := range b.prefixes {
		if len(set) == 0 || bits > addr.BitLen() {
			continue
		}
		if p, err := addr.Prefix(bits); err == nil && set[p] {
			return p.String(), true
		}
	}
	return "", false
}
