package probe

import (
	"fmt"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// measured applies the rules that speak of what a working proxy is like, to a
// record that has seen the round, in RuleTable's order. While a round is judged,
// only what it saw itself counts, where it is about one round; else what is
// remembered.
func (r Rules) measured(rec Record, at time.Time, judging bool) (reasons []Reason) {
	shown := rec.Proven
	exits := rec.exitsAt(at)
	if !judging {
		exits = rec.lastExits()
	}
	if r.Anonymity != "" {
		reasons = append(reasons, r.anonymous(shown))
	}
	reasons = append(reasons, r.located(exits)...)
	for _, name := range r.RequireTargets {
		reasons = append(reasons, r.reached(rec, name, at, judging))
	}
	reasons = append(reasons, r.MaxLatency.kept(rec.Rounds)...)
	if r.MinSuccess.Percent > 0 {
		reasons = append(reasons, r.MinSuccess.had(rec.Rounds))
	}
	if r.MaxExitChanges != nil {
		reasons = append(reasons, steady(rec, *r.MaxExitChanges))
	}
	return reasons
}

// level orders anonymity; 0 is unknown.
func level(a Anonymity) int {
	return 1 + slices.Index([]Anonymity{Transparent, Anonymous, Elite}, a)
}

func (r Rules) anonymous(shown Proven) Reason {
	reason := Reason{ruleAnonymity, Inconclusive, "not known"}
	switch word := "verified"; {
	case level(shown.Anonymity) == 0:
	case level(shown.Anonymity) < level(r.Anonymity):
		reason.State, reason.Text = Fail, fmt.Sprintf("%s, at least %s", shown.Anonymity, r.Anonymity)
	case !shown.Verified && !r.AcceptClaimed:
		reason.Text = fmt.Sprintf("%s, but claimed only: no judge that signs has seen it", shown.Anonymity)
	default:
		if !shown.Verified {
			word = "claimed"
		}
		reason.State, reason.Text = Pass, fmt.Sprintf("%s (%s), at least %s", shown.Anonymity, word, r.Anonymity)
	}
	return reason
}

// located applies the rules about exits.
func (r Rules) located(exits []Exit) (reasons []Reason) {
	each := func(rule string, set bool, met func(Exit) bool, text func(Exit) string) {
		if !set {
			return
		}
		reason := Reason{rule, Inconclusive, "no judge told the exit"}
		for _, e := range exits {
			if reason.State == Fail {
				break
			}
			reason.State, reason.Text = Pass, text(e)
			if !met(e) {
				reason.State = Fail
			}
		}
		reasons = append(reasons, reason)
	}
	country := func(e Exit) string {
		if e.Place.Country == "" {
			return e.Addr.String() + ": in no country that geoip.country knows"
		}
		return e.Addr.String() + " is in " + proxyurl.Escape(e.Place.Country, 20)
	}
	system := func(e Exit) string {
		if e.Place.ASN == 0 {
			return e.Addr.String() + ": in no system that geoip.asn knows"
		}
		return fmt.Sprintf("%s is in AS%d", e.Addr, e.Place.ASN)
	}
	// The exit half alone: the other needs no probe, and an exit that is not known is
	// nothing against anybody who only wants to be elsewhere.
	if len(exits) > 0 {
		each(ruleNotNetworks, len(r.NotNetworks) > 0, func(e Exit) bool {
			_, in := within(r.NotNetworks, e.Addr)
			return !in
		}, func(e Exit) string {
			if p, in := within(r.NotNetworks, e.Addr); in {
				return "the exit " + e.Addr.String() + " is in " + p.String()
			}
			return "the exit " + e.Addr.String() + " is in none of " + prefixes(r.NotNetworks)
		})
	}
	each(ruleExitCountries, len(r.ExitCountries) > 0, func(e Exit) bool { return slices.Contains(r.ExitCountries, e.Place.Country) }, country)
	each(ruleNotCountries, len(r.NotCountries) > 0, func(e Exit) bool {
		return e.Place.Country != "" && !slices.Contains(r.NotCountries, e.Place.Country)
	}, country)
	each(ruleExitASNs, len(r.ExitASNs) > 0, func(e Exit) bool { return slices.Contains(r.ExitASNs, e.Place.ASN) }, system)
	each(ruleNotASNs, len(r.NotASNs) > 0, func(e Exit) bool { return e.Place.ASN != 0 && !slices.Contains(r.NotASNs, e.Place.ASN) }, system)
	return reasons
}

// reached applies require_targets to one of them. A failure of an earlier round was
// held against the proxy then, and is not again: it leaves open what the target would
// say now.
func (r Rules) reached(rec Record, name string, at time.Time, judging bool) Reason {
	t, known := rec.target(name)
	reason := Reason{ruleTargets, Inconclusive, name + ": not asked yet"}
	switch when := t.At.UTC().Format(time.RFC3339); {
	case !known:
	case r.MaxAge > 0 && at.Sub(t.At) > r.MaxAge:
		reason.Text = fmt.Sprintf("%s: last asked at %s", name, when)
	case t.Outcome == OK:
		reason.State, reason.Text = Pass, fmt.Sprintf("%s: reached at %s", name, when)
	default:
		reason.State, reason.Text = Fail, fmt.Sprintf("%s: %s at %s", name, t.Outcome, when)
		if judging && !t.At.Equal(at) {
			reason.State = Inconclusive
		}
	}
	return reason
}

// kept applies the limits, in the order of the stages.
func (l Latency) kept(rounds []RoundSummary) (reasons []Reason) {
	stages := []struct {
		name string
		most time.Duration
		took func(RoundSummary) time.Duration
	}{
		{"connect", l.Connect, func(s RoundSummary) time.Duration { return s.Connect }},
		{"first byte", l.FirstByte, func(s RoundSummary) time.Duration { return s.FirstByte }},
		{"total", l.Total, func(s RoundSummary) time.Duration { return s.Total }},
	}
	for _, stage := range stages {
		if stage.most <= 0 {
			continue
		}
		var row []time.Duration
		for _, s := range rounds {
			if s.Worked && len(row) < max(l.Over, 1) {
				row = append(row, stage.took(s))
			}
		}
		if len(row) == 0 {
			reasons = append(reasons, Reason{ruleMaxLatency, Inconclusive, stage.name + ": not known"})
			continue
		}
		took := l.Quantile.of(row)
		over := ""
		if l.Over > 1 {
			over = fmt.Sprintf(" (%s of %d)", l.quantile(), len(row))
		}
		reason := Reason{ruleMaxLatency, Pass, fmt.Sprintf("%s %d ms%s, at most %d ms", stage.name, took.Milliseconds(), over, stage.most.Milliseconds())}
		if took > stage.most {
			reason.State = Fail
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

func (l Latency) quantile() Quantile {
	if l.Quantile == "" {
		return P90
	}
	return l.Quantile
}

// had applies the rule. Of a newcomer there are few rounds, and they count as they
// are: else nobody would come in for a day.
func (s Success) had(rounds []RoundSummary) Reason {
	over := s.over()
	rounds = rounds[:min(len(rounds), over)]
	worked := 0
	for _, round := range rounds {
		if round.Worked {
			worked++
		}
	}
	if len(rounds) == 0 {
		return Reason{ruleMinSuccess, Inconclusive, "not known"}
	}
	reason := Reason{ruleMinSuccess, Pass, fmt.Sprintf("%d of %d rounds worked, at least %d%%", worked, len(rounds), s.Percent)}
	if worked*100 < s.Percent*len(rounds) {
		reason.State = Fail
	}
	return reason
}

func (s Success) over() int {
	if s.Over < 1 || s.Over > keptRounds {
		return keptRounds
	}
	return s.Over
}

// steady applies max_exit_changes.
func steady(rec Record, most int) Reason {
	if len(rec.Exits) == 0 {
		return Reason{ruleMaxExitChanges, Inconclusive, "no judge told the exit"}
	}
	n := 0
	for _, round := range rec.Rounds {
		n += round.ExitChanges
	}
	reason := Reason{ruleMaxExitChanges, Pass, fmt.Sprintf("%d in %d rounds, at most %d", n, len(rec.Rounds), most)}
	if n > most {
		reason.State = Fail
	}
	return reason
}

// atMS is a time as records keep it.
func atMS(t time.Time) time.Time { return t.Truncate(time.Millisecond) }
