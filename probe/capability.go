package probe

import (
	"slices"
	"strings"
)

// Capability is something that a proxy can do.
type Capability string

// The capabilities that a pool can require, cheap ones first: the order in which
// they are asked for.
const (
	HTTP Capability = "http" // brings a page over plain http
	TLS  Capability = "tls"  // brings a TLS connection to the judge, unbroken
)

// Capabilities returns the closed list of those that can be required, cheap ones
// first.
func Capabilities() []Capability { return []Capability{HTTP, TLS} }

// What proxies are found to be able to do, beyond what can be required.
const (
	Connect   Capability = "connect"    // opens tunnels for CONNECT
	RemoteDNS Capability = "remote_dns" // resolves names itself
	IPv6Exit  Capability = "ipv6_exit"  // reaches the judge over IPv6
)

// CapabilitySet is a set of capabilities. The zero value is empty.
type CapabilitySet uint8

// found is the order of the bits, of names, and of everything that is shown.
var found = [...]Capability{HTTP, Connect, TLS, RemoteDNS, IPv6Exit}

// NewCapabilitySet returns the set of those of the list that are known.
func NewCapabilitySet(list ...Capability) (set CapabilitySet) {
	for i, c := range found {
		if slices.Contains(list, c) {
			set |= 1 << i
		}
	}
	return set
}

// Has says whether the capability is in the set.
func (s CapabilitySet) Has(c Capability) bool {
	i := slices.Index(found[:], c)
	return i >= 0 && s&(1<<i) != 0
}

// List returns the capabilities in their fixed order; nil for none.
func (s CapabilitySet) List() (list []Capability) {
	for i, c := range found {
		if s&(1<<i) != 0 {
			list = append(list, c)
		}
	}
	return list
}

// String is the names with spaces between.
func (s CapabilitySet) String() string {
	names := make([]string, 0, len(found))
	for _, c := range s.List() {
		names = append(names, string(c))
	}
	return strings.Join(names, " ")
}
