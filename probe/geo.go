package probe

import "net/netip"

// Geo says where an address is: its country's ISO 3166-1 code in upper case and
// the number of its autonomous system; "" and 0 where that is not known. It is safe
// for concurrent use.
type Geo func(addr netip.Addr) (country string, asn uint32)

// Place is what Geo said.
type Place struct {
	Country string
	ASN     uint32
}

// place is where an address is; a nil Geo knows nothing.
func (g Geo) place(addr netip.Addr) (p Place) {
	if g != nil {
		p.Country, p.ASN = g(addr)
	}
	return p
}
