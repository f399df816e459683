package proxyurl

import (
	"errors"
	"net/netip"
	"testing"
)

// denied4 is the promise, written down apart from the code: every IPv4 range
// that is never dialled, with the word that says why.
var denied4 = []struct{ prefix, reason string }{
	{"0.0.0.0/8", "unspecified"},
	{"10.0.0.0/8", "private"},
	{"100.64.0.0/10", "cgnat"},
	{"127.0.0.0/8", "loopback"},
	{"168.63.129.16/32", "reserved"},
	{"169.254.0.0/16", "link-local"},
	{"172.16.0.0/12", "private"},
	{"192.0.0.0/24", "reserved"},
	{"192.0.2.0/24", "documentation"},
	{"192.31.196.0/24", "reserved"},
	{"192.52.193.0/24", "reserved"},
	{"192.88.99.0/24", "reserved"},
	{"192.168.0.0/16", "private"},
	{"192.175.48.0/24", "reserved"},
	{"198.18.0.0/15", "reserved"},
	{"198.51.100.0/24", "documentation"},
	{"203.0.113.0/24", "documentation"},
	{"224.0.0.0/4", "multicast"},
	{"240.0.0.0/4", "reserved"},
}

// denied6 holds the ranges that are denied within 2000::/3; all outside is.
var denied6 = []struct{ prefix, reason string }{
	{"2001::/23", "reserved"},
	{"2001:db8::/32", "documentation"},
	{"2002::/16", "reserved"},
	{"2620:4f:8000::/48", "reserved"},
	{"3fff::/20", "documentation"},
}

// last returns the highest address of a prefix.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

func mapped(a netip.Addr) netip.Addr { return netip.AddrFrom16(a.As16()) }

func wantForbidden(t *testing.T, addr netip.Addr, want string) {
	t.Helper()
	got, forbidden := Forbidden(addr)
	if !forbidden || got != want {
		t.Errorf("Forbidden(%s) = %q, %t, want %q", addr, got, forbidden, want)
	}
	var refused *ForbiddenError
	if err := Allow(nil).Check(addr); !errors.As(err, &refused) || refused.Reason != want {
		t.Errorf("Check(%s) = %v, want a ForbiddenError for %q", addr, err, want)
	}
}

func TestL1_EveryDeniedIPv4RangeAtItsEdges(t *testing.T) {
	ranges := make([]netip.Prefix, len(denied4))
	for i, d := range denied4 {
		ranges[i] = netip.MustParsePrefix(d.prefix)
	}
	reasonFor := func(addr netip.Addr) (string, bool) {
		for i, r := range ranges {
			if r.Contains(addr) {
				return denied4[i].reason, true
			}
		}
		return "", false
	}
	for i, d := range denied4 {
		first, last := ranges[i].Addr(), last(ranges[i])
		for _, addr := range []netip.Addr{first, first.Next(), last.Prev(), last} {
			if !ranges[i].Contains(addr) {
				continue // beside a /32
			}
			wantForbidden(t, addr, d.reason)
			wantForbidden(t, mapped(addr), d.reason)
		}
		for _, addr := range []netip.Addr{first.Prev(), last.Next()} {
			if !addr.IsValid() {
				continue // before 0.0.0.0, after 255.255.255.255
			}
			// A neighbour may lie in another range: 224/4 and 240/4 touch.
			want, denied := reasonFor(addr)
			for _, form := range []netip.Addr{addr, mapped(addr)} {
				if denied {
					wantForbidden(t, form, want)
				} else if reason, forbidden := Forbidden(form); forbidden {
					t.Errorf("Forbidden(%s) = %q beside %s, want it public", form, reason, d.prefix)
				}
			}
		}
	}
}

