package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// forbidden is the promise L1, written down apart from the code.
var forbidden = prefixes(`
	0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
	192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15
	198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
	::/3 4000::/2 8000::/1 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20`)

// neverPorts is the promise L3.
var neverPorts = []uint16{22, 23, 25, 53, 110, 143, 389, 445, 465, 587, 993, 995, 1433, 3306, 3389, 5432, 5900, 6379, 11211, 27017}

func prefixes(text string) (list []netip.Prefix) {
	for _, field := range strings.Fields(text) {
		list = append(list, netip.MustParsePrefix(field))
	}
	return list
}

// Who is flooded: each is a public address, or a prefix of such, that the list
// names thousands of times.
var (
	manyPorts   = netip.MustParseAddr("46.4.4.4")             // with its ports, also written ::ffff:46.4.4.4
	manyUsers   = netip.MustParseAddr("46.5.5.5")             // one port, another user each time
	manyNames   = netip.MustParseAddr("46.6.6.6")             // what thousands of names resolve to
	manyHosts   = netip.MustParsePrefix("46.7.7.0/24")        // all hosts, many ports
	manyHosts6  = netip.MustParsePrefix("2a0b:46:7::/48")     // each host in a /64 of its own
	manyPorts6  = netip.MustParseAddr("2a0b:46:8::1")         // one address
	manyLists   = netip.MustParsePrefix("46.8.8.0/24")        // few in each of many lists, always others
	innocent    = netip.MustParsePrefix("45.32.0.0/16")       // 400 candidates with nothing wrong about them
	goodProxy   = netip.MustParseAddrPort("45.10.20.30:8080") // real proxies
	goodProxy6  = netip.MustParseAddrPort("[2a0b:45:10::5]:3128")
	goodByName  = netip.MustParseAddrPort("45.10.20.40:8080") // good.evil.example
	judgeServer = netip.MustParseAddrPort("5.6.7.8:80")
	listServer  = netip.MustParseAddrPort("5.6.7.9:80")
)

// evilNames are what the namespace's resolver knows. A name beneath
// flood.example is manyNames.
var evilNames = map[string][]string{
	"good.evil.example":      {goodByName.Addr().String()},
	"loopback.evil.example":  {"127.0.0.1"},
	"loopback6.evil.example": {"::1"},
	"private.evil.example":   {"192.168.1.1"},
	"metadata.evil.example":  {"169.254.169.254"},
	"mapped.evil.example":    {"::ffff:10.0.0.1"},
	"nat64.evil.example":     {"64:ff9b::7f00:1"},
	"sixto4.evil.example":    {"2002:7f00:1::1"},
	"mixed.evil.example":     {"46.9.9.9", "127.0.0.1"},
	"mixed6.evil.example":    {"46.9.9.10", "fd00::1"},
	"unspecified.example":    {"0.0.0.0"},
	// Public when it is asked first, loopback from then on.
	"rebind.evil.example": {"46.9.9.11"},
}

// serveEvilNames answers questions until the test ends.
func serveEvilNames(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	asked := map[string]int{}
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var question dnsmessage.Message
			if question.Unpack(buf[:n]) != nil || len(question.Questions) != 1 {
				continue
			}
			answer, err := answerEvil(question.ID, question.Questions[0], asked)
			if err == nil {
				conn.WriteTo(answer, from)
			}
		}
	}()
}

func answerEvil(id uint16, q dnsmessage.Question, asked map[string]int) ([]byte, error) {
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	addrs := evilNames[name]
	switch asked[name+q.Type.String()]++; {
	case strings.HasSuffix(name, ".flood.example"):
		addrs = []string{manyNames.String()}
	case name == "rebind.evil.example" && asked[name+q.Type.String()] > 1:
		addrs = []string{"127.0.0.1"}
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: id, Response: true, RecursionAvailable: true}, Questions: []dnsmessage.Question{q}}
	if len(addrs) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addrs {
		addr := netip.MustParseAddr(text)
		var body dnsmessage.ResourceBody
		switch {
		case addr.Is4() && q.Type == dnsmessage.TypeA:
			body = &dnsmessage.AResource{A: addr.As4()}
		case addr.Is6() && q.Type == dnsmessage.TypeAAAA:
			body = &dnsmessage.AAAAResource{AAAA: addr.As16()}
		default:
			continue
		}
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}, Body: body})
	}
	return m.Pack()
}

// hostileList is a list of at least 5 MB with everything that RELIABILITY's F is
// about, mixed, and the candidates that are to be dialled in the midst of it.
func hostileList() (text string, allowed []netip.AddrPort) {
	random := rand.New(rand.NewPCG(1, 2))
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }

	allowed = []netip.AddrPort{goodProxy, goodProxy6, goodByName}
	add("http://%s", goodProxy)
	add("http://%s", goodProxy6)
	add("http://good.evil.example:%d", goodByName.Port())
	for i := range 400 {
		bytes := innocent.Addr().As4()
		bytes[2], bytes[3] = byte(i%100), byte(1+i/100*3)
		to := netip.AddrPortFrom(netip.AddrFrom4(bytes), uint16(8000+i%90))
		allowed = append(allowed, to)
		add("http://%s", to)
	}

	floods(add, random)
	for _, p := range forbidden {
		for range 24 {
			for _, form := range notations(someOf(random, p)) {
				for _, port := range []int{80, 1080, 8080} {
					add("%s%s:%d", [...]string{"", "http://", "socks5://", "joe:secret@"}[random.IntN(4)], form, port)
				}
			}
		}
	}
	for _, port := range neverPorts {
		for range 300 {
			add("http://%s:%d", someOf(random, innocent), port)
		}
		add("good.evil.example:%d", port)
		add("[2a0b:45:10::6]:%d", port)
	}
	for name := range evilNames {
		if !strings.HasPrefix(name, "good.") {
			for port := range 50 {
				add("%s:%d", name, 8000+port)
			}
		}
	}
	for size := 0; size < 5_000_000; {
		size = 0
		for _, line := range lines {
			size += len(line) + 1
		}
		for range (5_000_000 - size) / 40 {
			lines = append(lines, damaged(random))
		}
		if 5_000_000-size < 400 {
			add("# %s", strings.Repeat("x", 400))
		}
	}
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, "\n") + "\n", allowed
}

