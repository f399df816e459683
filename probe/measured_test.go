package probe

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func texted(reasons []Reason) (list []string) {
	for _, r := range reasons {
		list = append(list, r.String())
	}
	return list
}

// againstAll is a round's verdict under every rule, for a candidate that has a record.
func againstAll(rules Rules, rec Record, results ...Result) RoundVerdict {
	return judged(rules, rec, 1700000000000, results...).Verdict
}

// TestEachRule breaks one rule at a time.
func TestEachRule(t *testing.T) {
	exit := func(addr string) func(*Result) {
		return func(r *Result) {
			r.Checks[0].Exit, r.Checks[2].Exit = netip.MustParseAddr(addr), netip.MustParseAddr(addr)
		}
	}
	tests := []struct {
		name  string
		rules func(*Rules)
		round func(*Result)
		want  string
	}{
		{"all met", nil, nil, ""},
		{"anonymity too low", nil, func(r *Result) { r.Anonymity = Transparent }, "anonymity: fail: transparent, at least anonymous"},
		{"anonymity too low, claimed", nil, func(r *Result) { r.Anonymity, r.Verified = Transparent, false }, "anonymity: fail: transparent, at least anonymous"},
		{"anonymity unknown", nil, func(r *Result) { r.Anonymity = "" }, "anonymity: inconclusive: not known"},
		{"anonymity claimed", nil, func(r *Result) { r.Verified = false }, "anonymity: inconclusive: elite, but claimed only: no judge that signs has seen it"},
		{"anonymity claimed, and that is enough", func(r *Rules) { r.AcceptClaimed = true }, func(r *Result) { r.Verified = false }, ""},
		{"in another country", nil, exit("6.6.6.6"), "exit_countries: fail: 6.6.6.6 is in IT"},
		{"in an excluded country", func(r *Rules) { r.ExitCountries = nil }, exit("7.7.7.7"), "not_countries: fail: 7.7.7.7 is in US"},
		{"in no known country", nil, exit("8.8.4.4"), "exit_countries: fail: 8.8.4.4: in no country that geoip.country knows; not_countries: fail: 8.8.4.4: in no country that geoip.country knows"},
		{"in another system", nil, exit("5.6.1.1"), "exit_asns: fail: 5.6.1.1 is in AS1"},
		{"in an excluded system", func(r *Rules) { r.ExitASNs = nil }, exit("5.6.2.2"), "not_asns: fail: 5.6.2.2 is in AS64500"},
		{"one of two exits is elsewhere", func(r *Rules) { r.MaxExitChanges = nil }, func(r *Result) { r.Checks[0].Exit = netip.MustParseAddr("6.6.6.6") }, "exit_countries: fail: 6.6.6.6 is in IT"},
		{"no exit told", nil, func(r *Result) { r.Checks[0].Exit, r.Checks[2].Exit = netip.Addr{}, netip.Addr{} },
			"exit_countries: inconclusive: no judge told the exit; not_countries: inconclusive: no judge told the exit; exit_asns: inconclusive: no judge told the exit; " +
				"not_asns: inconclusive: no judge told the exit; max_exit_changes: inconclusive: no judge told the exit"},
		{"exit in an excluded network", nil, exit("9.9.9.1"), "not_networks: fail: the exit 9.9.9.1 is in 9.9.9.0/24"},
		{"too slow to connect", nil, func(r *Result) { r.Checks[1].Connect = 101 * time.Millisecond }, "max_latency: fail: connect 101 ms (p90 of 1), at most 100 ms"},
		{"too slow to begin", nil, func(r *Result) { r.Checks[0].FirstByte = 201 * time.Millisecond }, "max_latency: fail: first byte 201 ms (p90 of 1), at most 200 ms"},
		{"too slow", nil, func(r *Result) { r.Checks[2].Total = 1001 * time.Millisecond }, "max_latency: fail: total 1001 ms (p90 of 1), at most 1000 ms"},
		{"asked by one judge", nil, func(r *Result) { r.Checks = slices.Delete(r.Checks, 2, 3) }, "min_judges: inconclusive: http: 1 of 2 judges were content"},
		{"asked by one judge twice", nil, func(r *Result) { r.Checks[2].Judge = "mine" }, "min_judges: inconclusive: http: 1 of 2 judges were content"},
		{"a target not asked", nil, func(r *Result) { r.Targets = nil }, "require_targets: inconclusive: shop: not asked yet"},
		{"a target failed", nil, func(r *Result) {
			r.Targets[0].Outcome = TargetFailed
		}, "require_targets: fail: shop: target_failed at 2023-11-14T22:13:20Z"},
		{"a target that nobody requires failed", func(r *Rules) { r.RequireTargets = nil }, func(r *Result) { r.Targets[0].Outcome = TargetFailed }, ""},
		{"two rules", nil, func(r *Result) { r.Anonymity = Transparent; exit("6.6.6.6")(r) },
			"anonymity: fail: transparent, at least anonymous; exit_countries: fail: 6.6.6.6 is in IT"},
		{"one fails, one is not known", nil, func(r *Result) { r.Anonymity = ""; r.Checks[0].Total = 2 * time.Second },
			"anonymity: inconclusive: not known; max_latency: fail: total 2000 ms (p90 of 1), at most 1000 ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, r := everyRule(), goodResult()
			if test.rules != nil {
				test.rules(&rules)
			}
			if test.round != nil {
				test.round(&r)
			}
			v := againstAll(rules, Record{}, r)
			want := Pass
			switch {
			case strings.Contains(test.want, ": fail: "):
				want = Fail
			case test.want != "":
				want = Inconclusive
			}
			if got := strings.Join(texted(v.Reasons), "; "); got != test.want || v.State != want || v.Security {
				t.Errorf("got %s: %s", v.State, got)
			}
		})
	}
}

