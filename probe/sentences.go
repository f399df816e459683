package probe

import (
	"fmt"
	"strings"
	"time"
)

// Sentence is a rule that is in force, in plain words.
type Sentence struct {
	Rule RuleInfo
	Text string // a whole sentence about a proxy, "It ..."; safe to print
}

// Sentences says the rules in plain words, in RuleTable's order: at least one
// sentence for each that is in force, those that every pool has included.
func (r Rules) Sentences() []Sentence {
	var list []Sentence
	infos := map[string]RuleInfo{}
	for _, info := range RuleTable() {
		infos[info.Name] = info
	}
	say := func(rule string, set bool, format string, args ...any) {
		if set {
			list = append(list, Sentence{infos[rule], fmt.Sprintf(format, args...)})
		}
	}
	say(ruleSchemes, len(r.Schemes) == 1, "It speaks %s.", join(r.Schemes))
	say(ruleSchemes, len(r.Schemes) > 1, "It speaks one of %s; the first that works is used.", join(r.Schemes))
	say(ruleBanned, r.Banned != nil, "It is not on the list of banned proxies.")
	say(ruleNetworks, len(r.Networks) > 0, "Its own address is in %s.", either(len(r.Networks), prefixes(r.Networks)))
	say(ruleNotNetworks, len(r.NotNetworks) > 0, "Neither its own address nor its exit is in %s.", prefixes(r.NotNetworks))
	say(rulePorts, len(r.Ports) > 0, "Its port is %s.", either(len(r.Ports), ports(r.Ports)))
	say(ruleQuarantine, r.Quarantine > 0, "One that broke safety is not probed again for %s.", short(r.Quarantine))
	say(ruleSafety, true, "It does not tamper, intercept, forge, or lead to an address that may not be dialled.")
	say(ruleControl, true, "A round counts only if its judge was well when it was asked without a proxy, before and after.")
	for _, c := range r.Require {
		say(ruleRequired, true, "It %s, each time it is asked.", map[Capability]string{
			HTTP: "brings the judge's page over plain http, unchanged (http)",
			TLS:  "brings a TLS connection to the judge, unbroken (tls)",
		}[c])
	}
	say(ruleMinJudges, r.MinJudges > 1, "To be admitted, it has satisfied %d judges in one round.", r.MinJudges)
	r.sayMeasured(say)
	rise, fall := r.runs()
	say(ruleRise, rise == 1, "One round that meets all of this admits it.")
	say(ruleRise, rise > 1, "%d rounds in a row that meet all of this admit it.", rise)
	say(ruleFall, fall == 1, "One round that breaks any of it retires it.")
	say(ruleFall, fall > 1, "%d rounds in a row that break any of it retire it.", fall)
	return list
}

// sayMeasured is about what a proxy is like that works.
func (r Rules) sayMeasured(say func(rule string, set bool, format string, args ...any)) {
	word := "as a judge that signs has seen it"
	if r.AcceptClaimed {
		word = "as any judge has seen it"
	}
	say(ruleAnonymity, r.Anonymity != "", "%s, %s.", map[Anonymity]string{
		Transparent: "It is known whether it tells our address",
		Anonymous:   "It does not tell our address",
		Elite:       "It tells neither our address nor that it is a proxy",
	}[r.Anonymity], word)
	say(ruleExitCountries, len(r.ExitCountries) > 0, "Its traffic comes out in %s.", either(len(r.ExitCountries), texts(r.ExitCountries)))
	say(ruleNotCountries, len(r.NotCountries) > 0, "Its traffic is known to come out in a country other than %s.", texts(r.NotCountries))
	say(ruleExitASNs, len(r.ExitASNs) > 0, "Its traffic comes out in %s.", either(len(r.ExitASNs), asns(r.ExitASNs)))
	say(ruleNotASNs, len(r.NotASNs) > 0, "Its traffic is known to come out in a system other than %s.", asns(r.NotASNs))
	say(ruleTargets, len(r.RequireTargets) > 0, "It reached %s when last tried.", all(len(r.RequireTargets), texts(r.RequireTargets)))
	for _, s := range []struct {
		what string
		most time.Duration
	}{{"The proxy has accepted the connection", r.MaxLatency.Connect}, {"The first byte of the answer is there", r.MaxLatency.FirstByte}, {"The answer is complete", r.MaxLatency.Total}} {
		say(ruleMaxLatency, s.most > 0, "%s within %s%s.", s.what, short(s.most), r.MaxLatency.span())
	}
	say(ruleMinSuccess, r.MinSuccess.Percent > 0, "It worked in at least %d%% of its last %d rounds, or of those there are.", r.MinSuccess.Percent, r.MinSuccess.over())
	if r.MaxExitChanges != nil {
		most := map[int]string{0: "did not change", 1: "changed at most once"}[*r.MaxExitChanges]
		if most == "" {
			most = fmt.Sprintf("changed at most %d times", *r.MaxExitChanges)
		}
		say(ruleMaxExitChanges, true, "Its exit address %s over the last %d rounds.", most, keptRounds)
	}
	say(ruleMaxAge, r.MaxAge > 0, "A member that has not passed for %s is retired.", short(r.MaxAge))
}

// span is which rounds a limit is about.
func (l Latency) span() string {
	share := map[Quantile]string{P50: "half", P90: "90%", P95: "95%", Max: "all"}[l.quantile()]
	if l.Over <= 1 {
		return ", in its last round that worked"
	}
	return fmt.Sprintf(", in %s of its last %d rounds that worked (%s)", share, l.Over, l.quantile())
}

func either(n int, list string) string {
	if n > 1 {
		return "one of " + list
	}
	return list
}

func all(n int, list string) string {
	if n > 1 {
		return "all of " + list
	}
	return list
}

// short is d.String without its zero parts: 24h for 24h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
