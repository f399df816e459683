package probe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

func testRules() Rules {
	return Rules{Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS5}, Require: Capabilities(), MaxLatency: Latency{Total: time.Second}, Rise: 2, Fall: 2}
}

// result makes one: outcomes of http and then, if that is ok, tls.
func result(scheme proxyurl.Scheme, latency time.Duration, outcomes ...Outcome) Result {
	e, err := proxyurl.NewEndpoint("198.51.100.1", 80, "", "")
	if err != nil {
		panic(err)
	}
	r := Result{Proxy: proxyurl.URL{Scheme: scheme, Endpoint: e}, Latency: latency}
	for i, o := range outcomes {
		c := Check{Judge: "mine", Capability: Capabilities()[i], Outcome: o, Total: latency}
		switch o {
		case OK:
		case Refused, DialTimeout, ForbiddenAddress, LocalDescriptors:
			c.Stage = StageDial
		default:
			c.Stage = StageResponse
		}
		r.Checks, r.Outcome = append(r.Checks, c), o
	}
	return r
}

// judged is a round with its verdict; all judges were well.
func judged(rules Rules, before Record, at int64, results ...Result) Round {
	round := Round{At: time.UnixMilli(at).UTC(), Results: results, Geo: testGeo}
	round.Verdict = rules.Judge(before, round, nil)
	return round
}

