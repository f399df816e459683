package probe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// TestMaxAge: what is inconclusive for ever ends, though nothing counts against it.
func TestMaxAge(t *testing.T) {
	rules := everyRule()
	start := time.UnixMilli(1700000000000).UTC()
	member := Record{Member: "http://198.51.100.1:80", FirstSeen: start.Add(-time.Hour), LastPass: start, Passes: 5}
	for _, test := range []struct {
		name  string
		rec   Record
		after time.Duration
		r     Result
		want  string
	}{
		{"inconclusive, within", member, time.Hour, result(proxyurl.HTTP, 1, Unknown), ""},
		{"inconclusive, beyond", member, time.Hour + time.Second, result(proxyurl.HTTP, 1, Unknown), "max_age: fail: passed 1h0m1s ago, at most 1h0m0s"},
		{"a first failure, beyond", member, 2 * time.Hour, result(proxyurl.HTTP, 1, Refused), "max_age: fail: passed 2h0m0s ago, at most 1h0m0s"},
		{"a pass, beyond", member, 2 * time.Hour, goodResult(), ""},
		{"put in by others", Record{Member: member.Member, FirstSeen: start}, time.Hour, result(proxyurl.HTTP, 1, Unknown), ""},
		{"put in by others, long ago", Record{Member: member.Member, FirstSeen: start}, 2 * time.Hour, result(proxyurl.HTTP, 1, Unknown), "max_age: fail: no pass yet"},
		{"no member", Record{LastPass: start}, 2 * time.Hour, result(proxyurl.HTTP, 1, Unknown), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			round := judged(rules, test.rec, start.Add(test.after).UnixMilli(), test.r)
			d := rules.Decide(test.rec.After(round), round.Verdict)
			if d.Reason != test.want || (d.Action == Retire) != (test.want != "") || d.AtOnce {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// TestReconsider: other rules retire nobody without a probe but by the operator's
// word, and admit nobody.
func TestReconsider(t *testing.T) {
	old := everyRule()
	good := run(old, Record{}, nil, nil)
	member := good
	member.Member = "http://198.51.100.1:80"
	lower := run(old, Record{}, func(r *Result) { r.Anonymity = Transparent })
	deadNow := run(old, good, dead)
	banned, _ := ParseBanned([]byte("198.51.100.1:80"))
	tests := []struct {
		name   string
		change func(*Rules)
		rec    Record
		action Action
		ask    bool
		rules  string // that are broken or not known
	}{
		{"the same, a member", nil, member, Keep, false, ""},
		{"the same, never probed", nil, Record{}, Keep, false, ""},
		{"a ban, a member", func(r *Rules) { r.Banned = banned }, member, Retire, false, "banned"},
		{"a ban, no member", func(r *Rules) { r.Banned = banned }, good, Keep, false, "banned"},
		{"ports, a member", func(r *Rules) { r.Ports = []PortRange{{8080, 8080}} }, member, Retire, false, "ports"},
		{"a country, a member", func(r *Rules) { r.ExitCountries = []string{"FR"} }, member, Keep, true, "exit_countries"},
		{"another scheme, a member", func(r *Rules) { r.Schemes = []proxyurl.Scheme{proxyurl.SOCKS5} }, member, Keep, true, "schemes"},
		{"another target, a member", func(r *Rules) { r.RequireTargets = []string{"shop", "news"} }, member, Keep, true, "require_targets"},
		{"less anonymity, no member", func(r *Rules) { r.Anonymity = Transparent }, lower, Keep, true, ""},
		{"the same, too low", nil, lower, Keep, false, "anonymity"},
		{"more, no member", func(r *Rules) { r.Rise = 9 }, good, Keep, true, ""},
		{"dead", func(r *Rules) { r.Anonymity = Transparent }, deadNow, Keep, false, "require http"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules := everyRule()
			if test.change != nil {
				test.change(&rules)
			}
			got := rules.Reconsider(goodResult().Proxy.Endpoint, test.rec, test.rec.LastProbe)
			var names []string
			for _, reason := range got.Reasons {
				names = append(names, reason.Rule)
			}
			if got.Decision.Action != test.action || got.Decision.AtOnce != (test.action == Retire) || got.AskNow != test.ask {
				t.Errorf("got %+v", got)
			}
			if test.rules != "" && !slices.Contains(names, test.rules) || test.rules == "" && test.rec.Member != "" && len(names) > 0 {
				t.Errorf("broken: %s", strings.Join(names, ", "))
			}
		})
	}
}

// TestRecordsStayBounded says what a record costs in the store.
func TestRecordsStayBounded(t *testing.T) {
	rules := everyRule()
	list := Record{Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.HTTPS}, Sources: []string{"list-one", "list-two"}, Country: "DE", Anonymity: "elite", FirstSeen: time.UnixMilli(1700000000000)}
	candidate := run(rules, list, repeat(30, func(r *Result) {
		*r = result(proxyurl.HTTP, 8*time.Second, Timeout)
		r.Checks[0].Detail = strings.Repeat("x", maxDetail)
	})...)
	member := run(rules, list, repeat(30, nil)...)
	member.Member = "http://198.51.100.1:80"
	gone := member
	gone.Member = ""
	gone = run(rules, gone, repeat(30, dead)...)
	for _, test := range []struct {
		name string
		rec  Record
		most int
	}{{"never probed", list, 120}, {"dead candidate", candidate, 330}, {"member", member, 2000}, {"dead for long", gone, 330}} {
		size := len(test.rec.Encode())
		t.Logf("%s: %d bytes", test.name, size)
		if size > test.most {
			t.Errorf("%s: %d bytes, at most %d: %s", test.name, size, test.most, test.rec.Encode())
		}
	}
}
