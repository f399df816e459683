package daemon

import (
	"math/bits"

	"evenpool/sources/proxyurl"
)

// claim is what one list says of one endpoint. The lists of a daemon name a
// hundred thousand of them, so it is four bytes.
type claim struct {
	schemes schemeSet
	hint    uint16 // the place in the source's hints
}

// schemeSet is a set of schemes: a bit for each place in proxyurl.Claims.
type schemeSet uint8

func newSchemeSet(list []proxyurl.Scheme) (set schemeSet) {
	for i, s := range proxyurl.Claims() {
		for _, have := range list {
			if have == s {
				set |= 1 << i
			}
		}
	}
	return set
}

func (set schemeSet) schemes() (list []proxyurl.Scheme) {
	for i, s := range proxyurl.Claims() {
		if set&(1<<i) != 0 {
			list = append(list, s)
		}
	}
	return list
}

// schemeSets remembers the set of each slice: the candidates of a list share them.
type schemeSets map[*proxyurl.Scheme]schemeSet

func (m schemeSets) of(list []proxyurl.Scheme) schemeSet {
	if len(list) == 0 {
		return 0
	}
	// Slices of one array may begin alike and end apart.
	if set, ok := m[&list[0]]; ok && len(list) == bits.OnesCount8(uint8(set)) {
		return set
	}
	set := newSchemeSet(list)
	m[&list[0]] = set
	return set
}