// TestH9_LatencyIsNotTrust: the fastest tamper, so a limit on speed is looked at
// last, and says nothing where anything else spoke.
func TestH9_LatencyIsNotTrust(t *testing.T) {
	var order []string
	for _, rule := range RuleTable() {
		order = append(order, rule.Name)
	}
	speed := slices.Index(order, ruleMaxLatency)
	for _, before := range []string{ruleSafety, ruleControl, ruleRequired, ruleMinJudges, ruleAnonymity} {
		if at := slices.Index(order, before); at < 0 || at > speed {
			t.Errorf("%s is at %d, %s at %d", before, at, ruleMaxLatency, speed)
		}
	}
	for _, latency := range []time.Duration{time.Microsecond, time.Hour} {
		r := result("http", latency, OK, Tampered)
		v := againstAll(everyRule(), Record{}, r)
		if got := strings.Join(texted(v.Reasons), "; "); !v.Security || got != "safety: fail: http: tampered at response" {
			t.Errorf("%s: %s", latency, got)
		}
	}
	// Nor does the speed of one scheme end the round before another tampers.
	slow := goodResult()
	slow.Checks[0].Total = time.Hour
	if v := againstAll(everyRule(), Record{}, slow, result("socks5", 1, TLSIntercepted)); !v.Security {
		t.Errorf("got %+v", v)
	}
}

// run is a record after so many rounds, one minute apart; each changes a good result.
func run(rules Rules, rec Record, rounds ...func(*Result)) Record {
	for _, change := range rounds {
		r := goodResult()
		if change != nil {
			change(&r)
		}
		at := rec.LastProbe
		if at.IsZero() {
			at = time.UnixMilli(1700000000000).UTC()
		}
		rec = rec.After(judged(rules, rec, at.Add(time.Minute).UnixMilli(), r))
	}
	return rec
}

func dead(r *Result) { *r = result("http", 1, Timeout) }

func repeat(n int, f func(*Result)) []func(*Result) { return slices.Repeat([]func(*Result){f}, n) }

func lastReason(rules Rules, rec Record, rule string) string {
	v := rules.Explain(goodResult().Proxy.Endpoint, rec, rec.LastProbe)
	for _, reason := range slices.Backward(v.Reasons) {
		if reason.Rule == rule {
			return reason.String()
		}
	}
	return ""
}