// floods names a few victims again and again, in all ways that make another
// candidate of the same address.
func floods(add func(string, ...any), random *rand.Rand) {
	for i := range 20_000 {
		port := 1024 + i
		add("%s:%d", manyPorts, port)
		switch i % 4 {
		case 0:
			add("[::ffff:%s]:%d", manyPorts, port+20_000)
		case 1:
			add("socks5://%s:%d", manyPorts, port)
		case 2:
			add("[%s]:%d", manyPorts6, port)
		}
	}
	for i := range 10_000 {
		add("user%d:pass@%s:8080", i, manyUsers)
	}
	for i := range 3_000 {
		add("n%d.flood.example:%d", i, 1024+i)
	}
	for i := range 20_000 {
		add("%s:%d", someOf(random, manyHosts), 1024+i)
		add("http://[%s]:8080", someOf(random, manyHosts6))
	}
}

// listInConcert names what one list may name of manyLists: four ports of an
// address, and 60 other addresses.
func listInConcert(n int) string {
	var b strings.Builder
	addr := manyLists.Addr().As4()
	for i := range 4 {
		addr[3] = 1
		fmt.Fprintf(&b, "http://%s:%d\n", netip.AddrFrom4(addr), 8000+10*n+i)
	}
	for i := range 60 {
		addr[3] = byte(2 + (60*n+i)%250)
		fmt.Fprintf(&b, "http://%s:%d\n", netip.AddrFrom4(addr), 8000+n)
	}
	return b.String()
}

// someOf returns some address of a prefix.
func someOf(random *rand.Rand, p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		if random.IntN(2) == 1 {
			bytes[bit/8] |= 0x80 >> (bit % 8)
		}
	}
	addr, _ := netip.AddrFromSlice(bytes)
	return addr
}

// notations are the ways in which an address may be written or hidden.
func notations(addr netip.Addr) []string {
	if !addr.Is4() {
		return []string{"[" + addr.String() + "]", "[" + addr.StringExpanded() + "]", "[" + strings.ToUpper(addr.String()) + "]",
			"[" + addr.String() + "%lo]", "[" + addr.String() + "%25lo]"}
	}
	b := addr.As4()
	hex := fmt.Sprintf("%02x%02x:%02x%02x", b[0], b[1], b[2], b[3])
	teredo := fmt.Sprintf("%02x%02x:%02x%02x", ^b[0], ^b[1], ^b[2], ^b[3])
	return []string{
		addr.String(),
		"[::ffff:" + addr.String() + "]", "[::ffff:" + hex + "]", "[0:0:0:0:0:FFFF:" + hex + "]", "[::ffff:" + addr.String() + "%lo]",
		"[::" + hex + "]", "[::ffff:0:" + hex + "]", // IPv4-compatible, SIIT
		"[64:ff9b::" + hex + "]", "[64:ff9b:1::" + hex + "]", // NAT64
		"[2002:" + hex + "::1]",                                                  // 6to4
		"[2001:0:" + hex + "::1]", "[2001:0:2d2d:2d2d:8000:1234:" + teredo + "]", // Teredo: server, client
		fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0%o.0%o.0%o.0%o", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0x%02x.0x%02x.0x%02x.0x%02x", b[0], b[1], b[2], b[3]),
		fmt.Sprintf("0x%02x%02x%02x%02x", b[0], b[1], b[2], b[3]),
		fmt.Sprint(uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])),
		fmt.Sprintf("%d.%d", b[0], b[3]),
		fmt.Sprintf("%d%%2e%d%%2e%d%%2e%d", b[0], b[1], b[2], b[3]),
		addr.String() + ".",
	}
}

// damaged is a line that says nothing. Whoever rescues a part of it dials
// 60.0.0.0/8, where nobody else is.
func damaged(random *rand.Rand) string {
	a, b := someOf(random, rescued), someOf(random, rescued)
	return [...]string{
		fmt.Sprintf("%s:8080%s:8080", a, b),
		fmt.Sprintf("%s%s:8080", a, b),
		fmt.Sprintf("http://%s:80http://%s:80", a, b),
		fmt.Sprintf("updated at 10:00:01, see http://%s:8080/list", a),
		fmt.Sprintf("%s:8080:%s:8080", a, b),
		fmt.Sprintf("%s:99999", a),
		fmt.Sprintf("\x00%s:8080", a),
		fmt.Sprintf("\u202e%s:8080", a),
		fmt.Sprintf("%s:80,%s:80", a, b),
		fmt.Sprintf("http://%s/@%s:8080", a, b),
	}[random.IntN(10)]
}

var rescued = netip.MustParsePrefix("60.0.0.0/8")
