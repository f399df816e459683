package lab

import (
	"fmt"
	"net/netip"

	"evenpool/sources/proxyurl"
)

// loopback is where a lab listens and all that it dials, but for the few rows
// with IPv6.
var loopback = netip.MustParsePrefix("127.0.0.0/8")

// The addresses that localhost has.
var (
	loopback4 = netip.MustParseAddr("127.0.0.1")
	loopback6 = netip.IPv6Loopback()
)

// crowd is where the addresses begin of behaviours that are wanted several
// times; maxPopulation keeps them below exits.
var crowd = netip.MustParseAddr("127.16.0.1")

const maxPopulation = 1_000_000

// group is all proxies of one behaviour: one port, one or many addresses.
type group struct {
	kind
	index int // among the groups
	port  int // 0: the kernel chooses
	addrs []netip.Addr
}

// exits says where the connections of the group's proxy at an address come from.
// It is never where clients come from, 127.0.0.1: a judge is to see a difference.
func (g *group) exits(at netip.Addr) []netip.Addr {
	own := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 64, byte(g.index), n}) }
	first := at
	if len(g.addrs) == 1 {
		first = own(1)
	}
	switch {
	case g.how.rotating:
		return []netip.Addr{first, own(2), own(3), own(4)}
	case g.how.ipv6Exit:
		return []netip.Addr{first, loopback6}
	}
	return []netip.Addr{first}
}

// plan lays the population out. Behaviours that are named twice are counted
// together. It is pure.
func plan(population []Spec, addr netip.Addr, basePort int) ([]*group, error) {
	kinds := make(map[Behaviour]kind)
	for _, k := range table() {
		kinds[k.Behaviour] = k
	}
	if len(population) == 0 {
		population = everyday()
	}
	var groups []*group
	byName := make(map[Behaviour]*group)
	counts := make(map[Behaviour]int)
	total := 0
	for _, s := range population {
		k, ok := kinds[s.Behaviour]
		switch {
		case !ok:
			return nil, fmt.Errorf("lab behaviour %q: unknown", proxyurl.Escape(string(s.Behaviour), 64))
		case s.Count < 1:
			return nil, fmt.Errorf("lab behaviour %s: count %d: want at least 1", s.Behaviour, s.Count)
		case s.Count > maxPopulation-total:
			return nil, fmt.Errorf("lab behaviour %s: count %d: want at most %d proxies in all", s.Behaviour, s.Count, maxPopulation)
		}
		total += s.Count
		if byName[s.Behaviour] == nil {
			g := &group{kind: k, index: len(groups)}
			byName[s.Behaviour] = g
			groups = append(groups, g)
		}
		counts[s.Behaviour] += s.Count
		if k.how.ipv6 && counts[s.Behaviour] > 1 {
			return nil, fmt.Errorf("lab behaviour %s: count %d: want 1, as loopback has one IPv6 address", s.Behaviour, counts[s.Behaviour])
		}
	}
	if basePort != 0 && (basePort < 1 || basePort+len(groups)-1 > 65535) {
		return nil, fmt.Errorf("lab base port %d: want 1 to %d, for %d ports", basePort, 65536-len(groups), len(groups))
	}
	next := crowd
	for i, g := range groups {
		if basePort != 0 {
			g.port = basePort + i
		}
		n := counts[g.Behaviour]
		switch {
		case g.how.ipv6:
			g.addrs = []netip.Addr{loopback6}
			continue
		case n == 1:
			g.addrs = []netip.Addr{addr}
			continue
		}
		for range n {
			g.addrs = append(g.addrs, next)
			next = next.Next()
		}
	}
	return groups, nil
}

// name is that of the group's i-th proxy.
func (g *group) name(i int) string {
	if len(g.addrs) == 1 {
		return string(g.Behaviour)
	}
	return fmt.Sprintf("%s-%d", g.Behaviour, i+1)
}