func TestL1_EveryDeniedIPv6RangeAtItsEdges(t *testing.T) {
	for _, d := range denied6 {
		p := netip.MustParsePrefix(d.prefix)
		wantForbidden(t, p.Addr(), d.reason)
		wantForbidden(t, last(p), d.reason)
		for _, addr := range []netip.Addr{p.Addr().Prev(), last(p).Next()} {
			switch addr.String() {
			case "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff": // outside 2000::/3
				wantForbidden(t, addr, "reserved")
			default:
				if reason, forbidden := Forbidden(addr); forbidden {
					t.Errorf("Forbidden(%s) = %q beside %s, want it public", addr, reason, d.prefix)
				}
			}
		}
	}
}

func TestL1_OnlyGlobalUnicastIPv6IsPublic(t *testing.T) {
	for text, want := range map[string]string{
		"::":                       "unspecified",
		"::1":                      "loopback",
		"::2":                      "reserved",
		"::127.0.0.1":              "reserved", // IPv4-compatible, long obsolete
		"64:ff9b::7f00:1":          "reserved", // NAT64 would reach 127.0.0.1
		"64:ff9b:1::1":             "reserved",
		"100::1":                   "reserved",
		"1fff::1":                  "reserved",
		"4000::":                   "reserved",
		"fc00::1":                  "private",
		"fdff::1":                  "private",
		"fe80::1":                  "link-local",
		"fe80::1%eth0":             "zone",
		"2606:4700::1%eth0":        "zone",
		"::ffff:8.8.8.8%eth0":      "zone",
		"fec0::1":                  "reserved",
		"ff02::1":                  "multicast",
		"::ffff:169.254.169.254":   "link-local",
		"0:0:0:0:0:ffff:7f00:1":    "loopback",
		"::ffff:0:127.0.0.1":       "reserved", // SIIT form
		"2002:7f00:1::":            "reserved", // 6to4 of 127.0.0.1
		"2001:0:7f00:1::":          "reserved", // Teredo
		"2001:db8:ffff:ffff::ffff": "documentation",
	} {
		wantForbidden(t, netip.MustParseAddr(text), want)
	}
	for _, text := range []string{"2000::", "2001:200::1", "2606:4700::1", "2a00:1450::1", "3ffe::1", "3fff:1000::",
		"8.8.8.8", "::ffff:8.8.8.8", "1.1.1.1", "223.255.255.255"} {
		if reason, forbidden := Forbidden(netip.MustParseAddr(text)); forbidden {
			t.Errorf("Forbidden(%s) = %q, want it public", text, reason)
		}
	}
	wantForbidden(t, netip.Addr{}, "invalid")
}

func TestL1_AllowOpensItsPrefixesAndNothingElse(t *testing.T) {
	allow := Allow{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fe80::/10")}
	for text, open := range map[string]bool{
		"127.0.0.1":              true,
		"::ffff:127.9.9.9":       true,
		"fe80::1":                true,
		"fe80::1%eth0":           false,
		"::ffff:127.0.0.1%eth0":  false,
		"10.0.0.1":               false,
		"::1":                    false,
		"8.8.8.8":                true,
		"::ffff:169.254.169.254": false,
	} {
		if err := allow.Check(netip.MustParseAddr(text)); (err == nil) != open {
			t.Errorf("Check(%s) = %v, want open: %t", text, err, open)
		}
	}
	if allow.Contains(netip.MustParseAddr("8.8.8.8")) {
		t.Error("Contains(8.8.8.8): a public address is not within the opened prefixes")
	}
	if allow.Contains(netip.MustParseAddr("::ffff:127.0.0.1%eth0")) {
		t.Error("Contains of an address with a zone, want false")
	}
}

func TestForbiddenErrorText(t *testing.T) {
	err := Allow(nil).Check(netip.MustParseAddr("169.254.169.254"))
	if got, want := err.Error(), "address 169.254.169.254 may not be dialled: link-local"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestL3_PortsThatAreNeverProxies(t *testing.T) {
	never := map[uint16]bool{}
	for _, port := range []uint16{22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 993, 995, 1433, 3306, 3389, 5432, 5900, 6379, 11211, 27017} {
		never[port] = true
	}
	for port := range 65536 {
		if got := NeverProxyPort(uint16(port)); got != never[uint16(port)] {
			t.Errorf("NeverProxyPort(%d) = %t", port, got)
		}
	}
}
