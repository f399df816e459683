package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// leastLatency is less than a connection takes on loopback.
const leastLatency = 10 * time.Microsecond

// Means are what a pool can find out with.
type Means struct {
	Judges  []JudgeMeans
	Country bool           // geoip.country is configured
	ASN     bool           // geoip.asn is configured
	Targets []string       // the names of the targets that are asked
	Allow   proxyurl.Allow // what the pool's sources open beyond public addresses
}

// JudgeMeans is what one judge can show.
type JudgeMeans struct {
	Name      string
	HTTP, TLS bool // the capability
	Exit      bool // its answers tell the address that they went to: our own and echo judges' do
	Headers   bool // its answers over http tell the headers
	Signed    bool // it signs them
}

// Impossible says under which rules nothing can ever become a member, with the
// reason and what to change; empty: none is known. It knows what contradicts itself,
// and what nobody can show: a pool that stays empty for such a reason looks like one
// whose lists are bad.
func (r Rules) Impossible(m Means) (why []Reason) {
	no := func(impossible bool, rule, format string, args ...any) {
		if impossible {
			why = append(why, Reason{rule, Fail, fmt.Sprintf(format, args...)})
		}
	}
	judge := func(can func(JudgeMeans) bool) bool { return slices.ContainsFunc(m.Judges, can) }
	no(len(r.Schemes) == 0, ruleSchemes, "there is no scheme by which a proxy may be spoken to")
	for _, c := range r.Require {
		no(!judge(func(j JudgeMeans) bool { return j.shows(c) }), ruleRequire(c), "no judge shows it")
	}
	r.impossibleAddresses(m, no)
	if r.Anonymity != "" {
		tells := func(j JudgeMeans) bool { return j.HTTP && j.Headers }
		no(!slices.Contains(r.Require, HTTP), ruleAnonymity, "headers are seen over plain http only, and require has no http")
		no(!judge(tells), ruleAnonymity, "no judge on http tells the headers; configure one of your own (evenpool judge), or an echo judge")
		no(judge(tells) && !r.AcceptClaimed && !judge(func(j JudgeMeans) bool { return tells(j) && j.Signed }),
			ruleAnonymity, "no judge on http signs its answers; give yours a key_file, or accept what is claimed")
	}
	exit := judge(func(j JudgeMeans) bool { return j.Exit })
	for _, rule := range []struct {
		name, needs string
		set, known  bool
	}{
		{ruleExitCountries, "geoip.country", len(r.ExitCountries) > 0, m.Country},
		{ruleNotCountries, "geoip.country", len(r.NotCountries) > 0, m.Country},
		{ruleExitASNs, "geoip.asn", len(r.ExitASNs) > 0, m.ASN},
		{ruleNotASNs, "geoip.asn", len(r.NotASNs) > 0, m.ASN},
		{ruleMaxExitChanges, "", r.MaxExitChanges != nil, true},
	} {
		no(rule.set && !exit, rule.name, "no judge tells where traffic comes out; configure one of your own (evenpool judge), or an echo judge")
		no(rule.set && !rule.known, rule.name, "there is no %s to look exits up in", rule.needs)
	}
	no(allIn(r.ExitCountries, r.NotCountries), ruleExitCountries, "all of them are among not_countries")
	no(allIn(r.ExitASNs, r.NotASNs), ruleExitASNs, "all of them are among not_asns")
	no(r.MaxExitChanges != nil && *r.MaxExitChanges < 0, ruleMaxExitChanges, "an exit cannot change less than never")
	for _, limit := range []time.Duration{r.MaxLatency.Connect, r.MaxLatency.FirstByte, r.MaxLatency.Total} {
		no(limit > 0 && limit < leastLatency, ruleMaxLatency, "no network answers within %s; a limit is at least %s", limit, leastLatency)
	}
	no(r.MinSuccess.Percent > 100, ruleMinSuccess, "%d%% is more than all rounds", r.MinSuccess.Percent)
	var names []string
	for _, j := range m.Judges {
		if !slices.Contains(names, j.Name) && slices.ContainsFunc(r.Require, j.shows) {
			names = append(names, j.Name)
		}
	}
	no(r.MinJudges > len(names), ruleMinJudges, "%d are wanted, and %d can be asked for what is required", r.MinJudges, len(names))
	for _, name := range r.RequireTargets {
		no(!slices.Contains(m.Targets, name), ruleTargets, "%s is no target that is asked", proxyurl.Escape(name, 40))
	}
	return why
}

func (j JudgeMeans) shows(c Capability) bool { return c == HTTP && j.HTTP || c == TLS && j.TLS }

// impossibleAddresses is about what needs no probe.
func (r Rules) impossibleAddresses(m Means, no func(bool, string, string, ...any)) {
	excluded, forbidden := len(r.Networks) > 0, len(r.Networks) > 0
	for _, p := range r.Networks {
		excluded = excluded && covered(r.NotNetworks, p)
		forbidden = forbidden && neverDialled(p) && !slices.ContainsFunc(m.Allow, p.Overlaps)
	}
	no(excluded, ruleNetworks, "all of them are within not_networks")
	no(forbidden, ruleNetworks, "none of them may be dialled: they are not public, and no source of the pool has them in allow_addresses")
	// Of IPv6, nothing else is public.
	dialled := append([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("2000::/3")}, m.Allow...)
	no(!slices.ContainsFunc(dialled, func(p netip.Prefix) bool { return !covered(r.NotNetworks, p) }),
		ruleNotNetworks, "every address is within them")
	never := len(r.Ports) > 0 && len(m.Allow) == 0
	for _, p := range r.Ports {
		for port := int(p.First); port <= int(p.Last) && never; port++ {
			never = proxyurl.NeverProxyPort(uint16(port))
		}
	}
	no(never, rulePorts, "a list that names %s is not believed: other services are there", ports(r.Ports))
}

// covered says whether all of p is within the prefixes of a list together, such as a
// network whose two halves are there.
func covered(list []netip.Prefix, p netip.Prefix) bool {
	inside := false
	for _, outer := range list {
		if outer.Bits() <= p.Bits() && outer.Contains(p.Addr()) {
			return true
		}
		inside = inside || p.Overlaps(outer)
	}
	if !inside {
		return false
	}
	upper := p.Addr().AsSlice()
	upper[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	second, _ := netip.AddrFromSlice(upper)
	return covered(list, netip.PrefixFrom(p.Addr(), p.Bits()+1)) && covered(list, netip.PrefixFrom(second, p.Bits()+1))
}

// neverDialled says whether all of a prefix is of one kind that is not public; of one
// that is of several it says no.
func neverDialled(p netip.Prefix) bool {
	if p.Bits() < 3 {
		return false
	}
	last := p.Addr().AsSlice()
	for bit := p.Bits(); bit < p.Addr().BitLen(); bit++ {
		last[bit/8] |= 0x80 >> (bit % 8)
	}
	end, _ := netip.AddrFromSlice(last)
	first, forbidden := proxyurl.Forbidden(p.Addr())
	why, too := proxyurl.Forbidden(end)
	return forbidden && too && first == why
}

func allIn[T comparable](list, other []T) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(v T) bool { return !slices.Contains(other, v) })
}
