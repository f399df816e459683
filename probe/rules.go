package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// State is what rules make of a round, a result or one condition.
type State string

// The states. For a single condition Inconclusive means that it is not known.
const (
	Pass         State = "pass"
	Fail         State = "fail"
	Inconclusive State = "inconclusive"
)

// Rules are a pool's conditions. The zero value requires nothing and is of no
// use: the configuration sees to that.
type Rules struct {
	Schemes    []proxyurl.Scheme // that may become members, preferred ones first
	Require    []Capability      // all of them must be shown
	MaxLatency time.Duration     // of the slowest check; 0: no limit
	Rise       int               // rounds passed in a row that admit; below 1 counts as 1
	Fall       int               // rounds failed in a row that retire; below 1 counts as 1
}

// Reason is one condition and how it stands.
type Reason struct {
	Rule  string // schemes, require http, require tls, max_latency, safety, control, rise, fall
	State State
	Text  string // a few words, escaped
}

// String is the reason in one line: "require tls: fail: tls_failed at tls".
func (r Reason) String() string { return fmt.Sprintf("%s: %s: %s", r.Rule, r.State, r.Text) }

// claims says which schemes a claim leaves open: lists say "https" of http
// proxies that answer CONNECT, and do not tell the two kinds of SOCKS 4 apart.
// One that says proxyurl.Any leaves them all open.
var claims = map[proxyurl.Scheme][]proxyurl.Scheme{
	proxyurl.HTTP:    {proxyurl.HTTP},
	proxyurl.HTTPS:   {proxyurl.HTTPS, proxyurl.HTTP},
	proxyurl.SOCKS4:  {proxyurl.SOCKS4, proxyurl.SOCKS4A},
	proxyurl.SOCKS4A: {proxyurl.SOCKS4A, proxyurl.SOCKS4},
	proxyurl.SOCKS5:  {proxyurl.SOCKS5},
	proxyurl.Any:     proxyurl.Schemes(),
}

// TryOrder returns the schemes by which an endpoint is to be tried: the one by
// which it is a member, or else passed last, then those of Schemes, in that order,
// that its claims leave open. It is empty when its claims leave none of Schemes
// open.
func (r Rules) TryOrder(rec Record) []proxyurl.Scheme {
	open := r.Schemes
	if len(rec.Schemes) > 0 {
		open = nil
		for _, s := range r.Schemes {
			if slices.ContainsFunc(rec.Schemes, func(claim proxyurl.Scheme) bool { return slices.Contains(claims[claim], s) }) {
				open = append(open, s)
			}
		}
	}
	proven := provenScheme(rec)
	if !slices.Contains(r.Schemes, proven) {
		return slices.Clone(open)
	}
	order := []proxyurl.Scheme{proven}
	for _, s := range open {
		if s != proven {
			order = append(order, s)
		}
	}
	return order
}

// provenScheme returns the scheme by which an endpoint is a member, or else the one
// by which it passed last, as far as that is remembered; "" for none.
func provenScheme(rec Record) proxyurl.Scheme {
	if member, err := proxyurl.ParseURL(rec.Member); err == nil {
		return member.Scheme
	}
	for _, last := range rec.Last {
		if last.State == Pass {
			return last.Scheme
		}
	}
	return ""
}

// RoundVerdict is what the rules make of a round.
type RoundVerdict struct {
	State    State
	URL      proxyurl.URL // Pass: the scheme that passed; else zero
	Security bool         // Fail: by a rule of safety, which no streak and no guard delays
	Each     []State      // of each result, in the order given
	Reasons  []Reason     // what decided each result that did not pass
}

// Judge gives the verdict on the results of one slice for one endpoint, one for
// each scheme tried. One scheme that passes is enough; one that breaks a rule of
// safety decides against the endpoint; as long as one is inconclusive, the
// others' failures decide nothing. A result that rests on a judge that was not
// well, as the slice's controls show, is inconclusive. A nil well takes every
// judge as well.
func (r Rules) Judge(round []Result, well func(judge string, c Capability) bool) RoundVerdict {
	v := RoundVerdict{State: Fail}
	if len(round) == 0 {
		v.State = Inconclusive
	}
	for _, result := range round {
		reason := r.judge(result, well)
		v.Each = append(v.Each, reason.State)
		switch {
		case reason.State == Pass && v.URL.IsZero():
			v.URL = result.Proxy
		case reason.State != Pass:
			v.Reasons = append(v.Reasons, reason)
		}
		v.Security = v.Security || reason.State == Fail && reason.Rule == ruleSafety
	}
	switch {
	case v.Security:
		v.State, v.URL = Fail, proxyurl.URL{}
	case !v.URL.IsZero():
		v.State = Pass
	case slices.Contains(v.Each, Inconclusive):
		v.State = Inconclusive
	}
	return v
}

// The names of conditions that stand in no configuration by that name.
const (
	ruleSafety  = "safety"  // no outcome of ClassSecurity
	ruleControl = "control" // the observer and the judge were well
)

// judge gives the reason that decides one result.
func (r Rules) judge(result Result, well func(judge string, c Capability) bool) Reason {
	scheme := string(result.Proxy.Scheme)
	last := result.Last()
	for _, c := range result.Checks {
		// At dial the judge has not come into play yet.
		if c.Stage != StageDial && well != nil && !well(c.Judge, c.Capability) {
			return Reason{ruleControl, Inconclusive, fmt.Sprintf("%s: judge %s was not well", scheme, c.Judge)}
		}
	}
	switch result.Outcome.Class() {
	case ClassSecurity:
		return Reason{ruleSafety, Fail, describe(scheme, result.Outcome, last.Stage)}
	case ClassProxy:
		return Reason{ruleRequire(last.Capability), Fail, describe(scheme, result.Outcome, last.Stage)}
	case ClassJudge, ClassLocal:
		return Reason{ruleControl, Inconclusive, describe(scheme, result.Outcome, last.Stage)}
	}
	for _, c := range r.Require {
		if !slices.ContainsFunc(result.Checks, func(check Check) bool { return check.Capability == c && check.Outcome == OK }) {
			return Reason{ruleRequire(c), Inconclusive, scheme + ": not asked"}
		}
	}
	if !slices.Contains(r.Schemes, result.Proxy.Scheme) {
		return Reason{"schemes", Fail, scheme + " is not among " + join(r.Schemes)}
	}
	if reason, limited := r.latency(scheme, result.Latency); limited && reason.State == Fail {
		return reason
	}
	return Reason{ruleRequire(last.Capability), Pass, scheme}
}

func ruleRequire(c Capability) string { return "require " + string(c) }

func (r Rules) latency(scheme string, took time.Duration) (reason Reason, limited bool) {
	if r.MaxLatency <= 0 {
		return Reason{}, false
	}
	text := fmt.Sprintf("%s: %d ms, at most %d ms", scheme, took.Milliseconds(), r.MaxLatency.Milliseconds())
	if took > r.MaxLatency {
		return Reason{"max_latency", Fail, text}, true
	}
	return Reason{"max_latency", Pass, text}, true
}

func describe(scheme string, o Outcome, s Stage) string {
	if s == "" {
		return fmt.Sprintf("%s: %s", scheme, o)
	}
	return fmt.Sprintf("%s: %s at %s", scheme, o, s)
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}
