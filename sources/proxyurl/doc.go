// Package proxyurl is the noun of evenpool: a proxy's address and identity,
// its one canonical text, and which addresses may be dialled at all.
//
// It is a leaf: every other package may import it and it imports none of them.
package proxyurl
