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
	addrs    map[netip.Addr]uint32
	names    map[string]uint32
	networks map[netip.Prefix]uint32
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
		f.names = make(map[string]uint32)
	}
	before := f.names[e.Host()]
	f.names[e.Host()]++
	return turnOf(before, MaxPerAddress, FloodAddress)
}

// TakeAddr is Take for an address.
func (f *Flood) TakeAddr(addr netip.Addr, allow proxyurl.Allow) (turn int, why string) {
	if allow.Contains(addr) {
		return 0, ""
	}
	if f.addrs == nil {
		f.addrs = make(map[netip.Addr]uint32)
		f.networks = make(map[netip.Prefix]uint32)
	}
	addr = addr.Unmap()
	before := f.addrs[addr]
	f.addrs[addr]++
	if turn, why = turnOf(before, MaxPerAddress, FloodAddress); turn > 0 {
		return turn, why // it takes no place of its neighbours
	}
	network := networkOf(addr)
	before = f.networks[network]
	f.networks[network]++
	return turnOf(before, MaxPerNetwork, FloodNetwork)
}

// GiveBack undoes a Take that let the candidate through.
func (f *Flood) GiveBack(e proxyurl.Endpoint, allow proxyurl.Allow) {
	addr, ok := e.Addr()
	switch {
	case !ok:
		f.names[e.Host()]--
	case !allow.Contains(addr):
		f.addrs[addr]--
		f.networks[networkOf(addr)]--
	}
}

func turnOf(before uint32, most int, why string) (int, string) {
	if turn := int(before) / most; turn > 0 {
		return turn, why
	}
	return 0, ""
}

func networkOf(addr netip.Addr) netip.Prefix {
	bits := networkBits6
	if addr.Is4() {
		bits = networkBits4
	}
	network, _ := addr.Prefix(bits) // an error only for bits beyond the address's
	return network
}
