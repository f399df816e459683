package sources

import "evenpool/sources/proxyurl"

// claims is a set of what proxyurl.Claims lists: bit i stands for the i-th.
type claims uint8

// claimOf returns the set of one scheme; the empty one for "".
func claimOf(scheme proxyurl.Scheme) claims {
	return claimsOfSchemes[scheme]
}

var claimsOfSchemes = func() map[proxyurl.Scheme]claims {
	all := make(map[proxyurl.Scheme]claims)
	for i, scheme := range proxyurl.Claims() {
		all[scheme] = 1 << i
	}
	return all
}()

// list returns what is in the set, in the order of proxyurl.Claims.
func (c claims) list() (schemes []proxyurl.Scheme) {
	for i, s := range proxyurl.Claims() {
		if c&(1<<i) != 0 {
			schemes = append(schemes, s)
		}
	}
	return schemes
}

// bare is what a list says that gives a scheme and nothing else, for every set:
// most lists do, and the candidates of all of them share these.
var bare = func() (all [1 << 6]Said) {
	for i := range all {
		all[i].Schemes = claims(i).list()
	}
	return all
}()
