package probe

import (
	"fmt"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// Verdict is how an endpoint stands under the rules, condition by condition.
type Verdict struct {
	State    State           // of the last round; Inconclusive before the first
	Eligible bool            // it is a member by right, or has all it takes to become one
	Scheme   proxyurl.Scheme // by which it passed in the last round; "" when it did not
	Reasons  []Reason        // every condition: met, broken, or not known
}

// Explain applies the rules to a record, for people: it decides nothing. The
// scheme shown is the one that passed in the last round, else the one that came
// furthest; what a proxy is like is told from when it last worked. The reasons are in
// RuleTable's order, for rules that are in force.
func (r Rules) Explain(e proxyurl.Endpoint, rec Record, now time.Time) Verdict {
	v := Verdict{State: Inconclusive}
	round := rec.lastRound()
	best, ok := furthest(round)
	if ok {
		v.State = roundState(round)
	}
	if v.State == Pass {
		v.Scheme = best.Scheme
	}
	standing := r.standing(e, rec, now)
	if !slices.ContainsFunc(standing, func(reason Reason) bool { return reason.Rule == ruleSchemes }) {
		v.Reasons = append(v.Reasons, r.explainSchemes(rec, best, ok))
	}
	v.Reasons = append(append(v.Reasons, standing...), explainSafety(round))
	v.Reasons = append(v.Reasons, r.explainRequire(best, ok)...)
	if r.MinJudges > 1 && rec.Member == "" {
		v.Reasons = append(v.Reasons, r.explainJudges(rec.Proven))
	}
	v.Reasons = append(v.Reasons, r.measured(rec, now, false)...)
	if r.MaxAge > 0 && rec.Member != "" {
		v.Reasons = append(v.Reasons, r.age(rec, now))
	}
	streak := r.explainStreak(rec)
	v.Reasons = append(v.Reasons, streak)
	if rec.Member != "" { // it stays one through failures that are fewer than fall
		v.Eligible = !slices.ContainsFunc(v.Reasons, func(reason Reason) bool {
			return reason.State == Fail && (reason.Rule == ruleFall || reason.Rule == ruleSafety || reason.Rule == ruleMaxAge)
		}) && !r.Bar(e, rec, now).Bars()
		return v
	}
	v.Eligible = !slices.ContainsFunc(v.Reasons, func(reason Reason) bool { return reason.State != Pass })
	return v
}

// furthest returns the summary that passed, else one that was ok, else the one
// that showed most.
func furthest(round []ResultSummary) (best ResultSummary, ok bool) {
	rank := func(s ResultSummary) int {
		n := len(s.Shown)
		if s.Outcome == OK {
			n += len(Capabilities())
		}
		if s.State == Pass {
			n += 2 * len(Capabilities())
		}
		return n
	}
	for i, s := range round {
		if i == 0 || rank(s) > rank(best) {
			best = s
		}
	}
	return best, len(round) > 0
}

// roundState is Rules.Judge's last step, on what the record kept.
func roundState(round []ResultSummary) State {
	state := Fail
	for _, s := range round {
		switch {
		case s.State == Fail && s.Outcome.Class() == ClassSecurity:
			return Fail
		case s.State == Pass:
			state = Pass
		case s.State == Inconclusive && state != Pass:
			state = Inconclusive
		}
	}
	return state
}

func (r Rules) explainSchemes(rec Record, best ResultSummary, probed bool) Reason {
	switch {
	case !probed || best.State != Pass:
		return Reason{ruleSchemes, Inconclusive, "to be tried: " + join(r.TryOrder(rec))}
	case !slices.Contains(r.Schemes, best.Scheme):
		return Reason{ruleSchemes, Fail, string(best.Scheme) + " is not among " + join(r.Schemes)}
	}
	return Reason{ruleSchemes, Pass, string(best.Scheme) + " is among " + join(r.Schemes)}
}

func explainSafety(round []ResultSummary) Reason {
	for _, s := range round {
		if s.Outcome.Class() == ClassSecurity && s.State == Fail {
			return Reason{ruleSafety, Fail, describe(string(s.Scheme), s.Outcome, s.Stage)}
		}
	}
	if len(round) == 0 {
		return Reason{ruleSafety, Inconclusive, "not probed yet"}
	}
	return Reason{ruleSafety, Pass, "nothing against it was seen"}
}

func (r Rules) explainRequire(best ResultSummary, probed bool) []Reason {
	var reasons []Reason
	for _, c := range r.Require {
		reason := Reason{ruleRequire(c), Inconclusive, "not known"}
		switch {
		case !probed:
			reason.Text = "not probed yet"
		case slices.Contains(best.Shown, c) && (best.Outcome == OK || best.State == Pass || best.Capability != c):
			reason.State, reason.Text = Pass, fmt.Sprintf("%s: shown", best.Scheme)
		case best.Capability == c && best.Outcome != OK:
			reason.State, reason.Text = best.State, describe(string(best.Scheme), best.Outcome, best.Stage)
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

func (r Rules) explainJudges(shown Proven) Reason {
	switch {
	case shown.At.IsZero():
		return Reason{ruleMinJudges, Inconclusive, "not known"}
	case shown.Judges < r.MinJudges:
		return Reason{ruleMinJudges, Inconclusive, fmt.Sprintf("%d of %d judges were content", shown.Judges, r.MinJudges)}
	}
	return Reason{ruleMinJudges, Pass, fmt.Sprintf("%d judges were content, at least %d", shown.Judges, r.MinJudges)}
}

func (r Rules) explainStreak(rec Record) Reason {
	rise, fall := r.runs()
	if rec.Member != "" {
		reason := Reason{ruleFall, Pass, fmt.Sprintf("%d failures in a row, %d retire", rec.Fails, fall)}
		if rec.Fails >= fall {
			reason.State = Fail
		}
		return reason
	}
	reason := Reason{ruleRise, Pass, fmt.Sprintf("%d passes in a row, %d admit", rec.Passes, rise)}
	switch {
	case rec.Fails > 0:
		reason.State, reason.Text = Fail, fmt.Sprintf("failed %d times in a row; %d passes in a row admit", rec.Fails, rise)
	case rec.Passes < rise:
		reason.State = Inconclusive
	}
	return reason
}
