package probe

import (
	"fmt"
	"strings"
	"time"
)

// Sentences says each rule in plain words, a sentence for each that is in force, in
// RuleTable's order.
func (r Rules) Sentences() []string {
	var list []string
	say := func(set bool, format string, args ...any) {
		if set {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	rise, fall := r.runs()
	say(len(r.Schemes) == 1, "schemes: it is spoken to by %s.", join(r.Schemes))
	say(len(r.Schemes) > 1, "schemes: it is spoken to by one of %s, by the first of them that works.", join(r.Schemes))
	say(r.Banned != nil, "banned: it is not on the list of banned proxies; one that comes onto it is retired at once.")
	say(len(r.Networks) > 0, "networks: its own address is in %s; else it is not probed, and retired at once.", either(len(r.Networks), prefixes(r.Networks)))
	say(len(r.NotNetworks) > 0, "not_networks: neither its own address nor its exit is in %s; for its own address it is retired at once.", prefixes(r.NotNetworks))
	say(len(r.Ports) > 0, "ports: its port is %s; else it is not probed, and retired at once.", either(len(r.Ports), ports(r.Ports)))
	say(r.Quarantine > 0, "quarantine: one that tampers, intercepts, forges or leads to a forbidden address is out at once, and not probed again for %s.", short(r.Quarantine))
	say(r.Quarantine <= 0, "safety: one that tampers, intercepts, forges or leads to a forbidden address is out at once.")
	for _, c := range r.Require {
		say(true, "require: it %s, each time it is asked.", map[Capability]string{
			HTTP: "brings the judge's page over plain http, unchanged (http)",
			TLS:  "brings a TLS connection to the judge, unbroken (tls)",
		}[c])
	}
	say(r.MinJudges > 1, "min_judges: to be admitted, it has satisfied %d judges in one round.", r.MinJudges)
	word := "as a judge that signs has seen it"
	if r.AcceptClaimed {
		word = "as any judge has seen it"
	}
	say(r.Anonymity != "", "anonymity: %s, %s.", map[Anonymity]string{
		Transparent: "it is known what it tells of us",
		Anonymous:   "it does not tell our address",
		Elite:       "it tells neither our address nor that it is a proxy",
	}[r.Anonymity], word)
	say(len(r.ExitCountries) > 0, "exit_countries: its traffic comes out in %s.", either(len(r.ExitCountries), texts(r.ExitCountries)))
	say(len(r.NotCountries) > 0, "not_countries: its traffic is known to come out in a country other than %s.", texts(r.NotCountries))
	say(len(r.ExitASNs) > 0, "exit_asns: its traffic comes out in %s.", either(len(r.ExitASNs), asns(r.ExitASNs)))
	say(len(r.NotASNs) > 0, "not_asns: its traffic is known to come out in a system other than %s.", asns(r.NotASNs))
	say(len(r.RequireTargets) > 0, "require_targets: it has reached %s when it was last asked for.", all(len(r.RequireTargets), texts(r.RequireTargets)))
	for _, s := range []struct {
		what string
		most time.Duration
	}{{"the proxy has accepted the connection", r.MaxLatency.Connect}, {"the first byte of the answer is there", r.MaxLatency.FirstByte}, {"the answer is complete", r.MaxLatency.Total}} {
		say(s.most > 0, "max_latency: %s within %s%s.", s.what, short(s.most), r.MaxLatency.span())
	}
	say(r.MinSuccess.Percent > 0, "min_success: it worked in at least %d%% of its last %d rounds, or of those there are.", r.MinSuccess.Percent, r.MinSuccess.over())
	if r.MaxExitChanges != nil {
		say(*r.MaxExitChanges == 0, "max_exit_changes: its exit address did not change over the last %d rounds.", keptRounds)
		say(*r.MaxExitChanges > 0, "max_exit_changes: its exit address changed at most %d times over the last %d rounds.", *r.MaxExitChanges, keptRounds)
	}
	say(r.MaxAge > 0, "max_age: a member that has not passed for %s is retired.", short(r.MaxAge))
	say(rise == 1, "rise: one round that meets all of this admits it.")
	say(rise > 1, "rise: %d rounds in a row that meet all of this admit it.", rise)
	say(fall == 1, "fall: one round that does not retires it.")
	say(fall > 1, "fall: %d rounds in a row that do not retire it.", fall)
	return list
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
