package probe

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

func endpoint(t testing.TB, text string) proxyurl.Endpoint {
	t.Helper()
	e, err := proxyurl.ParseEndpoint(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestBar: what needs no probe is seen before one, all of it is named, and a member
// goes at once.
func TestBar(t *testing.T) {
	now := time.UnixMilli(1700000000000).UTC()
	tests := []struct {
		name, endpoint string
		rules          func(*Rules)
		rec            Record
		want           string
	}{
		{"nothing", "198.51.100.1:80", nil, Record{}, ""},
		{"banned", "1.2.3.4:80", func(r *Rules) { r.Networks = nil }, Record{}, "banned: fail: 1.2.3.4 is banned"},
		{"in another network", "198.51.101.1:80", nil, Record{}, "networks: fail: 198.51.101.1 is in none of 198.51.100.0/24"},
		{"in an excluded network", "9.9.9.9:80", func(r *Rules) { r.Networks = nil }, Record{}, "not_networks: fail: 9.9.9.9 is in 9.9.9.0/24"},
		{"a name may lead anywhere", "proxy.example.org:80", nil, Record{}, ""},
		{"on another port", "198.51.100.1:9000", nil, Record{}, "ports: fail: 9000 is not among 80, 8000-8999"},
		{"on a port of a range", "198.51.100.1:8999", nil, Record{}, ""},
		{"claims leave nothing open", "198.51.100.1:80", nil, Record{Schemes: []proxyurl.Scheme{proxyurl.SOCKS4}}, "schemes: fail: claimed: socks4; wanted: http, socks5"},
		{"in quarantine", "198.51.100.1:80", nil, Record{Offended: now.Add(-23 * time.Hour)}, "quarantine: fail: until 2023-11-14T23:13:20Z: it broke a rule of safety"},
		{"quarantine is over", "198.51.100.1:80", nil, Record{Offended: now.Add(-24 * time.Hour)}, ""},
		{"no quarantine", "198.51.100.1:80", func(r *Rules) { r.Quarantine = 0 }, Record{Offended: now}, ""},
		{"much", "9.9.9.9:81", nil, Record{Offended: now}, "networks: fail: 9.9.9.9 is in none of 198.51.100.0/24; not_networks: fail: 9.9.9.9 is in 9.9.9.0/24; " +
			"ports: fail: 81 is not among 80, 8000-8999; quarantine: fail: until 2023-11-15T22:13:20Z: it broke a rule of safety"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, e := everyRule(), endpoint(t, test.endpoint)
			if test.rules != nil {
				test.rules(&rules)
			}
			bar := rules.Bar(e, test.rec, now)
			if got := strings.Join(texted(bar.Reasons), "; "); got != test.want || bar.Bars() != (test.want != "") {
				t.Errorf("got %s", got)
			}
			if quarantined := strings.HasPrefix(test.want, "quarantine"); quarantined != !bar.Until.IsZero() {
				t.Errorf("until %s", bar.Until)
			}
			member := test.rec
			member.Member = "socks5://" + test.endpoint
			d := rules.Bar(e, member, now).Decision(member)
			if len(test.rec.Schemes) > 0 {
				return // a member speaks what is wanted, whatever lists claim
			}
			if (d.Action == Retire) != bar.Bars() || d.AtOnce != bar.Bars() {
				t.Errorf("a member: %+v", d)
			}
			if d := bar.Decision(test.rec); d.Action != Keep {
				t.Errorf("no member: %+v", d)
			}
		})
	}
}

// TestANameIsNoWayAroundANetwork: where it leads is looked at when it is dialled.
func TestANameIsNoWayAroundANetwork(t *testing.T) {
	rules := everyRule()
	for addr, want := range map[string]string{
		"198.51.100.7": "", "::ffff:198.51.100.7": "",
		"1.2.3.4":         "banned: 1.2.3.4 is banned",
		"5.5.5.5":         "networks: 5.5.5.5 is in none of 198.51.100.0/24",
		"::ffff:9.9.9.10": "networks: 9.9.9.10 is in none of 198.51.100.0/24",
	} {
		got := ""
		if err := rules.Admit(netip.MustParseAddr(addr)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s", addr, got)
		}
	}
	rules.Networks = nil
	if err := rules.Admit(netip.MustParseAddr("9.9.9.10")); err == nil || err.Error() != "not_networks: 9.9.9.10 is in 9.9.9.0/24" {
		t.Error(err)
	}
}

// TestABanMayComeInMidRound: what was begun before it is not admitted after it.
func TestABanMayComeInMidRound(t *testing.T) {
	rules := everyRule()
	round := judged(rules, Record{Passes: 1}, 1700000000000, goodResult())
	after := Record{Passes: 1}.After(round)
	if d := rules.Decide(after, round.Verdict); d.Action != Admit {
		t.Fatalf("not even without: %+v", d)
	}
	rules.Banned, _ = ParseBanned([]byte("198.51.100.0/24"))
	if d := rules.Decide(after, round.Verdict); d.Action != Keep {
		t.Errorf("got %+v", d)
	}
	after.Member = "http://198.51.100.1:80"
	if d := rules.Decide(after, round.Verdict); d.Action != Retire || !d.AtOnce || d.Reason != "banned: 198.51.100.0/24 is banned" {
		t.Errorf("got %+v", d)
	}
}

func TestParseBanned(t *testing.T) {
	text := "\ufeff# mine\n1.2.3.4:80\n\nhttp://5.6.7.8:3128/ # bad\nus:p%40w@5.5.5.5:1080\n 9.9.9.9 \nEvil.Example.ORG\nbad.example.org:8080\n10.1.0.0/16\n2a00:1::/32\n[2a01::1]:80\n2a02::1\r\n"
	list, err := ParseBanned([]byte(text))
	if err != nil || list.Len() != 10 {
		t.Fatalf("%v, %+v", err, list)
	}
	for text, want := range map[string]string{
		"1.2.3.4:80": "1.2.3.4:80", "1.2.3.4:81": "", "someone:else@1.2.3.4:80": "1.2.3.4:80", "5.6.7.8:3128": "5.6.7.8:3128",
		"us:p%40w@5.5.5.5:1080": "us:***@5.5.5.5:1080", "5.5.5.5:1080": "", "us:other@5.5.5.5:1080": "",
		"9.9.9.9:1": "9.9.9.9", "a:b@9.9.9.9:1": "9.9.9.9", "evil.example.org:99": "evil.example.org", "bad.example.org:8080": "bad.example.org:8080", "bad.example.org:80": "",
		"10.1.255.255:80": "10.1.0.0/16", "10.2.0.0:80": "", "[2a00:1::5]:80": "2a00:1::/32", "[2a01::1]:80": "[2a01::1]:80", "[2a02::1]:9": "2a02::1",
	} {
		got, banned := list.Contains(endpoint(t, text))
		if banned != (want != "") || banned && got != want {
			t.Errorf("%s: %v by %q, want %q", text, banned, got, want)
		}
	}
	for text, want := range map[string]string{
		"1.2.3.4:80\nwhat is this":   `line 2: "what is this": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
		"1.2.3.4/24":                 `line 1: "1.2.3.4/24": has bits behind the prefix; write 1.2.3.0/24, or 1.2.3.4 for the address alone`,
		"<html>":                     `line 1: "<html>": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
		"1.2.3.4:0":                  `line 1: "1.2.3.4:0": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
		"1.2.3.0/33":                 `line 1: "1.2.3.0/33": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
		"us:secret@1.2.3.4:80 twice": `line 1: "us:***@1.2.3.4:80 twice": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
	} {
		if _, err := ParseBanned([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if list, err := ParseBanned(nil); err != nil || list.Len() != 0 {
		t.Errorf("an empty file: %v", err)
	}
}

func FuzzParseBanned(f *testing.F) {
	f.Add([]byte("1.2.3.4:80\n1.2.3.0/24\nevil.example.org\n"))
	f.Add([]byte("a:b@[::1]:80#x\n0.0.0.0/0"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseBanned(text)
		if err != nil {
			return
		}
		for e := range list.endpoints {
			if _, banned := list.Contains(e); !banned {
				t.Errorf("%s is not banned", e)
			}
		}
	})
}

func TestParsePortRange(t *testing.T) {
	for text, want := range map[string]PortRange{"80": {80, 80}, "8000-8999": {8000, 8999}, "1-65535": {1, 65535}} {
		if got, err := ParsePortRange(text); err != nil || got != want || got.String() != text {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "65536", "90-80", "80-", "-80", "http", "080", "80 - 90", "1-2-3"} {
		if _, err := ParsePortRange(text); err == nil {
			t.Errorf("%q is one", text)
		}
	}
	if slices.ContainsFunc([]uint16{79, 81}, PortRange{80, 80}.Contains) {
		t.Error("beyond its ends")
	}
}
