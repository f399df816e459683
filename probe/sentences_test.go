package probe

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

func TestSentences(t *testing.T) {
	said := func(rules Rules) string {
		var lines []string
		for _, s := range rules.Sentences() {
			lines = append(lines, s.Rule.Name+": "+s.Text)
		}
		return strings.Join(lines, "\n")
	}
	const want = `schemes: It speaks one of http, socks5; the first that works is used.
banned: It is not on the list of banned proxies.
networks: Its own address is in 198.51.100.0/24.
not_networks: Neither its own address nor its exit is in 9.9.9.0/24.
ports: Its port is one of 80, 8000-8999.
quarantine: One that broke safety is not probed again for 24h.
safety: It does not tamper, intercept, forge, or lead to an address that may not be dialled.
control: A round counts only if its judge was well when it was asked without a proxy, before and after.
require: It brings the judge's page over plain http, unchanged (http), each time it is asked.
require: It brings a TLS connection to the judge, unbroken (tls), each time it is asked.
min_judges: To be admitted, it has satisfied 2 judges in one round.
anonymity: It does not tell our address, as a judge that signs has seen it.
exit_countries: Its traffic comes out in one of DE, FR.
not_countries: Its traffic is known to come out in a country other than US.
exit_asns: Its traffic comes out in one of AS3320, AS3215.
not_asns: Its traffic is known to come out in a system other than AS64500.
require_targets: It reached shop when last tried.
max_latency: The proxy has accepted the connection within 100ms, in 90% of its last 10 rounds that worked (p90).
max_latency: The first byte of the answer is there within 200ms, in 90% of its last 10 rounds that worked (p90).
max_latency: The answer is complete within 1s, in 90% of its last 10 rounds that worked (p90).
min_success: It worked in at least 80% of its last 10 rounds, or of those there are.
max_exit_changes: Its exit address changed at most once over the last 20 rounds.
max_age: A member that has not passed for 1h is retired.
rise: 2 rounds in a row that meet all of this admit it.
fall: 2 rounds in a row that break any of it retire it.`
	if got := said(everyRule()); got != want {
		t.Errorf("got\n%s", got)
	}
	const few = `schemes: It speaks http.
safety: It does not tamper, intercept, forge, or lead to an address that may not be dialled.
control: A round counts only if its judge was well when it was asked without a proxy, before and after.
anonymity: It tells neither our address nor that it is a proxy, as any judge has seen it.
max_latency: The answer is complete within 1s, in its last round that worked.
max_exit_changes: Its exit address changed at most 2 times over the last 20 rounds.
rise: One round that meets all of this admits it.
fall: One round that breaks any of it retires it.`
	changes := 2
	rules := Rules{Schemes: []proxyurl.Scheme{proxyurl.HTTP}, Anonymity: Elite, AcceptClaimed: true, MaxLatency: Latency{Total: 1e9}, MaxExitChanges: &changes}
	if got := said(rules); got != few {
		t.Errorf("got\n%s", got)
	}
}

// TestOneTableOfRules: whatever gives a reason or a sentence is a rule of the table,
// and comes in its order; each of them does.
func TestOneTableOfRules(t *testing.T) {
	at := map[string]int{}
	for i, rule := range RuleTable() {
		at[rule.Name] = i
		if rule.Needs == "" || rule.Acts == "" || rule.Key != "" && strings.TrimSuffix(rule.Key, "_file") != rule.Name {
			t.Errorf("%+v", rule)
		}
	}
	ordered := func(what string, names []string) {
		last := 0
		for _, name := range names {
			i, known := at[name]
			if !known || i < last {
				t.Errorf("%s: %s is not known, or out of order, in %s", what, name, strings.Join(names, ", "))
			}
			last = i
		}
	}
	name := func(text string) string { n, _, _ := strings.Cut(text, ":"); n, _, _ = strings.Cut(n, " "); return n }
	var sentences, reasons []string
	for _, s := range everyRule().Sentences() {
		sentences = append(sentences, s.Rule.Name)
	}
	ordered("sentences", sentences)
	rec := run(everyRule(), Record{}, nil)
	seen := map[string]bool{ruleControl: true}
	for _, rec := range []Record{rec, func() Record { m := rec; m.Member = "http://198.51.100.1:80"; return m }()} {
		reasons = nil
		for _, r := range everyRule().Explain(goodResult().Proxy.Endpoint, rec, rec.LastProbe).Reasons {
			// The exit's half of not_networks comes with the exits.
			if n := name(r.Rule); n != ruleNotNetworks {
				reasons = append(reasons, n)
			}
			seen[name(r.Rule)] = true
		}
		ordered("reasons", reasons)
	}
	for _, rule := range RuleTable() {
		if !seen[rule.Name] {
			t.Errorf("%s is never explained", rule.Name)
		}
		if !slices.Contains(sentences, rule.Name) {
			t.Errorf("%s has no sentence", rule.Name)
		}
	}
}

