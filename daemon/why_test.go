package daemon

import (
	"slices"
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/lab"
)

// Why tells all that the record keeps, and how each rule stands.
func TestWhyTellsTheRecord(t *testing.T) {
	r := newRig(t, rigOptions{store: alloctest.Redis, judges: []string{"127.0.0.1", "127.0.0.2"},
		population: []lab.Spec{{Behaviour: "http", Count: 1}, {Behaviour: "mitm", Count: 1}, {Behaviour: "refuses", Count: 1}},
		pool:       "    eligibility: {schemes: [http], anonymity: elite, max_latency: 20s, quarantine: 2h}\n"})
	r.cycleAfter(nil)
	why := func(name string) api.Why {
		t.Helper()
		why, err := r.client.Why(t.Context(), r.pool, r.proxy(name).URL.Redacted())
		if err != nil {
			t.Fatal(err)
		}
		return why
	}
	rules := func(why api.Why, result string) (names []string) {
		for _, rule := range why.Rules {
			if rule.Result == result {
				names = append(names, rule.Rule)
			}
		}
		return names
	}

	good := why("http")
	if p := good.Proven; p == nil || !slices.Equal(p.Capabilities, []string{"http", "connect", "tls"}) || p.Anonymity != "elite" || !p.Verified || p.At.IsZero() {
		t.Errorf("a good one showed %+v", p)
	}
	if good.LastPassAt.IsZero() || !good.OffendedAt.IsZero() || !good.QuarantineUntil.IsZero() || good.NextProbeAt.IsZero() {
		t.Errorf("a good one: %+v", good)
	}
	if len(good.Exits) != 1 || good.Exits[0].Address != r.proxy("http").Exits[0].String() || good.Exits[0].Until.Before(good.Exits[0].Since) {
		t.Errorf("a good one's exits: %+v", good.Exits)
	}
	if len(good.Rounds) != 2 || !good.Rounds[0].Worked || !good.Rounds[0].At.Equal(good.LastPassAt) || !good.Rounds[1].At.Before(good.Rounds[0].At) {
		t.Errorf("a good one's rounds: %+v", good.Rounds)
	}
	if got, want := rules(good, api.RulePass), []string{"schemes", "quarantine", "safety", "require http", "require tls", "anonymity", "max_latency", "fall"}; !slices.Equal(got, want) || len(good.Rules) != len(want) {
		t.Errorf("a good one meets %q, want %q; all: %+v", got, want, good.Rules)
	}

	bad := why("mitm")
	if bad.OffendedAt.IsZero() || bad.QuarantineUntil.Sub(bad.OffendedAt) != 2*time.Hour || bad.Proven != nil {
		t.Errorf("a hostile one: %+v", bad)
	}
	if got := rules(bad, api.RuleFail); !slices.Contains(got, "quarantine") || !slices.Contains(got, "safety") || !slices.Contains(rules(bad, api.RuleNotKnown), "anonymity") {
		t.Errorf("a hostile one: %+v", bad.Rules)
	}
	if dead := why("refuses"); len(dead.Rounds)+len(dead.Exits) != 0 || dead.Proven != nil || !slices.Contains(rules(dead, api.RuleFail), "require http") {
		t.Errorf("a dead one: %+v", dead)
	}
}
