package probe

import (
	"slices"
	"time"
)

// targetFresh is how long a target's good answer stands before a proxy is to be
// asked for it again: turns are few.
const targetFresh = time.Hour

// TargetName is by which name a target's control is asked for, among those of
// judges: no judge has a colon in its name.
func TargetName(target string) string { return "target:" + target }

// AwaitsTargets says whether nothing is missing from a round but the turns of targets.
func (v RoundVerdict) AwaitsTargets() bool {
	return v.State == Inconclusive && v.worked.state == Pass &&
		!slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.State == Inconclusive && r.Rule != ruleTargets })
}

// TargetsOf returns those targets, by name, that a proxy is to be asked for: what is
// not known of it or was not well first, then what was well longest ago. One that was
// well within an hour, or half of MaxAge if that is less, is left out: others need the
// turn. When the turn comes, Spacing says.
func (r Rules) TargetsOf(rec Record, targets []string, now time.Time) []string {
	fresh := targetFresh
	if r.MaxAge > 0 {
		fresh = min(fresh, r.MaxAge/2)
	}
	since := func(name string) time.Time {
		last, known := rec.target(name)
		if !known || last.Outcome != OK {
			return time.Time{}
		}
		return last.At
	}
	var due []string
	for _, name := range targets {
		if at := since(name); at.IsZero() || now.Sub(at) >= fresh || now.Before(at) {
			due = append(due, name)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return since(a).Compare(since(b)) })
	return due
}
