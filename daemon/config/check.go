package config

import (
	"fmt"
	"slices"
	"strings"

	"evenpool/alloc"
	"evenpool/probe"
)

// check adds the problems that span several keys. A rule whose ground is wrong
// already is left out, so that one mistake is one line.
func (r *reader) check(c *Config) {
	judges := r.unique("judges", len(c.Judges), func(i int) string { return c.Judges[i].Name })
	sources := r.unique("sources", len(c.Sources), func(i int) string { return c.Sources[i].Name })
	targets := r.unique("targets", len(c.Targets), func(i int) string { return c.Targets[i].Name })
	r.unique("pools", len(c.Pools), func(i int) string { return c.Pools[i].Name })

	for i, j := range c.Judges {
		path := fmt.Sprintf("judges[%d]", i)
		r.wideOpen(path, len(j.AllowAddresses), func(k int) int { return j.AllowAddresses[k].Bits() })
		if j.CAFile != "" && j.HTTPS == nil && r.clean(path) {
			r.fail(path+".ca_file", "has no use without https; remove it or add https")
		}
		r.checkKind(path, &c.Judges[i])
	}
	for i, t := range c.Targets {
		path := fmt.Sprintf("targets[%d]", i)
		r.wideOpen(path, len(t.AllowAddresses), func(k int) int { return t.AllowAddresses[k].Bits() })
		if t.CAFile != "" && r.clean(path) && t.URL.Scheme != "https" {
			r.fail(path+".ca_file", "has no use for a url that is not https; remove it")
		}
	}
	for i, o := range c.Sources {
		path := fmt.Sprintf("sources[%d]", i)
		r.wideOpen(path, len(o.AllowAddresses), func(k int) int { return o.AllowAddresses[k].Bits() })
		r.checkRequest(path, &c.Sources[i])
	}
	if c.Redis.URL == "" && r.clean("redis") {
		for key, v := range map[string]string{"username": c.Redis.Username, "password_file": c.Redis.PasswordFile} {
			if v != "" {
				r.warn("redis."+key, "has no use without redis.url: the embedded store has no users")
			}
		}
	}
	for i := range c.Pools {
		path := fmt.Sprintf("pools[%d]", i)
		// The default is for a Redis, and no news; another number was meant.
		if most := c.Pools[i].MaxCandidates; c.Redis.URL == "" && r.clean("redis") && most > alloc.EmbeddedMaxCandidates && most != defaultPool().MaxCandidates {
			r.warn(path+".max_candidates", "is more than the embedded store is meant for (%d); set redis.url", alloc.EmbeddedMaxCandidates)
		}
		r.known(path+".sources", c.Pools[i].Sources, sources, "sources")
		r.known(path+".judges", c.Pools[i].Judges, judges, "judges")
		if names := c.Pools[i].Eligibility.RequireTargets; len(names) > 0 {
			r.knownTargets(path+".eligibility.require_targets", names, targets)
		}
		r.checkPool(path, c, &c.Pools[i])
	}
}

// unique refuses a name that is there twice, and returns all names.
func (r *reader) unique(list string, n int, name func(int) string) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = name(i)
		if first := slices.Index(names[:i], names[i]); first >= 0 && names[i] != "" {
			r.fail(fmt.Sprintf("%s[%d].name", list, i), "is the name of %s[%d] already; choose another", list, first)
		}
	}
	return names
}

// known refuses a pool's reference to what is not there, and an empty list.
func (r *reader) known(path string, refs, names []string, list string) {
	if refs == nil || !r.clean(path) || !r.clean(list) {
		return
	}
	if len(refs) == 0 {
		r.fail(path, "is empty; leave the key out for all %s, or name at least one", list)
	}
	for i, ref := range refs {
		if slices.Contains(names, ref) {
			continue
		}
		if near := nearest(ref, names); near != "" {
			r.fail(fmt.Sprintf("%s[%d]", path, i), "is not one of the %s; did you mean %s?", list, near)
		} else {
			r.fail(fmt.Sprintf("%s[%d]", path, i), "is not one of the %s: %s", list, strings.Join(names, ", "))
		}
	}
}

func (r *reader) wideOpen(path string, n int, bits func(int) int) {
	for i := range n {
		if bits(i) == 0 {
			r.warn(fmt.Sprintf("%s.allow_addresses[%d]", path, i), "opens every address, private ones included; write the prefixes that are meant")
		}
	}
}