func TestImpossible(t *testing.T) {
	means := Means{Country: true, ASN: true, Targets: []string{"shop"}, Judges: []JudgeMeans{
		{Name: "mine", HTTP: true, TLS: true, Exit: true, Headers: true, Signed: true}, {Name: "page", TLS: true}}}
	prefixes := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	tests := []struct {
		name  string
		rules func(*Rules)
		means func(*Means)
		want  string
	}{
		{"possible", nil, nil, ""},
		{"no scheme", func(r *Rules) { r.Schemes = nil }, nil, "schemes: fail: there is no scheme by which a proxy may be spoken to"},
		{"no judge for tls", nil, func(m *Means) { m.Judges = m.Judges[:1]; m.Judges[0].TLS = false }, "require tls: fail: no judge shows it; min_judges: fail: 2 are wanted, and 1 can be asked for what is required"},
		{"only never-proxy ports", func(r *Rules) { r.Ports = []PortRange{{22, 23}, {25, 25}} }, nil, "ports: fail: a list that names 22-23, 25 is not believed: other services are there"},
		{"never-proxy ports of our own", func(r *Rules) { r.Ports = []PortRange{{22, 22}} }, func(m *Means) { m.Allow = prefixes("10.0.0.0/8") }, ""},
		{"networks that are excluded", func(r *Rules) {
			r.Networks, r.NotNetworks = prefixes("5.5.5.0/24", "5.5.6.0/24"), prefixes("5.5.0.0/16")
		}, nil, "networks: fail: all of them are within not_networks"},
		{"networks of which one is left", func(r *Rules) {
			r.Networks, r.NotNetworks = prefixes("5.5.5.0/24", "5.6.6.0/24"), prefixes("5.5.0.0/16")
		}, nil, ""},
		{"private networks", func(r *Rules) { r.Networks = prefixes("10.0.0.0/8", "192.168.1.0/24") }, nil,
			"networks: fail: none of them may be dialled: they are not public, and no source of the pool has them in allow_addresses"},
		{"private networks that a source opens", func(r *Rules) { r.Networks = prefixes("10.0.0.0/8") }, func(m *Means) { m.Allow = prefixes("10.1.0.0/16") }, ""},
		{"everything excluded", func(r *Rules) { r.Networks, r.NotNetworks = nil, prefixes("0.0.0.0/0", "::/0") }, nil, "not_networks: fail: every address is within them"},
		{"anonymity without http", func(r *Rules) { r.Require = []Capability{TLS} }, nil, "anonymity: fail: headers are seen over plain http only, and require has no http"},
		{"anonymity without a judge that tells", nil, func(m *Means) { m.Judges[0].Headers = false },
			"anonymity: fail: no judge on http tells the headers; configure one of your own (evenpool judge), or an echo judge"},
		{"anonymity without a key", nil, func(m *Means) { m.Judges[0].Signed = false }, "anonymity: fail: no judge on http signs its answers; give yours a key_file, or accept what is claimed"},
		{"claimed anonymity without a key", func(r *Rules) { r.AcceptClaimed = true }, func(m *Means) { m.Judges[0].Signed = false }, ""},
		{"no geoip files", nil, func(m *Means) { m.Country, m.ASN = false, false },
			"exit_countries: fail: there is no geoip.country to look exits up in; not_countries: fail: there is no geoip.country to look exits up in; " +
				"exit_asns: fail: there is no geoip.asn to look exits up in; not_asns: fail: there is no geoip.asn to look exits up in"},
		{"exits that nobody tells", func(r *Rules) { r.ExitCountries, r.NotCountries, r.ExitASNs, r.NotASNs = nil, nil, nil, nil }, func(m *Means) { m.Judges[0].Exit = false },
			"max_exit_changes: fail: no judge tells where traffic comes out; configure one of your own (evenpool judge), or an echo judge"},
		{"contradicting countries", func(r *Rules) { r.NotCountries = []string{"FR", "DE", "IT"} }, nil, "exit_countries: fail: all of them are among not_countries"},
		{"contradicting systems", func(r *Rules) { r.NotASNs = r.ExitASNs }, nil, "exit_asns: fail: all of them are among not_asns"},
		{"too many judges", func(r *Rules) { r.MinJudges = 3 }, nil, "min_judges: fail: 3 are wanted, and 2 can be asked for what is required"},
		{"one judge twice", nil, func(m *Means) { m.Judges[1].Name = "mine" }, "min_judges: fail: 2 are wanted, and 1 can be asked for what is required"},
		{"a target that is not there", nil, func(m *Means) { m.Targets = nil }, "require_targets: fail: shop is no target that is asked"},
		{"more than all", func(r *Rules) { r.MinSuccess.Percent = 101 }, nil, "min_success: fail: 101% is more than all rounds"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, m := everyRule(), means
			rules.Networks = nil
			m.Judges = slices.Clone(means.Judges)
			if test.rules != nil {
				test.rules(&rules)
			}
			if test.means != nil {
				test.means(&m)
			}
			if got := strings.Join(texted(rules.Impossible(m)), "; "); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
