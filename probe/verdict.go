package probe

import (
	"fmt"
	"slices"
	"strings"

	"evenpool/sources/proxyurl"
)

// RoundVerdict is what the rules make of a round.
type RoundVerdict struct {
	State    State        // Inconclusive: nothing follows from it
	URL      proxyurl.URL // Pass: the scheme that passed; else zero
	Security bool         // Fail: by a rule of safety, which no streak and no guard delays
	Excluded bool         // Fail: by the operator's own word on the addresses that the proxy's name leads to; likewise
	Each     []State      // of each result, in the order given
	Reasons  []Reason     // what speaks against each result that did not pass, or is not known of one that worked

	worked worked
}

// Judge gives the verdict on the results of one slice for one endpoint, one for
// each scheme tried; the record is the one before the round. One scheme that passes
// is enough; one that breaks a rule of safety decides against the endpoint; as long
// as one is inconclusive, the others' failures decide nothing. Every rule is applied
// to a result that worked; of another, what it ended by. What rests on a judge that
// was not well, as the slice's controls show, is inconclusive: a pass rests on all
// of a result's checks, anything else on those that were not ok. A nil well takes
// every judge as well; of a target it is asked by its TargetName.
func (r Rules) Judge(before Record, round Round, well func(judge string, c Capability) bool) RoundVerdict {
	v := RoundVerdict{State: Fail, worked: worked{state: Fail}}
	if len(round.Results) == 0 {
		v.State, v.worked.state = Inconclusive, Inconclusive
	}
	v.worked.sick = sickTargets(round.Results, well)
	for i, result := range round.Results {
		state, reasons := r.judge(before, result, well)
		switch {
		case state == Pass && v.worked.state != Pass:
			v.worked.state, v.worked.index = Pass, i
		case state == Inconclusive && v.worked.state == Fail:
			v.worked.state = Inconclusive
		}
		v.Security = v.Security || state == Fail && reasons[0].Rule == ruleSafety
		v.Excluded = v.Excluded || state == Fail && result.Outcome == Excluded
		if state == Pass { // it worked: now for what is seen in several checks, or rounds
			seen := before.seen(round, v.worked)
			reasons = append(reasons, r.measured(seen, atMS(round.At), true)...)
			state = stateOf(reasons)
		}
		v.Each = append(v.Each, state)
		if state == Pass && v.URL.IsZero() {
			v.URL = result.Proxy
		}
		for _, reason := range reasons {
			if reason.State != Pass {
				v.Reasons = append(v.Reasons, reason)
			}
		}
	}
	switch {
	case v.Security:
		v.State, v.URL, v.worked = Fail, proxyurl.URL{}, worked{state: Fail, sick: v.worked.sick}
	case !v.URL.IsZero():
		v.State = Pass
	case slices.Contains(v.Each, Inconclusive):
		v.State = Inconclusive
	}
	return v
}

// sickTargets names those that were asked and did not answer their controls.
func sickTargets(results []Result, well func(judge string, c Capability) bool) (sick []string) {
	for _, result := range results {
		for _, c := range result.Targets {
			if well != nil && !well(TargetName(c.Target), c.Capability) {
				sick = append(sick, c.Target)
			}
		}
	}
	return sick
}

// stateOf is the state of all conditions together: a failure decides, and then what
// is not known.
func stateOf(reasons []Reason) State {
	state := Pass
	for _, reason := range reasons {
		switch {
		case reason.State == Fail:
			return Fail
		case reason.State == Inconclusive:
			state = Inconclusive
		}
	}
	return state
}

// judge says whether a result is of a proxy that works: that did all it was asked
// for. Where it did not, there is a reason, or several if something was not asked.
func (r Rules) judge(before Record, result Result, well func(judge string, c Capability) bool) (State, []Reason) {
	scheme := string(result.Proxy.Scheme)
	one := func(rule string, s State, text string) (State, []Reason) { return s, []Reason{{rule, s, text}} }
	for _, c := range result.Checks {
		// At dial the judge has not come into play yet.
		if well != nil && c.Stage != StageDial && (result.Outcome == OK || c.Outcome != OK) && !well(c.Judge, c.Capability) {
			return one(ruleControl, Inconclusive, fmt.Sprintf("%s: judge %s was not well", scheme, c.Judge))
		}
	}
	decided := result.deciding()
	text := describe(scheme, result.Outcome, decided.Stage)
	switch result.Outcome {
	case TooFewJudges:
		return one(ruleMinJudges, Inconclusive, text)
	case Excluded:
		// Its detail is ExcludedError's, which names the rule.
		for _, rule := range []string{ruleBanned, ruleNetworks, ruleNotNetworks} {
			if detail, found := strings.CutPrefix(decided.Detail, rule+": "); found {
				return one(rule, Fail, scheme+": "+detail)
			}
		}
	}
	switch result.Outcome.Class() {
	case ClassSecurity:
		return one(ruleSafety, Fail, text)
	case ClassProxy:
		return one(ruleRequire(decided.Capability), Fail, text)
	case ClassJudge, ClassLocal:
		return one(ruleControl, Inconclusive, text)
	}
	var reasons []Reason
	for _, c := range r.Require {
		if !slices.ContainsFunc(result.Checks, func(check Check) bool {
			return check.Capability == c && check.Outcome == OK
		}) {
			reasons = append(reasons, Reason{ruleRequire(c), Inconclusive, scheme + ": not asked"})
		}
	}
	if !slices.Contains(r.Schemes, result.Proxy.Scheme) {
		reasons = append(reasons, Reason{ruleSchemes, Fail, scheme + " is not among " + join(r.Schemes)})
	}
	if before.Member == "" {
		if n := contentJudges(result); n < r.MinJudges {
			reasons = append(reasons, Reason{ruleMinJudges, Inconclusive, fmt.Sprintf("%s: %d of %d judges were content", scheme, n, r.MinJudges)})
		}
	}
	return stateOf(reasons), reasons
}

func describe(scheme string, o Outcome, s Stage) string {
	if s == "" {
		return fmt.Sprintf("%s: %s", scheme, o)
	}
	return fmt.Sprintf("%s: %s at %s", scheme, o, s)
}
