package proxyurl

import (
	"net/netip"
	"testing"
)

// embeddings are the IPv6 addresses that a router somewhere turns into a packet
// to the IPv4 address they hold: behind each, a private range would be in reach
// again.
var embeddings = []struct {
	name string
	of   func(v4 [4]byte) netip.Addr
}{
	{"IPv4-compatible", embed("::", 12)}, // RFC 4291 section 2.5.5.1
	{"SIIT", embed("::ffff:0:0:0", 12)},  // RFC 2765
	{"NAT64", embed("64:ff9b::", 12)},    // RFC 6052
	{"NAT64 of the network's own, at the end", embed("64:ff9b:1::", 12)},
	{"NAT64 of the network's own, behind /48", func(v4 [4]byte) netip.Addr { // RFC 6052 section 2.2
		bytes := netip.MustParseAddr("64:ff9b:1::").As16()
		bytes[6], bytes[7], bytes[9], bytes[10] = v4[0], v4[1], v4[2], v4[3] // byte 8 stays zero
		return netip.AddrFrom16(bytes)
	}},
	{"6to4", embed("2002::1", 2)}, // RFC 3056
	{"6to4 with the address twice", func(v4 [4]byte) netip.Addr { // as Windows made them
		bytes := embed("2002::", 2)(v4).As16()
		copy(bytes[12:], v4[:])
		return netip.AddrFrom16(bytes)
	}},
	{"Teredo's server", embed("2001::1", 4)}, // RFC 4380
	{"Teredo's client", func(v4 [4]byte) netip.Addr {
		for i := range v4 {
			v4[i] ^= 0xff
		}
		return embed("2001:0:102:304:8000:1234::", 12)(v4)
	}},
}

// embed puts an IPv4 address at a byte of an IPv6 address.
func embed(base string, at int) func([4]byte) netip.Addr {
	return func(v4 [4]byte) netip.Addr {
		bytes := netip.MustParseAddr(base).As16()
		copy(bytes[at:], v4[:])
		return netip.AddrFrom16(bytes)
	}
}

// All of these prefixes are refused as a whole, whatever address they hold, a
// public one included: nobody publishes a proxy by such an address.
func TestL1_NoIPv4AddressIsReachedThroughAnIPv6Form(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("8.8.8.8"), netip.MustParseAddr("1.2.3.4")}
	for _, d := range denied4 {
		p := netip.MustParsePrefix(d.prefix)
		for _, addr := range []netip.Addr{p.Addr().Prev(), p.Addr(), last(p), last(p).Next()} {
			if addr.IsValid() {
				addrs = append(addrs, addr)
			}
		}
	}
	for _, form := range embeddings {
		t.Run(form.name, func(t *testing.T) {
			for _, addr := range addrs {
				embedded := form.of(addr.As4())
				want := "reserved"
				switch { // the two that have a name of their own
				case embedded.IsUnspecified():
					want = "unspecified"
				case embedded.IsLoopback():
					want = "loopback"
				}
				wantForbidden(t, embedded, want)
			}
		})
	}
}

// The edges of what holds IPv4 addresses or is none of the Internet's, outside
// and inside 2000::/3: first, last, before and after.
func TestL1_EveryRangeThatHoldsOtherAddressesAtItsEdges(t *testing.T) {
	for _, c := range []struct{ prefix, first, last, before, after string }{
		{"::/96", "unspecified", "reserved", "", "reserved"},
		{"::ffff:0:0/96", "unspecified", "reserved", "reserved", "reserved"}, // 0.0.0.0 and 255.255.255.255
		{"::ffff:0:0:0/96", "reserved", "reserved", "reserved", "reserved"},
		{"64:ff9b::/96", "reserved", "reserved", "reserved", "reserved"},
		{"64:ff9b:1::/48", "reserved", "reserved", "reserved", "reserved"},
		{"100::/64", "reserved", "reserved", "reserved", "reserved"},
		{"2000::/3", "", "", "reserved", "reserved"},
		{"2001::/32", "reserved", "reserved", "", "reserved"}, // Teredo; behind it is the rest of 2001::/23
		{"2001:1ff:ffff:ffff::/64", "reserved", "reserved", "reserved", ""},
		{"2002::/16", "reserved", "reserved", "", ""},
		{"3fff::/20", "documentation", "documentation", "", ""},
		{"5f00::/16", "reserved", "reserved", "reserved", "reserved"},
		{"fc00::/7", "private", "private", "reserved", "reserved"},
		{"fe80::/10", "link-local", "link-local", "reserved", "reserved"},
		{"fec0::/10", "reserved", "reserved", "link-local", "multicast"},
		{"ff00::/8", "multicast", "multicast", "reserved", ""},
	} {
		p := netip.MustParsePrefix(c.prefix)
		for _, edge := range []struct {
			addr netip.Addr
			want string
		}{{p.Addr(), c.first}, {last(p), c.last}, {p.Addr().Prev(), c.before}, {last(p).Next(), c.after}} {
			switch {
			case !edge.addr.IsValid(): // before :: and after the last of all
			case edge.want != "":
				wantForbidden(t, edge.addr, edge.want)
			default:
				if reason, forbidden := Forbidden(edge.addr); forbidden {
					t.Errorf("Forbidden(%s) = %q at %s, want it public", edge.addr, reason, c.prefix)
				}
			}
		}
	}
}