// TestLatencyOverSeveralRounds: one slow round of ten is within p90, two are not,
// and rounds that did not work have no latency.
func TestLatencyOverSeveralRounds(t *testing.T) {
	rules := everyRule()
	rules.MaxLatency = Latency{Total: time.Second, Over: 10}
	rules.MinSuccess = Success{}
	slow := func(r *Result) { r.Checks[0].Total = 5 * time.Second }
	rec := run(rules, Record{}, repeat(8, nil)...)
	one := run(rules, rec, dead, slow, nil)
	if got := lastReason(rules, one, ruleMaxLatency); got != "max_latency: pass: total 300 ms (p90 of 10), at most 1000 ms" {
		t.Error(got)
	}
	if one.Passes != 1 { // of nine, the slow round was the largest: that one failed
		t.Errorf("passes %d", one.Passes)
	}
	two := run(rules, one, slow)
	if got := lastReason(rules, two, ruleMaxLatency); got != "max_latency: fail: total 5000 ms (p90 of 10), at most 1000 ms" || two.Fails != 1 {
		t.Error(got, two.Fails)
	}
	if got := lastReason(rules, run(rules, two, repeat(9, nil)...), ruleMaxLatency); got != "max_latency: pass: total 300 ms (p90 of 10), at most 1000 ms" {
		t.Error(got)
	}
}

func TestQuantile(t *testing.T) {
	row := func(n int) (row []time.Duration) {
		for i := range n {
			row = append(row, time.Duration(n-i))
		}
		return row
	}
	for _, test := range []struct {
		q    Quantile
		n    int
		want time.Duration
	}{{P50, 1, 1}, {P50, 2, 1}, {P50, 3, 2}, {P90, 9, 9}, {P90, 10, 9}, {P90, 20, 18}, {P95, 19, 19}, {P95, 20, 19}, {Max, 20, 20}, {"", 10, 9}} {
		if got := test.q.of(row(test.n)); got != test.want {
			t.Errorf("%s of %d: %d, want %d", test.q, test.n, got, test.want)
		}
	}
}

// TestSuccessCountsWhatWorked, and not what other rules made of it: else a proxy that
// fell below the share once could never come back.
func TestSuccessCountsWhatWorked(t *testing.T) {
	rules := everyRule()
	rules.MinSuccess = Success{Percent: 80, Over: 5}
	rec := run(rules, Record{}, nil, nil, nil, dead)
	if got := lastReason(rules, rec, ruleMinSuccess); got != "min_success: fail: 3 of 4 rounds worked, at least 80%" {
		t.Error(got)
	}
	if rec = run(rules, rec, nil); rec.Passes != 1 {
		t.Errorf("4 of 5: %+v", rec)
	}
	rec = run(rules, rec, dead, nil) // 3 of 5
	if got := lastReason(rules, rec, ruleMinSuccess); got != "min_success: fail: 3 of 5 rounds worked, at least 80%" || rec.Fails != 2 {
		t.Error(got, rec.Fails)
	}
	if rec = run(rules, rec, repeat(4, nil)...); rec.Passes == 0 {
		t.Errorf("it never comes back: %+v", rec)
	}
	elsewhere := func(r *Result) { r.Anonymity = Transparent }
	if got := lastReason(rules, run(rules, rec, repeat(5, elsewhere)...), ruleMinSuccess); got != "min_success: pass: 5 of 5 rounds worked, at least 80%" {
		t.Error(got)
	}
}

// TestExitChanges: within a family; the other family is another exit, not a change.
func TestExitChanges(t *testing.T) {
	rules := everyRule()
	at := func(addr string) func(*Result) {
		return func(r *Result) {
			for i := range r.Checks {
				if r.Checks[i].Exit.IsValid() {
					r.Checks[i].Exit = netip.MustParseAddr(addr)
				}
			}
		}
	}
	rec := run(rules, Record{}, at("5.5.5.1"), at("2a00::1"), at("5.5.5.1"), at("5.5.5.2"), at("::ffff:5.5.5.2"))
	if got := lastReason(rules, rec, ruleMaxExitChanges); got != "max_exit_changes: pass: 1 in 5 rounds, at most 1" {
		t.Error(got)
	}
	if len(rec.Exits) != 3 || rec.Exits[0].Addr.String() != "5.5.5.2" || !rec.Exits[0].Since.Before(rec.Exits[0].Until) {
		t.Errorf("exits: %+v", rec.Exits)
	}
	rec = run(rules, rec, at("5.5.5.1"))
	if got := lastReason(rules, rec, ruleMaxExitChanges); got != "max_exit_changes: fail: 2 in 6 rounds, at most 1" || rec.Fails != 1 {
		t.Error(got)
	}
	if rec = run(rules, rec, repeat(20, at("5.5.5.1"))...); rec.Passes == 0 {
		t.Errorf("changes that are long ago count: %+v", rec)
	}
}

