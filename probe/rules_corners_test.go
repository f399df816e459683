package probe

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// TestDecodeRecordKeepsLimits: the store is shared, and others may write what they
// like.
func TestDecodeRecordKeepsLimits(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`[-5,99999999999999,3,99999999999999],`, 25), ",")
	rec, err := DecodeRecord([]byte(`{"w":{"t":1,"j":-2},"r":[` + many + `],"e":[{"i":"::ffff:1.2.3.4"},{"i":"fe80::1%eth0"},{"i":""},{"i":"5.6.7.8"}],` +
		`"g":[{"n":"b","o":"ok"},{"n":"a"},{"n":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Rounds) != keptRounds || rec.Rounds[0] != (RoundSummary{Worked: true, FirstByte: time.Hour, Total: 3 * time.Millisecond, ExitChanges: 1000}) {
		t.Errorf("rounds: %+v", rec.Rounds)
	}
	if len(rec.Exits) != 2 || rec.Exits[0].Addr != netip.MustParseAddr("1.2.3.4") || rec.Exits[1].Addr != netip.MustParseAddr("5.6.7.8") {
		t.Errorf("exits: %+v", rec.Exits)
	}
	if len(rec.Targets) != 2 || rec.Targets[0].Name != "a" || rec.Targets[1].Outcome != OK || rec.Proven.Judges != 0 {
		t.Errorf("targets: %+v, proven %+v", rec.Targets, rec.Proven)
	}
}

// TestWhatNeverWorkedKeepsNothing: not even the rounds in which it did not.
func TestWhatNeverWorkedKeepsNothing(t *testing.T) {
	rec := run(everyRule(), Record{}, dead, dead)
	if len(rec.Rounds)+len(rec.Exits)+len(rec.Targets) > 0 || len(rec.Last) != 1 {
		t.Errorf("got %+v", rec)
	}
}

// TestMembersAreMeasuredByOneJudge: two are for admission.
func TestMembersAreMeasuredByOneJudge(t *testing.T) {
	rules, r := everyRule(), goodResult()
	r.Checks = r.Checks[:2]
	if v := againstAll(rules, Record{Member: "http://198.51.100.1:80"}, r); v.State != Pass {
		t.Errorf("got %+v", v)
	}
}

// TestAFailureRestsOnWhoSawIt: that another judge was not well, who was content, is
// nothing in the proxy's favour.
func TestAFailureRestsOnWhoSawIt(t *testing.T) {
	rules := testRules()
	r := result(proxyurl.HTTP, 1, OK, TLSIntercepted)
	r.Checks[0].Judge = "sick"
	round := Round{At: time.UnixMilli(1), Results: []Result{r}}
	if v := rules.Judge(Record{}, round, func(judge string, _ Capability) bool { return judge != "sick" }); !v.Security {
		t.Errorf("got %+v", v)
	}
	r = result(proxyurl.HTTP, 1, OK, OK)
	r.Outcome = TooFewJudges
	if v := againstAll(rules, Record{}, r); v.State != Inconclusive || v.Reasons[0].Rule != ruleMinJudges {
		t.Errorf("got %+v", v)
	}
}

// TestANameThatLeadsIntoABan: the rule is named that was in the way.
func TestANameThatLeadsIntoABan(t *testing.T) {
	rules := everyRule()
	p := New(Options{Dial: failing(rules.Admit(netip.MustParseAddr("1.2.3.4")))})
	plan, _, err := NewPlan(PlanOptions{Judges: []Judge{ownJudge(t)}, Require: rules.Require})
	if err != nil {
		t.Fatal(err)
	}
	results := p.Round(t.Context(), plan, Job{Endpoint: endpoint(t, "proxy.example.org:80"), Schemes: rules.Schemes})
	v := againstAll(rules, Record{}, results...)
	if got := strings.Join(texted(v.Reasons), "; "); v.State != Fail || got != "banned: fail: http: 1.2.3.4 is banned" {
		t.Errorf("got %s: %s", v.State, got)
	}
	// The operator's word retires a member at once, whatever the form it was met in.
	member := Record{Member: "http://proxy.example.org:80", LastPass: time.UnixMilli(1700000000000)}
	round := judged(rules, member, 1700000000000, results...)
	if d := rules.Decide(member.After(round), round.Verdict); d.Action != Retire || !d.AtOnce || d.Reason != "banned: http: 1.2.3.4 is banned" {
		t.Errorf("a member: %+v", d)
	}
}

// TestExitsOfARoundAndBefore: a round is judged by what it saw itself, people are
// told what was seen last; of two exits, one that is wrong is enough.
func TestExitsOfARoundAndBefore(t *testing.T) {
	rules := everyRule()
	untold := func(r *Result) { r.Checks[0].Exit, r.Checks[2].Exit = netip.Addr{}, netip.Addr{} }
	rec := run(rules, Record{}, nil, untold)
	if rec.Passes != 1 || rec.Fails != 0 {
		t.Errorf("an exit that was not told: %+v", rec)
	}
	if got := lastReason(rules, rec, ruleExitCountries); got != "exit_countries: pass: 5.6.7.8 is in DE" {
		t.Error(got)
	}
	for _, both := range [][2]string{{"6.6.6.6", "5.6.7.8"}, {"5.6.7.8", "6.6.6.6"}} {
		r := goodResult()
		r.Checks[0].Exit, r.Checks[2].Exit = netip.MustParseAddr(both[0]), netip.MustParseAddr(both[1])
		if v := againstAll(rules, Record{}, r); v.State != Fail {
			t.Errorf("%v: %+v", both, v)
		}
	}
	rules.ExitASNs = nil
	nowhere := Geo(func(netip.Addr) (string, uint32) { return "DE", 0 })
	round := Round{At: time.UnixMilli(1), Results: []Result{goodResult()}, Geo: nowhere}
	if v := rules.Judge(Record{}, round, nil); v.State != Fail || v.Reasons[0].String() != "not_asns: fail: 5.6.7.8: in no system that geoip.asn knows" {
		t.Errorf("got %+v", v)
	}
}

// TestTargetsAnswersGrowOld with MaxAge.
func TestTargetsAnswersGrowOld(t *testing.T) {
	rules := everyRule()
	rec := run(rules, Record{}, nil)
	r := goodResult()
	r.Targets = nil
	for age, want := range map[time.Duration]State{time.Hour: Pass, time.Hour + time.Second: Inconclusive} {
		if v := judged(rules, rec, rec.LastProbe.Add(age).UnixMilli(), r).Verdict; v.State != want {
			t.Errorf("after %s: %+v", age, v)
		}
	}
}

// TestAnOldMemberIsNoMemberByRight, and a scheme that worked is remembered longer
// than the last results are.
func TestAnOldMemberIsNoMemberByRight(t *testing.T) {
	rules := everyRule()
	rec := run(rules, Record{}, nil, nil)
	rec.Member = "http://198.51.100.1:80"
	e := goodResult().Proxy.Endpoint
	for age, want := range map[time.Duration]bool{time.Hour: true, 2 * time.Hour: false} {
		if v := rules.Explain(e, rec, rec.LastProbe.Add(age)); v.Eligible != want {
			t.Errorf("after %s: %+v", age, v)
		}
	}
	rec.Member = ""
	rec.Proven.Scheme = proxyurl.SOCKS5
	rec.Last = nil
	if got := rules.TryOrder(rec); got[0] != proxyurl.SOCKS5 {
		t.Errorf("tried: %v", got)
	}
}

// TestQuarantineIsNotTheOnlyBar: its end is no end then.
func TestQuarantineIsNotTheOnlyBar(t *testing.T) {
	now := time.UnixMilli(1700000000000)
	if bar := everyRule().Bar(endpoint(t, "198.51.100.1:9"), Record{Offended: now}, now); len(bar.Reasons) != 2 || !bar.Until.IsZero() {
		t.Errorf("got %+v", bar)
	}
	if bar := everyRule().Bar(endpoint(t, "198.51.100.1:9"), Record{}, now); !bar.Until.IsZero() {
		t.Errorf("got %+v", bar)
	}
}