func TestTryOrder(t *testing.T) {
	all := Schemes()
	tests := []struct {
		name   string
		rules  []proxyurl.Scheme
		claims string
		member string
		want   string
	}{
		{"any", all, "any", "", "http https socks4 socks4a socks5"},
		{"any, among others", all, "socks5 any", "", "http https socks4 socks4a socks5"},
		{"any, within the rules", []proxyurl.Scheme{proxyurl.SOCKS5, proxyurl.HTTP}, "any", "", "socks5 http"},
		{"any, a member by its own first", all, "any", "socks5://198.51.100.1:80", "socks5 http https socks4 socks4a"},
		{"nothing claimed", all, "", "", "http https socks4 socks4a socks5"},
		{"the rules' order", []proxyurl.Scheme{proxyurl.SOCKS5, proxyurl.HTTP}, "http socks5", "", "socks5 http"},
		{"https may be CONNECT", all, "https", "", "http https"},
		{"the two kinds of SOCKS 4", all, "socks4", "", "socks4 socks4a"},
		{"the two kinds of SOCKS 4, the other way", all, "socks4a", "", "socks4 socks4a"},
		{"socks5 is nothing else", all, "socks5", "", "socks5"},
		{"claims beyond the rules", []proxyurl.Scheme{proxyurl.HTTP}, "socks5", "", ""},
		{"a member by its own first", all, "http socks5", "socks5://198.51.100.1:80", "socks5 http"},
		{"a member by a scheme no longer claimed", all, "http", "socks5://198.51.100.1:80", "socks5 http"},
		{"a member by a scheme no longer wanted", []proxyurl.Scheme{proxyurl.HTTP}, "", "socks5://198.51.100.1:80", "http"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rec := Record{Member: test.member}
			for _, s := range strings.Fields(test.claims) {
				rec.Schemes = append(rec.Schemes, proxyurl.Scheme(s))
			}
			got := Rules{Schemes: test.rules}.TryOrder(rec)
			if text := strings.Join(strings.Fields(fmt.Sprint(got)), " "); text != "["+test.want+"]" {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// A newcomer that has passed once is confirmed by the same scheme, not by failing
// at all others first again.
func TestTryOrderBeginsWithWhatPassed(t *testing.T) {
	rules := Rules{Schemes: Schemes(), Rise: 2}
	rec := Record{Schemes: []proxyurl.Scheme{proxyurl.Any}}
	results := []Result{result(proxyurl.HTTP, 1, Garbage), result(proxyurl.SOCKS5, 1, OK, OK)}
	rec = rec.After(judged(rules, rec, 1, results...))
	if got := fmt.Sprint(rules.TryOrder(rec)); got != "[socks5 http https socks4 socks4a]" {
		t.Errorf("got %s", got)
	}
	rules.Schemes = []proxyurl.Scheme{proxyurl.HTTP}
	if got := fmt.Sprint(rules.TryOrder(rec)); got != "[http]" {
		t.Errorf("what passed is not wanted any more: got %s", got)
	}
}

func TestJudge(t *testing.T) {
	const http, socks5 = proxyurl.HTTP, proxyurl.SOCKS5
	tests := []struct {
		name    string
		round   []Result
		unwell  Capability // of judge "mine"
		want    State
		scheme  proxyurl.Scheme // that passed
		reasons string
	}{
		{"passes", []Result{result(http, 1, OK, OK)}, "", Pass, http, ""},
		{"fails", []Result{result(http, 1, Timeout)}, "", Fail, "", "require http: fail: http: timeout at response"},
		{"fails the second", []Result{result(http, 1, OK, TLSFailed)}, "", Fail, "", "require tls: fail: http: tls_failed at response"},
		{"passes by the second scheme", []Result{result(http, 1, Garbage), result(socks5, 1, OK, OK)}, "", Pass, socks5, "require http: fail: http: garbage at response"},
		{"exactly as slow as allowed", []Result{result(http, time.Second, OK, OK)}, "", Pass, http, ""},
		{"too slow", []Result{result(http, time.Second+time.Millisecond, OK, OK)}, "", Fail, "", "max_latency: fail: total 1001 ms, at most 1000 ms"},
		{"local fault", []Result{result(http, 1, LocalDescriptors)}, "", Inconclusive, "", "control: inconclusive: http: local_descriptors at dial"},
		{"judge's fault", []Result{result(http, 1, JudgeAddress)}, "", Inconclusive, "", "control: inconclusive: http: judge_address at response"},
		{"an unknown outcome", []Result{result(http, 1, "new")}, "", Inconclusive, "", "control: inconclusive: http: new at response"},
		{"one fails, one is open", []Result{result(http, 1, Garbage), result(socks5, 1, Cancelled)}, "", Inconclusive, "", "require http: fail: http: garbage at response; control: inconclusive: socks5: cancelled at response"},
		{"judge unwell", []Result{result(http, 1, Timeout)}, HTTP, Inconclusive, "", "control: inconclusive: http: judge mine was not well"},
		{"judge unwell, passes", []Result{result(http, 1, OK, OK)}, HTTP, Inconclusive, "", "control: inconclusive: http: judge mine was not well"},
		{"judge unwell for the second", []Result{result(http, 1, OK, OK)}, TLS, Inconclusive, "", "control: inconclusive: http: judge mine was not well"},
		{"judge unwell, not reached", []Result{result(http, 1, Refused)}, HTTP, Fail, "", "require http: fail: http: refused at dial"},
		{"certificate, judge unwell", []Result{result(http, 1, OK, TLSIntercepted)}, TLS, Inconclusive, "", "control: inconclusive: http: judge mine was not well"},
		{"safety", []Result{result(http, 1, OK, TLSIntercepted)}, "", Fail, "", "safety: fail: http: tls_intercepted at response"},
		{"safety before all", []Result{result(http, 1, Tampered), result(socks5, 1, OK, OK)}, "", Fail, "", "safety: fail: http: tampered at response"},
		{"forbidden, judge unwell", []Result{result(http, 1, ForbiddenAddress)}, HTTP, Fail, "", "safety: fail: http: forbidden_address at dial"},
		{"a capability was not asked for", []Result{result(http, 1, OK)}, "", Inconclusive, "", "require tls: inconclusive: http: not asked"},
		{"a scheme that is not wanted", []Result{result(proxyurl.SOCKS4, 1, OK, OK)}, "", Fail, "", "schemes: fail: socks4 is not among http, socks5"},
		{"nothing tried", nil, "", Inconclusive, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := testRules().Judge(Record{}, Round{At: time.UnixMilli(1), Results: test.round}, func(_ string, c Capability) bool { return c != test.unwell })
			var reasons []string
			for _, r := range v.Reasons {
				reasons = append(reasons, r.String())
			}
			if got := strings.Join(reasons, "; "); v.State != test.want || v.URL.Scheme != test.scheme || got != test.reasons {
				t.Errorf("got %s %q %q", v.State, v.URL.Scheme, got)
			}
			if len(v.Each) != len(test.round) || v.Security != strings.HasPrefix(test.reasons, "safety") {
				t.Errorf("each %v, security %v", v.Each, v.Security)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	const member = "http://198.51.100.1:80"
	pass := []Result{result(proxyurl.HTTP, 1, OK, OK)}
	moved := []Result{result(proxyurl.HTTP, 1, Garbage), result(proxyurl.SOCKS5, 1, OK, OK)}
	half := []Result{result(proxyurl.HTTP, 1, Cancelled), result(proxyurl.SOCKS5, 1, OK, OK)}
	fail := []Result{result(proxyurl.HTTP, 1, OK, TLSFailed)}
	hostile := []Result{result(proxyurl.HTTP, 1, OK, TLSIntercepted)}
	nothing := []Result{result(proxyurl.HTTP, 1, Cancelled)}
	tests := []struct {
		name   string
		before Record
		round  []Result
		want   Decision
	}{
		{"first pass", Record{}, pass, Decision{Action: Keep}},
		{"second pass", Record{Passes: 1}, pass, Decision{Action: Admit, Member: member, Reason: "2 of 2 passes in a row by http"}},
		{"a pass after a failure", Record{Fails: 1}, pass, Decision{Action: Keep}},
		{"a member passes", Record{Passes: 9, Member: member}, pass, Decision{Action: Keep}},
		{"a member passes by another scheme only", Record{Passes: 9, Member: member}, moved,
			Decision{Action: Move, Member: "socks5://198.51.100.1:80", Previous: member, Reason: "passes by socks5 only"}},
		{"a member's own scheme is open", Record{Passes: 9, Member: member}, half, Decision{Action: Keep}},
		{"first failure", Record{Passes: 9, Member: member}, fail, Decision{Action: Keep}},
		{"second failure", Record{Fails: 1, Member: member}, fail,
			Decision{Action: Retire, Member: member, Reason: "2 of 2 failures in a row; require tls: http: tls_failed at response"}},
		{"a guard held it before", Record{Fails: 7, Member: member}, fail,
			Decision{Action: Retire, Member: member, Reason: "8 of 2 failures in a row; require tls: http: tls_failed at response"}},
		{"a failure, but no member", Record{Fails: 7}, fail, Decision{Action: Keep}},
		{"hostile", Record{Passes: 9, Member: member}, hostile,
			Decision{Action: Retire, Member: member, AtOnce: true, Reason: "safety: http: tls_intercepted at response"}},
		{"hostile, but no member", Record{}, hostile, Decision{Action: Keep}},
		{"inconclusive with enough passes", Record{Passes: 9}, nothing, Decision{Action: Keep}},
		{"inconclusive with enough failures", Record{Fails: 9, Member: member}, nothing, Decision{Action: Keep}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules := testRules()
			round := judged(rules, test.before, 1, test.round...)
			if got := rules.Decide(test.before.After(round), round.Verdict); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
	if d := (Rules{Schemes: Schemes()}).Decide(Record{Passes: 1}, RoundVerdict{State: Pass}); d.Action != Admit {
		t.Errorf("a rise of 0 counts as 1: %+v", d)
	}
}

func TestExplain(t *testing.T) {
	const member = "http://198.51.100.1:80"
	tests := []struct {
		name     string
		rec      Record
		round    []Result
		state    State
		eligible bool
		want     []string
	}{
		{"never probed", Record{}, nil, Inconclusive, false, []string{
			"schemes: inconclusive: to be tried: http, socks5",
			"safety: inconclusive: not probed yet",
			"require http: inconclusive: not probed yet",
			"require tls: inconclusive: not probed yet",
			"max_latency: inconclusive: total: not known",
			"rise: inconclusive: 0 passes in a row, 2 admit"}},
		{"claims another scheme", Record{Schemes: []proxyurl.Scheme{proxyurl.SOCKS4}}, nil, Inconclusive, false, []string{
			"schemes: fail: claimed: socks4; wanted: http, socks5",
			"safety: inconclusive: not probed yet",
			"require http: inconclusive: not probed yet",
			"require tls: inconclusive: not probed yet",
			"max_latency: inconclusive: total: not known",
			"rise: inconclusive: 0 passes in a row, 2 admit"}},
		{"passed", Record{Passes: 1}, []Result{result(proxyurl.HTTP, 1, Garbage), result(proxyurl.SOCKS5, 250*time.Millisecond, OK, OK)}, Pass, true, []string{
			"schemes: pass: socks5 is among http, socks5",
			"safety: pass: nothing against it was seen",
			"require http: pass: socks5: shown",
			"require tls: pass: socks5: shown",
			"max_latency: pass: total 250 ms, at most 1000 ms",
			"rise: pass: 2 passes in a row, 2 admit"}},
		{"failed half-way", Record{Passes: 1}, []Result{result(proxyurl.HTTP, 1, OK, ConnectRefused), result(proxyurl.SOCKS5, 1, Garbage)}, Fail, false, []string{
			"schemes: inconclusive: to be tried: http, socks5",
			"safety: pass: nothing against it was seen",
			"require http: pass: http: shown",
			"require tls: fail: http: connect_refused at response",
			"max_latency: inconclusive: total: not known",
			"rise: fail: failed 1 times in a row; 2 passes in a row admit"}},
		{"a slow member", Record{Member: member}, []Result{result(proxyurl.HTTP, 2*time.Second, OK, OK)}, Fail, true, []string{
			"schemes: inconclusive: to be tried: http, socks5",
			"safety: pass: nothing against it was seen",
			"require http: pass: http: shown",
			"require tls: pass: http: shown",
			"max_latency: fail: total 2000 ms, at most 1000 ms",
			"fall: pass: 1 failures in a row, 2 retire"}},
		{"a hostile member", Record{Member: member}, []Result{result(proxyurl.HTTP, 1, OK, TLSIntercepted)}, Fail, false, []string{
			"schemes: inconclusive: to be tried: http, socks5",
			"safety: fail: http: tls_intercepted at response",
			"require http: pass: http: shown",
			"require tls: fail: http: tls_intercepted at response",
			"max_latency: inconclusive: total: not known",
			"fall: pass: 1 failures in a row, 2 retire"}},
		{"a local fault", Record{Member: member}, []Result{result(proxyurl.HTTP, 1, LocalDescriptors)}, Inconclusive, true, []string{
			"schemes: inconclusive: to be tried: http, socks5",
			"safety: pass: nothing against it was seen",
			"require http: inconclusive: http: local_descriptors at dial",
			"require tls: inconclusive: not known",
			"max_latency: inconclusive: total: not known",
			"fall: pass: 0 failures in a row, 2 retire"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rules, rec := testRules(), test.rec
			if test.round != nil {
				rec = rec.After(judged(rules, rec, 5, test.round...))
			}
			v := rules.Explain(result(proxyurl.HTTP, 1).Proxy.Endpoint, rec, time.UnixMilli(6))
			var got []string
			for _, r := range v.Reasons {
				got = append(got, r.String())
			}
			if v.State != test.state || v.Eligible != test.eligible || !slices.Equal(got, test.want) {
				t.Errorf("got %s, eligible %v:\n%s", v.State, v.Eligible, strings.Join(got, "\n"))
			}
		})
	}
}