func (r *reader) checkPool(path string, c *Config, p *Pool) {
	if interval := p.Probe.Schedule.Interval(); r.clean(path+".probe") && p.Probe.Timeout >= interval {
		r.fail(path+".probe.timeout", "is not shorter than the schedule's interval of %s; shorten it or probe less often", short(interval))
	}
	if e := &p.Eligibility; r.clean(path + ".eligibility") {
		for _, key := range []struct {
			name  string
			empty bool
		}{{"schemes", len(e.Schemes) == 0}, {"require", len(e.Require) == 0}} {
			if key.empty {
				r.fail(path+".eligibility."+key.name, "is empty; leave the key out for the default, or name at least one")
			}
		}
		r.checkLimits(path, p)
		r.provable(path, c, p)
		if n := judgesOf(c, p); p.Eligibility.MinJudges > n && r.clean("judges") && r.clean(path+".judges") {
			r.fail(path+".eligibility.min_judges", "the pool has no more than %d; it would never admit anything", n)
		}
	}
	r.impossible(path, c, p)
	if p.Allocation.Start == "zero" {
		r.warn(path+".allocation.start", "a new proxy takes every allocation until it has caught up; min avoids that")
	}
	if p.Allocation.Restore == "zero" {
		r.warn(path+".allocation.restore", "a proxy that comes back takes every allocation until it has caught up; floor avoids that")
	}
	if p.Allocation.Restore == "keep" {
		r.warn(path+".allocation.restore", "a proxy that was away for long takes every allocation until it has caught up; floor avoids that")
	}
}

// judgesOf is how many judges a pool has.
func judgesOf(c *Config, p *Pool) int {
	if p.Judges == nil {
		return len(c.Judges)
	}
	return len(p.Judges)
}

// askable is how many of a pool's judges show anything that is required. The others
// are not asked, and so are never content.
func (c *Config) askable(p *Pool) (n int) {
	for _, j := range c.Judges {
		if slices.Contains(p.Judges, j.Name) && slices.ContainsFunc(p.Eligibility.Require, j.unopened().Shows) {
			n++
		}
	}
	return n
}

// provable refuses what none of a pool's judges can show: plain requests are
// seen over http only, tunnels over https only.
func (r *reader) provable(path string, c *Config, p *Pool) {
	if !r.clean("judges") || !r.clean(path+".judges") {
		return
	}
	for i, capability := range p.Eligibility.Require {
		shown := slices.ContainsFunc(c.Judges, func(j Judge) bool {
			return (p.Judges == nil || slices.Contains(p.Judges, j.Name)) && j.unopened().Shows(capability)
		})
		if !shown {
			at := fmt.Sprintf("%s.eligibility.require[%d]", path, i)
			if _, written := r.marks[at]; !written {
				at = path + ".eligibility.require"
			}
			key := map[probe.Capability]string{probe.HTTP: "http", probe.TLS: "https"}[capability]
			r.fail(at, "none of the pool's judges shows %s; give one of them %s, or write require without %s", capability, key, capability)
		}
	}
}

// complete fills in what a pool has when the file leaves it out, and warns of
// what no pool uses.
func (r *reader) complete(c *Config) {
	var judges, sources []string
	for i := range c.Pools {
		p := &c.Pools[i]
		if p.Judges == nil {
			for _, j := range c.Judges {
				p.Judges = append(p.Judges, j.Name)
			}
		}
		p.Probe.ConnectTimeout = min(p.Probe.ConnectTimeout, p.Probe.Timeout)
		if p.Eligibility.MinJudges == 0 {
			p.Eligibility.MinJudges = min(2, max(1, c.askable(p)))
		}
		if p.Sources == nil {
			for _, o := range c.Sources {
				p.Sources = append(p.Sources, o.Name)
			}
		}
		judges, sources = append(judges, p.Judges...), append(sources, p.Sources...)
	}
	if len(r.problems) > 0 {
		return
	}
	for i, j := range c.Judges {
		if !slices.Contains(judges, j.Name) {
			r.warn(fmt.Sprintf("judges[%d].name", i), "no pool asks this judge")
		}
	}
	for i, o := range c.Sources {
		if !slices.Contains(sources, o.Name) {
			r.warn(fmt.Sprintf("sources[%d].name", i), "no pool draws on this source")
		}
	}
}
