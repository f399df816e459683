package sources

import (
	"net/netip"

	"evenpool/sources/proxyurl"
)

// How many candidates of one address, or of one host name, and of one network are
// dealt with in one turn: a list must not be able to turn us against a victim.
//
// A network is a /24, or a /48 in IPv6, which is what one site gets (RFC 6177).
// Addresses within a /64, which one host can have all of, are not counted apart:
// the /48 bounds them as the /24 bounds those of IPv4.
const (
	MaxPerAddress = 4
	MaxPerNetwork = 64

	networkBits4 = 24
	networkBits6 = 48
)

// What Offerable's reasons are for candidates that a Flood has wait.
const (
	FloodAddress = "flood-address"
	FloodNetwork = "flood-prefix"
)

// Flood counts candidates by address and by network. The zero value has counted
// none. It is not safe for concurrent use.
type Flood struct {
	addrs    map[netip.Addr]crowd
	names    map[string]crowd
	networks map[netip.Prefix]crowd
}

// crowd is how many of one address, name or network there were.
type crowd struct {
	through uint32 // were let through
	waiting uint32 // were too many
}

// Take counts a candidate and says whether it is one too many: then why is
// FloodAddress or FloodNetwork, and turn is how many turns it has to wait behind
// those of its address or network that came before it, at least 1. Else turn is 0.
// What allow opens is never too many, and a name counts by itself alone: for what
// it resolves to, see TakeAddr.
func (f *Flood) Take(e proxyurl.Endpoint, allow proxyurl.Allow) (turn int, why string) {
	if addr, ok := e.Addr(); ok {
		return f.TakeAddr(addr, allow)
	}
	if f.names == nil {
		f.names = make(map[string]crowd)
	}
	if turn := take(f.names, e.Host(), MaxPerAddress); turn > 0 {
		return turn, FloodAddress
	}
	return 0, ""
}

// TakeAddr is Take for an address.
func (f *Flood) TakeAddr(addr netip.Addr, allow proxyurl.Allow) (turn int, why string) {
	if allow.Contains(addr) {
		return 0, ""
	}
	if f.addrs == nil {
		f.addrs = make(map[netip.Addr]crowd)
		f.networks = make(map[netip.Prefix]crowd)
	}
	addr = addr.Unmap()
	if turn := take(f.addrs, addr, MaxPerAddress); turn > 0 {
		return turn, FloodAddress // it takes no place of its neighbours
	}
	if turn := take(f.networks, networkOf(addr), MaxPerNetwork); turn > 0 {
		giveBack(f.addrs, addr)
		return turn, FloodNetwork
	}
	return 0, ""
}

// GiveBack undoes a Take that let the candidate through: it was not dialled after
// all.
func (f *Flood) GiveBack(e proxyurl.Endpoint, allow proxyurl.Allow) {
	addr, ok := e.Addr()
	switch {
	case !ok:
		giveBack(f.names, e.Host())
	case !allow.Contains(addr):
		giveBack(f.addrs, addr)
		giveBack(f.networks, networkOf(addr))
	}
}

// take lets one more through, or says for how many turns it waits: of those that
// wait, as many come with each turn as may be let through.
func take[K comparable](crowds map[K]crowd, key K, most uint32) (turn int) {
	c := crowds[key]
	if c.through < most {
		c.through++
	} else {
		turn = 1 + int(c.waiting/most)
		c.waiting++
	}
	crowds[key] = c
	return turn
}

func giveBack[K comparable](crowds map[K]crowd, key K) {
	if c := crowds[key]; c.through > 0 {
		c.through--
		crowds[key] = c
	}
}

func networkOf(addr netip.Addr) netip.Prefix {
	bits := networkBits6
	if addr.Is4() {
		bits = networkBits4
	}
	network, _ := addr.Prefix(bits) // an error only for bits beyond the address's
	return network
}
