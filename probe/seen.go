package probe

import (
	"slices"
	"time"
)

// worked says how a round went before other rules have their say.
type worked struct {
	state State    // Pass: it did all that was asked for; Inconclusive: nothing was learned
	index int      // Pass: of the result that did
	sick  []string // targets whose answers say nothing
}

// seen returns the record with what a round saw, apart from the streaks: it is
// what rules look at that speak of more than one result.
func (r Record) seen(in Round, w worked) Record {
	at := atMS(in.At)
	for _, result := range in.Results {
		for _, c := range result.Targets {
			// What a target answered holds for later rounds too: where the target or this
			// host were at fault, it told nothing.
			if class := c.Outcome.Class(); (class == ClassOK || class == ClassProxy) && !slices.Contains(w.sick, c.Target) {
				r.Targets = withTarget(r.Targets, TargetResult{c.Target, at, c.Outcome})
			}
		}
	}
	switch w.state {
	case Pass:
		result := in.Results[w.index]
		round := RoundSummary{At: at, Worked: true}
		r.Proven = Proven{At: at, Scheme: result.Proxy.Scheme, Found: result.Found, Anonymity: result.Anonymity,
			Verified: result.Verified, Judges: contentJudges(result)}
		for _, c := range result.Checks {
			round.Connect = max(round.Connect, c.Connect.Truncate(time.Millisecond))
			round.FirstByte = max(round.FirstByte, c.FirstByte.Truncate(time.Millisecond))
			round.Total = max(round.Total, c.Total.Truncate(time.Millisecond))
			if c.Outcome == OK && c.Exit.IsValid() {
				var changed bool
				if r.Exits, changed = withExit(r.Exits, Exit{c.Exit.Unmap(), in.Geo.place(c.Exit.Unmap()), at, at}); changed {
					round.ExitChanges++
				}
			}
		}
		r.Rounds = withRound(r.Rounds, round)
	case Fail:
		r.Rounds = withRound(r.Rounds, RoundSummary{At: at})
		if !slices.ContainsFunc(r.Rounds, func(s RoundSummary) bool { return s.Worked }) {
			r.Proven, r.Rounds, r.Exits, r.Targets = Proven{}, nil, nil, nil
		}
	}
	if r.Proven.At.IsZero() {
		r.Targets = nil
	}
	return r
}

// deciding returns the check by which the result ended: a failure may have been
// looked at by another judge.
func (r Result) deciding() Check {
	for _, c := range slices.Backward(r.Checks) {
		if c.Outcome == r.Outcome {
			return c
		}
	}
	return r.Last()
}

// contentJudges counts the judges that a result's ok checks asked, each name once.
func contentJudges(result Result) int {
	var names []string
	for _, c := range result.Checks {
		if c.Outcome == OK && !slices.Contains(names, c.Judge) {
			names = append(names, c.Judge)
		}
	}
	return len(names)
}

func withRound(rounds []RoundSummary, s RoundSummary) []RoundSummary {
	all := append([]RoundSummary{s}, rounds...)
	return all[:min(len(all), keptRounds)]
}

// withExit adds an exit and says whether it is another one than the last of its
// family. One that is as before stays in its place.
func withExit(exits []Exit, e Exit) (all []Exit, changed bool) {
	i := slices.IndexFunc(exits, func(have Exit) bool { return have.Addr.Is4() == e.Addr.Is4() })
	if i >= 0 && exits[i].Addr == e.Addr {
		all = slices.Clone(exits)
		all[i].Place, all[i].Until = e.Place, e.Until
		return all, false
	}
	all = append([]Exit{e}, exits...)
	return all[:min(len(all), keptExits)], i >= 0
}

func withTarget(targets []TargetResult, t TargetResult) []TargetResult {
	i, found := slices.BinarySearchFunc(targets, t.Name, compareTarget)
	switch {
	case found:
		targets = slices.Clone(targets)
		targets[i] = t
	case len(targets) < keptTargets:
		targets = slices.Insert(slices.Clone(targets), i, t)
	}
	return targets
}

func compareTarget(t TargetResult, name string) int {
	switch {
	case t.Name < name:
		return -1
	case t.Name > name:
		return 1
	}
	return 0
}

// target returns how a target was last reached; false if that is not known.
func (r Record) target(name string) (TargetResult, bool) {
	for _, t := range r.Targets {
		if t.Name == name {
			return t, true
		}
	}
	return TargetResult{}, false
}

// exitsAt returns the exits that were seen at a time.
func (r Record) exitsAt(at time.Time) (exits []Exit) {
	for _, e := range r.Exits {
		if e.Until.Equal(at) {
			exits = append(exits, e)
		}
	}
	return exits
}

// lastExits returns the exits that were seen together last.
func (r Record) lastExits() []Exit {
	var last time.Time
	for _, e := range r.Exits {
		if e.Until.After(last) {
			last = e.Until
		}
	}
	return r.exitsAt(last)
}

// of returns the figure of a row at the quantile, by nearest rank (Hyndman and
// Fan 1996, definition 1). The row is not empty and may be sorted.
func (q Quantile) of(row []time.Duration) time.Duration {
	slices.Sort(row)
	percent := map[Quantile]int{P50: 50, P90: 90, P95: 95, Max: 100}[q]
	if percent == 0 {
		percent = 90
	}
	return row[(len(row)*percent+99)/100-1]
}
