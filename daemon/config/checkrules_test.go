package config

import (
	"slices"
	"strings"
	"testing"
)

// rulesFile has a pool with the eligibility given, and what else belongs to it.
func rulesFile(judges, eligibility string) string {
	return "judges: [" + judges + "]\n" + `sources: [{name: mylist, url: "https://www.example.org/http.txt"}]
targets: [{name: shop, url: "https://shop.example.org/"}]
pools:
  - name: web
    eligibility: ` + eligibility + "\n"
}

const (
	signs = `{name: mine, http: "http://judge.example.org/", https: "https://judge.example.org/", key_file: /k}`
	plain = `{name: mine, http: "http://judge.example.org/", https: "https://judge.example.org/"}`
	page  = `{name: page, http: "http://www.example.org/", https: "https://www.example.org/", expect: {contains: User-agent}}`
)

// Under these rules nothing can ever become a member, and whoever wrote them hears of
// it, with the place and what to change; an error that says so already is enough.
func TestImpossibleRulesAreWarnedOf(t *testing.T) {
	const geo = "geoip: {country: /c.mmdb, asn: /a.mmdb}\n"
	for _, tc := range []struct {
		name, file string
		want       []string
	}{
		{"possible", geo + rulesFile(signs, "{anonymity: elite, exit_countries: [DE], not_asns: [3320], max_exit_changes: 0, require_targets: [shop]}"), nil},
		{"no judge that signs", rulesFile(plain, "{anonymity: elite}"),
			[]string{`f:6:30: pools[0].eligibility.anonymity: "elite": nothing can ever become a member: no judge on http signs its answers; give yours a key_file, or accept what is claimed`}},
		{"claims that are accepted", rulesFile(plain, "{anonymity: elite, accept_claimed: true}"), nil},
		{"a page alone", geo + rulesFile(page, "{anonymity: transparent, not_countries: [US]}"), []string{
			`f:7:30: pools[0].eligibility.anonymity: "transparent": nothing can ever become a member: no judge on http tells the headers; configure one of your own (evenpool judge), or an echo judge`,
			`f:7:43: pools[0].eligibility.not_countries: nothing can ever become a member: no judge tells where traffic comes out; configure one of your own (evenpool judge), or an echo judge`}},
		{"no databases", rulesFile(signs, "{exit_countries: [DE], not_asns: [3320]}"), []string{
			`f:6:19: pools[0].eligibility.exit_countries: nothing can ever become a member: there is no geoip.country to look exits up in`,
			`f:6:41: pools[0].eligibility.not_asns: nothing can ever become a member: there is no geoip.asn to look exits up in`}},
		{"networks within not_networks", rulesFile(signs, "{networks: [9.1.0.0/16], not_networks: [9.0.0.0/8]}"),
			[]string{`f:6:19: pools[0].eligibility.networks: nothing can ever become a member: all of them are within not_networks`}},
		{"networks within the halves of not_networks", rulesFile(signs, "{networks: [9.1.0.0/16], not_networks: [9.1.0.0/17, 9.1.128.0/17]}"),
			[]string{`f:6:19: pools[0].eligibility.networks: nothing can ever become a member: all of them are within not_networks`}},
		{"networks partly within not_networks", rulesFile(signs, "{networks: [9.1.0.0/16], not_networks: [9.1.0.0/17, 9.1.128.0/18]}"), nil},
		{"everything within not_networks", rulesFile(signs, `{not_networks: [0.0.0.0/1, 128.0.0.0/1, "2000::/3"]}`),
			[]string{`f:6:19: pools[0].eligibility.not_networks: nothing can ever become a member: every address is within them`}},
		{"all of IPv4 within not_networks", rulesFile(signs, "{not_networks: [0.0.0.0/0]}"), nil},
		{"an instant", rulesFile(signs, "{max_latency: 1ns}"),
			[]string{`f:6:32: pools[0].eligibility.max_latency: "1ns": nothing can ever become a member: no network answers within 1ns; a limit is at least 10µs`}},
		{"ports of other services", rulesFile(signs, "{ports: [22, 25]}"),
			[]string{`f:6:19: pools[0].eligibility.ports: nothing can ever become a member: a list that names 22, 25 is not believed: other services are there`}},
		{"anonymity without http", rulesFile(signs, "{require: [tls], anonymity: elite}"),
			[]string{`f:6:46: pools[0].eligibility.anonymity: "elite": nothing can ever become a member: headers are seen over plain http only, and require has no http`}},
	} {
		t.Run(tc.name, func(t *testing.T) { wantWarnings(t, tc.file, tc.want) })
	}
}

// Two judges have to be content by default, but a second one that shows nothing of
// what is required is not asked: it used to keep everybody out, without a word.
func TestMinJudgesByDefault(t *testing.T) {
	const http, https = `{name: a, http: "http://a.example.org/"}`, `{name: b, https: "https://b.example.org/"}`
	for _, tc := range []struct {
		judges, eligibility string
		want                int
	}{
		{plain, "{}", 1},
		{plain + ", " + page, "{}", 2},
		{http + ", " + https, "{}", 2},
		{http + ", " + https, "{require: [http]}", 1},
		{plain + ", " + https, "{require: [tls]}", 2},
		{plain + ", " + http + ", " + https, "{}", 2},
	} {
		c, warnings, err := Parse("f", []byte(rulesFile(tc.judges, tc.eligibility)), Defaults{})
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		if got := c.Pools[0].Eligibility.MinJudges; got != tc.want {
			t.Errorf("%s with %s: min_judges %d, want %d", tc.judges, tc.eligibility, got, tc.want)
		}
	}
}

// Limits that never apply, and words without use.
func TestIdleRulesAreWarnedOf(t *testing.T) {
	wantWarnings(t, rulesFile(signs, `{accept_claimed: true, max_latency: {connect: 4s, first_byte: 8s, total: 9s}}`), []string{
		`f:6:35: pools[0].eligibility.accept_claimed: true: has no use without anonymity`,
		`f:6:64: pools[0].eligibility.max_latency.connect: "4s": never applies: no connection takes longer than the connect_timeout of 4s`,
		`f:6:80: pools[0].eligibility.max_latency.first_byte: "8s": never applies: no probe takes longer than the timeout of 8s`,
		`f:6:91: pools[0].eligibility.max_latency.total: "9s": never applies: no probe takes longer than the timeout of 8s`,
	})
	wantWarnings(t, rulesFile(signs, `{rise: 1}`)+"    probe: {timeout: 3s, connect_timeout: 5s}\n", []string{
		`f:7:43: pools[0].probe.connect_timeout: "5s": is cut to the timeout of 3s, which is for all of a probe`,
	})
}

func wantWarnings(t *testing.T, file string, want []string) {
	t.Helper()
	_, warnings, err := Parse("f", []byte(file), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range warnings {
		got = append(got, w.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
