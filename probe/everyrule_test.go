package probe

import (
	"net/netip"
	"time"

	"evenpool/sources/proxyurl"
)

// everyRule has all rules in force, and goodResult meets them.
func everyRule() Rules {
	list, err := ParseBanned([]byte("1.2.3.4\n"))
	if err != nil {
		panic(err)
	}
	changes := 1
	return Rules{
		Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS5}, Require: Capabilities(), Banned: list,
		Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, NotNetworks: []netip.Prefix{netip.MustParsePrefix("9.9.9.0/24")},
		Ports: []PortRange{{80, 80}, {8000, 8999}}, MinJudges: 2, Anonymity: Anonymous,
		ExitCountries: []string{"DE", "FR"}, NotCountries: []string{"US"}, ExitASNs: []uint32{3320, 3215}, NotASNs: []uint32{64500},
		RequireTargets: []string{"shop"},
		MaxLatency:     Latency{Connect: 100 * time.Millisecond, FirstByte: 200 * time.Millisecond, Total: time.Second, Over: 10, Quantile: P90},
		MinSuccess:     Success{Percent: 80, Over: 10}, MaxExitChanges: &changes, MaxAge: time.Hour, Quarantine: DefaultQuarantine, Rise: 2, Fall: 2,
	}
}

// testGeo knows a few places: most of them what everyRule wants.
func testGeo(addr netip.Addr) (string, uint32) {
	switch addr.String() {
	case "6.6.6.6":
		return "IT", 3320
	case "7.7.7.7":
		return "US", 3320
	case "8.8.4.4":
		return "", 3320
	case "5.6.1.1":
		return "DE", 1
	case "5.6.2.2":
		return "DE", 64500
	}
	return "DE", 3320
}

func goodResult() Result {
	r := result(proxyurl.HTTP, 300*time.Millisecond, OK, OK)
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Connect, c.FirstByte = 50*time.Millisecond, 150*time.Millisecond
	}
	c := &r.Checks[0]
	c.Exit, c.Anonymity, c.Verified = netip.MustParseAddr("5.6.7.8"), Elite, true
	other := r.Checks[0]
	other.Judge = "other"
	r.Checks = append(r.Checks, other)
	r.Targets = []Check{{Target: "shop", Capability: HTTP, Outcome: OK, Total: 9 * time.Second}}
	r.Exit, r.Anonymity, r.Verified, r.Found = c.Exit, Elite, true, NewCapabilitySet(HTTP, Connect, TLS)
	return r
}
