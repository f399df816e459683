package probe

import (
	"fmt"
	"slices"

	"evenpool/sources/proxyurl"
)

// Action is what is to be done with an endpoint in the pool.
type Action string

// The actions.
const (
	Keep   Action = "keep"   // member or not, it stays what it is
	Admit  Action = "admit"  // it becomes a member
	Retire Action = "retire" // it is no longer a member
	Move   Action = "move"   // it stays a member, under another URL
)

// Decision is what follows from a round.
type Decision struct {
	Action   Action
	Member   string // the member's URL after Admit and Move, before Retire; "" for Keep
	Previous string // Move: the URL before
	Security bool   // Retire: no guard may hold it
	Reason   string // why, in one line; "" for Keep
}

// Decide says what a round's verdict means for an endpoint. The record is the one
// after that round. An inconclusive round decides nothing, and so the same
// decision comes again in the next round if a guard held this one.
func (r Rules) Decide(after Record, v RoundVerdict) Decision {
	member := after.Member != ""
	rise, fall := r.runs()
	switch {
	case v.State == Fail && member && v.Security:
		return Decision{Action: Retire, Member: after.Member, Security: true, Reason: why(v)}
	case v.State == Fail && member && after.Fails >= fall:
		return Decision{Action: Retire, Member: after.Member,
			Reason: fmt.Sprintf("%d of %d failures in a row; %s", after.Fails, fall, why(v))}
	case v.State == Pass && !member && after.Passes >= rise:
		return Decision{Action: Admit, Member: v.URL.String(),
			Reason: fmt.Sprintf("%d of %d passes in a row by %s", after.Passes, rise, v.URL.Scheme)}
	case v.State == Pass && member && v.URL.String() != after.Member && !slices.Contains(v.Each, Inconclusive):
		return Decision{Action: Move, Member: v.URL.String(), Previous: after.Member,
			Reason: fmt.Sprintf("passes by %s only", v.URL.Scheme)}
	}
	return Decision{Action: Keep}
}

// runs returns rise and fall.
func (r Rules) runs() (rise, fall int) { return max(r.Rise, 1), max(r.Fall, 1) }

// why is the last thing that decided against an endpoint.
func why(v RoundVerdict) string {
	for _, reason := range slices.Backward(v.Reasons) {
		if reason.State == Fail && (!v.Security || reason.Rule == ruleSafety) {
			return reason.Rule + ": " + reason.Text
		}
	}
	return "no reason known"
}

// Verdict is how an endpoint stands under the rules, condition by condition.
type Verdict struct {
	State    State           // of the last round; Inconclusive before the first
	Eligible bool            // it is a member by right, or has all it takes to become one
	Scheme   proxyurl.Scheme // by which it passed in the last round; "" when it did not
	Reasons  []Reason        // every condition: met, broken, or not known
}

// Explain applies the rules to a record, for people: it decides nothing. The
// scheme shown is the one that passed in the last round, else the one that came
// furthest.
func (r Rules) Explain(rec Record) Verdict {
	v := Verdict{State: Inconclusive}
	round := rec.lastRound()
	best, ok := furthest(round)
	if ok {
		v.State = stateOf(round)
	}
	if v.State == Pass {
		v.Scheme = best.Scheme
	}
	v.Reasons = append(v.Reasons, r.explainSchemes(rec, best, ok), explainSafety(round))
	v.Reasons = append(v.Reasons, r.explainRequire(best, ok)...)
	if ok && best.Outcome == OK {
		if reason, limited := r.latency(string(best.Scheme), best.Latency); limited {
			v.Reasons = append(v.Reasons, reason)
		}
	} else if r.MaxLatency > 0 {
		v.Reasons = append(v.Reasons, Reason{"max_latency", Inconclusive, "not known"})
	}
	streak := r.explainStreak(rec)
	v.Reasons = append(v.Reasons, streak)
	if rec.Member != "" { // it stays one through failures that are fewer than fall
		v.Eligible = streak.State == Pass && !slices.ContainsFunc(v.Reasons, func(reason Reason) bool {
			return reason.Rule == ruleSafety && reason.State == Fail
		})
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

// stateOf is Rules.Judge's last step, on what the record kept.
func stateOf(round []ResultSummary) State {
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
	open := r.TryOrder(rec)
	switch {
	case len(open) == 0:
		return Reason{"schemes", Fail, "claimed: " + join(rec.Schemes) + "; wanted: " + join(r.Schemes)}
	case !probed || best.State != Pass:
		return Reason{"schemes", Inconclusive, "to be tried: " + join(open)}
	case !slices.Contains(r.Schemes, best.Scheme):
		return Reason{"schemes", Fail, string(best.Scheme) + " is not among " + join(r.Schemes)}
	}
	return Reason{"schemes", Pass, string(best.Scheme) + " is among " + join(r.Schemes)}
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
		case slices.Contains(best.Shown, c):
			reason.State, reason.Text = Pass, fmt.Sprintf("%s: shown", best.Scheme)
		case best.Capability == c && best.Outcome != OK:
			reason.State, reason.Text = best.State, describe(string(best.Scheme), best.Outcome, best.Stage)
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

func (r Rules) explainStreak(rec Record) Reason {
	rise, fall := r.runs()
	if rec.Member != "" {
		reason := Reason{"fall", Pass, fmt.Sprintf("%d failures in a row, %d retire", rec.Fails, fall)}
		if rec.Fails >= fall {
			reason.State = Fail
		}
		return reason
	}
	reason := Reason{"rise", Pass, fmt.Sprintf("%d passes in a row, %d admit", rec.Passes, rise)}
	switch {
	case rec.Fails > 0:
		reason.State, reason.Text = Fail, fmt.Sprintf("failed %d times in a row; %d passes in a row admit", rec.Fails, rise)
	case rec.Passes < rise:
		reason.State = Inconclusive
	}
	return reason
}
