package config

import (
	"fmt"
	"strings"

	"evenpool/probe"
)

// checkKind refuses a judge of two kinds.
func (r *reader) checkKind(path string, j *Judge) {
	switch {
	case !r.clean(path):
	case j.Expect != nil && j.Echo != nil:
		r.fail(path+".echo", "is for another kind of judge than expect; write one of the two")
	case j.KeyFile != "" && j.Expect != nil:
		r.fail(path+".key_file", "has no use with expect: a page signs nothing; remove one of the two")
	case j.KeyFile != "" && j.Echo != nil:
		r.fail(path+".key_file", "has no use with echo: only evenpool judge signs; remove one of the two")
	}
}

// knownTargets is known, where there may be no targets at all.
func (r *reader) knownTargets(path string, refs, targets []string) {
	if len(targets) == 0 && r.clean("targets") && r.clean(path) {
		r.fail(path, "names targets, and there are none; write them under targets")
		return
	}
	r.known(path, refs, targets, "targets")
}

// checkLimits is about limits that contradict each other, or never apply.
func (r *reader) checkLimits(path string, p *Pool) {
	e := &p.Eligibility
	if !r.clean(path+".probe") || !r.clean(path+".eligibility") {
		return
	}
	l := e.MaxLatency
	at := path + ".eligibility.max_latency"
	if _, section := r.marks[at+".total"]; section {
		at += ".total"
	}
	if l.Total >= p.Probe.Timeout {
		r.warn(at, "never applies: no probe takes longer than the timeout of %s", short(p.Probe.Timeout))
	}
	at = path + ".eligibility.max_latency"
	if l.Connect >= min(p.Probe.ConnectTimeout, p.Probe.Timeout) {
		r.warn(at+".connect", "never applies: no connection takes longer than the connect_timeout of %s", short(min(p.Probe.ConnectTimeout, p.Probe.Timeout)))
	}
	if l.FirstByte >= p.Probe.Timeout {
		r.warn(at+".first_byte", "never applies: no probe takes longer than the timeout of %s", short(p.Probe.Timeout))
	}
	if _, written := r.marks[path+".probe.connect_timeout"]; written && p.Probe.ConnectTimeout > p.Probe.Timeout {
		r.warn(path+".probe.connect_timeout", "is cut to the timeout of %s, which is for all of a probe", short(p.Probe.Timeout))
	}
	if interval := p.Probe.Schedule.Interval(); e.MaxAge > 0 && e.MaxAge <= interval {
		r.fail(path+".eligibility.max_age", "is not longer than the schedule's interval of %s: every member would be retired between two cycles; raise it or probe more often", short(interval))
	}
	if e.AcceptClaimed && e.Anonymity == "" {
		r.warn(path+".eligibility.accept_claimed", "has no use without anonymity")
	}
}

// impossible warns of rules under which nothing can ever become a member: such a
// pool looks like one whose lists are bad. What is an error already is not said twice.
func (r *reader) impossible(path string, c *Config, p *Pool) {
	if len(r.problems) > 0 {
		return
	}
	keys := map[string]string{}
	for _, rule := range probe.RuleTable() {
		keys[rule.Name] = rule.Key
	}
	for _, reason := range p.Eligibility.Rules().Impossible(c.Means(*p)) {
		rule, _, _ := strings.Cut(reason.Rule, " ")
		r.warn(fmt.Sprintf("%s.eligibility.%s", path, keys[rule]), "nothing can ever become a member: %s", reason.Text)
	}
}
