package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
)

func addrs(texts ...string) (list []netip.Addr) {
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func TestAnonymity(t *testing.T) {
	own := addrs("8.8.4.4", "2600:1:2:3::4")
	const proxy, exit = "9.9.9.9", "9.9.9.10"
	headers := func(pairs ...string) map[string][]string {
		h := map[string][]string{"User-Agent": {userAgent}, "Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
		}
		return h
	}
	tests := []struct {
		name    string
		own     []netip.Addr
		proxy   string
		exit    string
		headers map[string][]string
		direct  []string
		want    Anonymity
	}{
		{"nothing added", own, proxy, exit, headers(), nil, Elite},
		{"what clients send", own, proxy, exit, headers("Connection", "close", "Cache-Control", "max-age=0"), nil, Elite},
		{"Via", own, proxy, exit, headers("Via", "1.1 squid"), nil, Anonymous},
		{"another client", own, proxy, exit, headers("X-Forwarded-For", "1.2.3.4"), nil, Anonymous},
		{"unknown client", own, proxy, exit, headers("X-Forwarded-For", "unknown"), nil, Anonymous},
		{"obfuscated", own, proxy, exit, headers("Forwarded", "for=_hidden"), nil, Anonymous},
		{"Proxy-Connection", own, proxy, exit, headers("Proxy-Connection", "keep-alive"), nil, Anonymous},
		{"a header of its own", own, proxy, exit, headers("X-Thing", "1"), nil, Anonymous},
		{"X-Forwarded-For", own, proxy, exit, headers("X-Forwarded-For", "8.8.4.4"), nil, Transparent},
		{"in a list", own, proxy, exit, headers("X-Forwarded-For", "10.0.0.1, 8.8.4.4,9.9.9.10"), nil, Transparent},
		{"with a port", own, proxy, exit, headers("X-Client", "8.8.4.4:1234"), nil, Transparent},
		{"Forwarded", own, proxy, exit, headers("Forwarded", `for=8.8.4.4;proto=http;by=203.0.113.43`), nil, Transparent},
		{"Forwarded, IPv6 with a port", own, proxy, exit, headers("Forwarded", `For="[2600:1:2:3::4]:4711"`), nil, Transparent},
		{"IPv6 in full", own, proxy, exit, headers("X-Real-Ip", "2600:0001:0002:0003:0000:0000:0000:0004"), nil, Transparent},
		{"another one of our IPv6 addresses", own, proxy, exit, headers("X-Real-Ip", "2600:1:2:3:ffff::1"), nil, Transparent},
		{"another network's", own, proxy, exit, headers("X-Real-Ip", "2600:1:2:4::4"), nil, Anonymous},
		{"IPv4 as IPv6", own, proxy, exit, headers("X-Real-Ip", "::ffff:8.8.4.4"), nil, Transparent},
		{"in an ordinary header", own, proxy, exit, headers("Cache-Control", "x=8.8.4.4"), nil, Transparent},
		{"at the end of a sentence", own, proxy, exit, headers("Via", "1.1 gate for 8.8.4.4."), nil, Transparent},
		{"part of another address", own, proxy, exit, headers("X-Real-Ip", "18.8.4.4"), nil, Anonymous},
		{"goes out by us", own, proxy, "8.8.4.4", headers(), nil, Transparent},
		{"added before the judge", own, proxy, exit, headers("X-Forwarded-For", exit), []string{"X-Forwarded-For"}, Elite},
		{"added before the judge and by the proxy", own, proxy, exit, headers("X-Forwarded-For", "1.2.3.4, "+exit), []string{"X-Forwarded-For"}, Anonymous},
		{"added before the judge, with us in it", own, proxy, exit, headers("X-Forwarded-For", "8.8.4.4, "+exit), []string{"X-Forwarded-For"}, Transparent},
		{"no address of ours is known", nil, proxy, exit, headers("X-Forwarded-For", "1.2.3.4"), nil, ""},
		{"none of the proxy's family", addrs("8.8.4.4"), "2001:500::1", exit, headers(), nil, ""},
		{"none of the proxy's family, but given away", addrs("8.8.4.4"), "2001:500::1", exit, headers("Via", "8.8.4.4"), nil, Transparent},
		{"a private one, the proxy is public", addrs("192.168.0.2"), proxy, exit, headers(), nil, ""},
		{"a private one, the proxy as well", addrs("192.168.0.2"), "192.168.0.9", exit, headers(), nil, Elite},
		{"headers are not told", own, proxy, exit, nil, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := witness{exit: netip.MustParseAddr(test.exit), headers: test.headers}
			if got := w.anonymity(test.own, test.direct, netip.MustParseAddr(test.proxy)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSeenAdds(t *testing.T) {
	var s Seen
	s.Add(Seen{Own: addrs("8.8.4.4"), Headers: map[string][]string{"mine": {"Via"}}})
	s.Add(Seen{Own: addrs("8.8.4.4", "2600::1"), Headers: map[string][]string{"mine": {"Via", "X-A"}, "other": {"X-B"}}})
	if got := fmt.Sprint(s); got != "{[8.8.4.4 2600::1] map[mine:[Via X-A] other:[X-B]]}" {
		t.Error(got)
	}
	for i := range maxOwn {
		s.Add(Seen{Own: []netip.Addr{netip.AddrFrom4([4]byte{9, 9, 9, byte(i)})}})
	}
	if len(s.Own) != maxOwn || slices.Contains(s.Own, netip.MustParseAddr("8.8.4.4")) {
		t.Errorf("%d addresses are kept", len(s.Own))
	}
}

// FuzzAddresses: whatever stands around an address in a header, it is found.
func FuzzAddresses(f *testing.F) {
	f.Add("for=", []byte{8, 8, 4, 4}, ";by=x", uint16(0))
	f.Add(`"[`, []byte{0x26, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, `]"`, uint16(80))
	f.Fuzz(func(t *testing.T, before string, raw []byte, after string, port uint16) {
		addr, ok := netip.AddrFromSlice(raw)
		for range addresses(before + after) { // whatever comes, it ends
			continue
		}
		if !ok || addr.Is4In6() {
			return
		}
		// What would change the address itself is another address.
		if before != "" && !notOfAddress(rune(before[len(before)-1])) || after != "" && !notOfAddress(rune(after[0])) {
			return
		}
		text := addr.String()
		if port > 0 {
			text = netip.AddrPortFrom(addr, port).String()
		}
		for found := range addresses(before + text + after) {
			if found == addr {
				return
			}
		}
		t.Fatalf("%q is not found in %q", text, before+text+after)
	})
}
