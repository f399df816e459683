package probe

import (
	"fmt"
	"slices"
	"time"

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
	AtOnce   bool   // Retire: no guard may hold it, since it is for safety or by the operator's own word
	Reason   string // why, in one line; "" for Keep
}

// Decide says what a round's verdict means for an endpoint. The record is the one
// after that round. An inconclusive round decides nothing, but for MaxAge, and so the
// same decision comes again in the next round if a guard held this one. What is
// barred is not admitted: a list of banned proxies may change within a round.
func (r Rules) Decide(after Record, v RoundVerdict) Decision {
	member := after.Member != ""
	rise, fall := r.runs()
	now := after.LastProbe
	if u, err := proxyurl.ParseURL(after.Member); err == nil && !v.Security {
		if bar := r.Bar(u.Endpoint, after, now); bar.Bars() {
			return bar.Decision(after)
		}
	}
	switch {
	case v.State == Fail && member && (v.Security || v.Excluded):
		return Decision{Action: Retire, Member: after.Member, AtOnce: true, Reason: why(v)}
	case v.State == Fail && member && after.Fails >= fall:
		return Decision{Action: Retire, Member: after.Member,
			Reason: fmt.Sprintf("%d of %d failures in a row; %s", after.Fails, fall, why(v))}
	case v.State != Pass && member && r.tooOld(after, now):
		return Decision{Action: Retire, Member: after.Member, Reason: r.age(after, now).String()}
	case v.State == Pass && !member && after.Passes >= rise && !r.Bar(v.URL.Endpoint, after, now).Bars():
		return Decision{Action: Admit, Member: v.URL.String(),
			Reason: fmt.Sprintf("%d of %d passes in a row by %s", after.Passes, rise, v.URL.Scheme)}
	case v.State == Pass && member && v.URL.String() != after.Member && !slices.Contains(v.Each, Inconclusive):
		return Decision{Action: Move, Member: v.URL.String(), Previous: after.Member,
			Reason: fmt.Sprintf("passes by %s only", v.URL.Scheme)}
	}
	return Decision{Action: Keep}
}

// why is the last thing that decided against an endpoint.
func why(v RoundVerdict) string {
	for _, reason := range slices.Backward(v.Reasons) {
		if reason.State == Fail && (!v.Security || reason.Rule == ruleSafety) {
			return reason.Rule + ": " + reason.Text
		}
	}
	return "no reason known"
}

// passedOrSeen is from when a member's age counts: somebody else may have put it into
// the set, and then it has not passed yet.
func passedOrSeen(rec Record) time.Time {
	if rec.LastPass.After(rec.FirstSeen) {
		return rec.LastPass
	}
	return rec.FirstSeen
}

func (r Rules) tooOld(rec Record, now time.Time) bool {
	return r.MaxAge > 0 && now.Sub(passedOrSeen(rec)) > r.MaxAge
}

// age is max_age's reason.
func (r Rules) age(rec Record, now time.Time) Reason {
	reason := Reason{ruleMaxAge, Pass, "no pass yet"}
	if !rec.LastPass.IsZero() {
		reason.Text = fmt.Sprintf("passed %s ago, at most %s", now.Sub(rec.LastPass).Round(time.Second), r.MaxAge)
	}
	if r.tooOld(rec, now) {
		reason.State = Fail
	}
	return reason
}

// Reconsidered is what other rules make of a record.
type Reconsidered struct {
	Decision Decision // Keep, or Retire with AtOnce: nobody is admitted without a probe
	AskNow   bool     // its next probe is to be brought forward, since that may change what it is
	Reasons  []Reason // what is broken or not known
}

// Reconsider applies rules to a record that was made under others. It retires a
// member that the operator's word bars. All else takes a probe: a member that seems to
// break a rule is asked now, and then it goes by Fall and the guards, as if it had
// changed itself; one that is none is asked now if it worked when it was last asked
// and nothing is known to speak against it. A run of passes is not counted anew:
// admission rests on probes under the rules in force.
func (r Rules) Reconsider(e proxyurl.Endpoint, rec Record, now time.Time) (out Reconsidered) {
	bar := r.Bar(e, rec, now)
	out.Decision = bar.Decision(rec)
	broken := false
	for _, reason := range r.Explain(e, rec, now).Reasons {
		if reason.State == Pass || reason.Rule == ruleRise {
			continue
		}
		out.Reasons = append(out.Reasons, reason)
		// What the last round ended by is decided already, and is no news.
		broken = broken || reason.State == Fail && reason.Rule != ruleFall
	}
	switch {
	case bar.Bars():
	case rec.Member != "":
		out.AskNow = len(out.Reasons) > 0
	default:
		out.AskNow = !broken && len(rec.Rounds) > 0 && rec.Rounds[0].Worked
	}
	return out
}