// TestTargetsAreHeldAgainstAProxyOnce: between two turns, the last answer counts,
// and a failure that was counted is not counted again.
func TestTargetsAreHeldAgainstAProxyOnce(t *testing.T) {
	rules := everyRule()
	noTurn := func(r *Result) { r.Targets = nil }
	failed := func(r *Result) { r.Targets[0].Outcome = Timeout }
	rec := run(rules, Record{}, noTurn)
	if rec.Passes+rec.Fails != 0 {
		t.Errorf("not asked: %+v", rec)
	}
	for name, test := range map[string]struct {
		change func(*Result)
		want   bool
	}{
		"not asked":              {noTurn, true},
		"all well":               {func(*Result) {}, false},
		"failed":                 {failed, false},
		"not asked, too slow":    {func(r *Result) { noTurn(r); r.Checks[0].Total = time.Minute }, false},
		"not asked, no exit":     {func(r *Result) { noTurn(r); r.Checks[0].Exit, r.Checks[2].Exit = netip.Addr{}, netip.Addr{} }, false},
		"not asked, and failing": {func(r *Result) { noTurn(r); r.Checks[1].Outcome, r.Outcome = Timeout, Timeout }, false},
	} {
		r := goodResult()
		test.change(&r)
		if got := judged(rules, Record{}, 1700000000000, r).Verdict.AwaitsTargets(); got != test.want {
			t.Errorf("%s: awaits targets: %v", name, got)
		}
	}
	if rec = run(rules, rec, nil, noTurn); rec.Passes != 2 {
		t.Errorf("once asked: %+v", rec)
	}
	if rec = run(rules, rec, failed, noTurn, noTurn); rec.Fails != 1 {
		t.Errorf("failed once: %+v", rec)
	}
	if rec = run(rules, rec, nil); rec.Passes != 1 {
		t.Errorf("reached again: %+v", rec)
	}
	sick := func(name string, _ Capability) bool { return name != TargetName("shop") }
	r := goodResult()
	failed(&r)
	round := Round{At: rec.LastProbe.Add(time.Minute), Results: []Result{r}, Geo: testGeo}
	round.Verdict = rules.Judge(rec, round, sick)
	if after := rec.After(round); round.Verdict.State != Pass || after.Targets[0].Outcome != OK {
		t.Errorf("the target itself was down: %+v, %+v", round.Verdict, after.Targets)
	}
}

func TestTargetsOf(t *testing.T) {
	now := time.UnixMilli(1700000000000)
	rec := Record{Targets: []TargetResult{{"a", now.Add(-2 * time.Hour), OK}, {"b", now.Add(-time.Minute), OK}, {"c", now.Add(-time.Minute), Timeout}, {"e", now.Add(-3 * time.Hour), OK}}}
	if got := strings.Join((Rules{}).TargetsOf(rec, []string{"a", "b", "c", "d", "e"}, now), " "); got != "c d e a" {
		t.Error(got)
	}
	if got := strings.Join((Rules{MaxAge: time.Minute}).TargetsOf(rec, []string{"b"}, now), " "); got != "b" {
		t.Error(got)
	}
}

func TestSpacing(t *testing.T) {
	var s Spacing
	now := time.UnixMilli(1700000000000)
	for i, step := range []struct {
		after time.Duration
		asks  time.Duration // how long the question takes; 0: it is not its turn
	}{{0, time.Nanosecond}, {0, 0}, {999 * time.Millisecond, 0}, {time.Millisecond, 3 * time.Second}, {0, 0}, {time.Second, time.Nanosecond},
		{time.Minute, time.Nanosecond}, {0, 0}, {-time.Hour, time.Nanosecond}, {0, 0}} {
		now = now.Add(step.after)
		next := s.Next(time.Second, now)
		if got := s.Take(time.Second, now); got != (step.asks > 0) || next.Equal(now) != got || next.Sub(now) > time.Second {
			t.Errorf("step %d: %v, the next turn %v later", i, got, next.Sub(now))
		}
		if step.asks == 0 {
			continue
		}
		if now = now.Add(step.asks); s.Take(time.Second, now) || !s.Next(time.Second, now).Equal(now.Add(time.Second)) {
			t.Errorf("step %d: asked by two at once", i)
		}
		s.Done(time.Second, now)
	}
}
