package proxyurl

import "net/netip"

// Allow lists prefixes that one source or one judge has opened for itself
// beyond the public unicast addresses: own proxies, a lab on loopback. The nil
// value opens nothing.
type Allow []netip.Prefix

// Contains says whether addr lies in one of the prefixes; one with a zone never
// does.
func (a Allow) Contains(addr netip.Addr) bool {
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	for _, p := range a {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// Check returns nil when addr may be dialled: public unicast, or within one of
// the prefixes. Else it returns a *ForbiddenError.
func (a Allow) Check(addr netip.Addr) error {
	reason, forbidden := Forbidden(addr)
	if !forbidden || a.Contains(addr) {
		return nil
	}
	return &ForbiddenError{Addr: addr, Reason: reason}
}

type block struct {
	prefix netip.Prefix
	reason string
}

// blocks4 and blocks6 hold what is not public unicast, from the IANA IPv4 and
// IPv6 Special-Purpose Address Registries (RFC 6890 and its updates), and
// 168.63.129.16, a cloud's virtual host address that looks public.
var (
	blocks4 = []block{
		{netip.MustParsePrefix("0.0.0.0/8"), "unspecified"},
		{netip.MustParsePrefix("10.0.0.0/8"), "private"},
		{netip.MustParsePrefix("100.64.0.0/10"), "cgnat"},
		{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
		{netip.MustParsePrefix("172.16.0.0/12"), "private"},
		{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
		{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
		{netip.MustParsePrefix("192.31.196.0/24"), "reserved"},
		{netip.MustParsePrefix("192.52.193.0/24"), "reserved"},
		{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
		{netip.MustParsePrefix("192.168.0.0/16"), "private"},
		{netip.MustParsePrefix("192.175.48.0/24"), "reserved"},
		{netip.MustParsePrefix("198.18.0.0/15"), "reserved"},
		{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
		{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
		{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
		{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
		{netip.MustParsePrefix("168.63.129.16/32"), "reserved"},
	}
	global6 = netip.MustParsePrefix("2000::/3")
	blocks6 = []block{
		{netip.MustParsePrefix("2001::/23"), "reserved"},
		{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
		{netip.MustParsePrefix("2002::/16"), "reserved"},
		{netip.MustParsePrefix("2620:4f:8000::/48"), "reserved"},
		{netip.MustParsePrefix("3fff::/20"), "documentation"},
	}
)

// blocks4By holds for each first byte the blocks of blocks4 that have addresses
// beginning so: none, for most of the Internet.
var blocks4By = func() (by [256][]block) {
	for first := range by {
		all := netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(first)}), 8)
		for _, b := range blocks4 {
			if all.Overlaps(b.prefix) {
				by[first] = append(by[first], b)
			}
		}
	}
	return by
}()

// Forbidden says whether addr is anything but a public unicast address, and in
// one word why: "unspecified", "private", "cgnat", "loopback", "link-local",
// "documentation", "multicast", "reserved", "zone" or "invalid". An IPv4 address
// mapped into IPv6 is judged as the IPv4 address it is.
func Forbidden(addr netip.Addr) (reason string, forbidden bool) {
	zone := addr.Zone() // asked before Unmap, which drops it
	addr = addr.Unmap()
	switch {
	case !addr.IsValid():
		return "invalid", true
	case zone != "":
		return "zone", true
	case addr.Is4():
		return lookup(blocks4By[addr.As4()[0]], addr)
	case global6.Contains(addr):
		return lookup(blocks6, addr)
	case addr.IsUnspecified():
		return "unspecified", true
	case addr.IsLoopback():
		return "loopback", true
	case addr.IsPrivate():
		return "private", true
	case addr.IsLinkLocalUnicast():
		return "link-local", true
	case addr.IsMulticast():
		return "multicast", true
	default:
		return "reserved", true
	}
}

// PublicDotted says whether an IPv4 address is public because of its first byte
// alone: what it says yes to, Forbidden does not forbid. Most of a list's addresses
// need no other look.
func PublicDotted(addr [4]byte) bool { return len(blocks4By[addr[0]]) == 0 }

func lookup(blocks []block, addr netip.Addr) (string, bool) {
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.reason, true
		}
	}
	return "", false
}

// NeverProxyPort says whether a port belongs to another service so firmly that a
// list that names it is an attempt to have that service connected to: mail, SSH,
// databases, remote desktops.
func NeverProxyPort(port uint16) bool {
	switch port {
	case 22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 993, 995, 1433, 3306, 3389,
		5432, 5900, 6379, 11211, 27017:
		return true
	}
	return false
}
