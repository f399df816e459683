package probe

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// Bar is why an endpoint is not to be probed, nor to be a member.
type Bar struct {
	Reasons []Reason  // all of them; none where nothing bars it
	Until   time.Time // when quarantine ends, where nothing else bars it; else zero: for as long as rules and claims stand
}

// Bars says whether there are any.
func (b Bar) Bars() bool { return len(b.Reasons) > 0 }

// Decision is what follows for the endpoint without a probe: a member is retired,
// and no guard holds that.
func (b Bar) Decision(rec Record) Decision {
	if !b.Bars() || rec.Member == "" {
		return Decision{Action: Keep}
	}
	return Decision{Action: Retire, Member: rec.Member, AtOnce: true, Reason: b.Reasons[0].Rule + ": " + b.Reasons[0].Text}
}

// Bar looks at what needs no probe: whether the operator wants the endpoint at all,
// and whether it is in quarantine. It is cheap, and is asked before an endpoint is
// offered or probed.
func (r Rules) Bar(e proxyurl.Endpoint, rec Record, now time.Time) (b Bar) {
	for _, reason := range r.standing(e, rec, now) {
		if reason.State == Fail {
			b.Reasons = append(b.Reasons, reason)
		}
	}
	if len(b.Reasons) == 1 && b.Reasons[0].Rule == ruleQuarantine {
		b.Until = rec.Offended.Add(r.Quarantine)
	}
	return b
}

// standing gives all reasons that need no probe, as far as there are such rules.
func (r Rules) standing(e proxyurl.Endpoint, rec Record, now time.Time) (reasons []Reason) {
	add := func(rule string, met bool, text string) {
		state := Fail
		if met {
			state = Pass
		}
		reasons = append(reasons, Reason{rule, state, text})
	}
	// Only a claim that leaves nothing open keeps one from being probed. A member that
	// speaks a scheme which is not wanted any more may speak another.
	if len(r.TryOrder(rec)) == 0 {
		add(ruleSchemes, false, "claimed: "+join(rec.Schemes)+"; wanted: "+join(r.Schemes))
	}
	addr, isAddr := e.Addr()
	if r.Banned != nil {
		entry, banned := r.Banned.Contains(e)
		text := "not among the banned"
		if banned {
			text = entry + " is banned"
		}
		add(ruleBanned, !banned, text)
	}
	if len(r.Networks) > 0 {
		text := "a name: looked at when it is dialled"
		p, in := within(r.Networks, addr)
		switch {
		case isAddr && in:
			text = addr.String() + " is in " + p.String()
		case isAddr:
			text = addr.String() + " is in none of " + prefixes(r.Networks)
		}
		add(ruleNetworks, !isAddr || in, text)
	}
	if len(r.NotNetworks) > 0 {
		text := "a name: looked at when it is dialled"
		p, in := within(r.NotNetworks, addr)
		if isAddr {
			text = addr.String() + " is in none of " + prefixes(r.NotNetworks)
		}
		if isAddr && in {
			text = addr.String() + " is in " + p.String()
		}
		add(ruleNotNetworks, !isAddr || !in, text)
	}
	if len(r.Ports) > 0 {
		met := slices.ContainsFunc(r.Ports, func(p PortRange) bool { return p.Contains(e.Port()) })
		text := fmt.Sprintf("%d is among %s", e.Port(), ports(r.Ports))
		if !met {
			text = fmt.Sprintf("%d is not among %s", e.Port(), ports(r.Ports))
		}
		add(rulePorts, met, text)
	}
	if r.Quarantine > 0 {
		until := rec.Offended.Add(r.Quarantine)
		switch {
		case rec.Offended.IsZero():
			add(ruleQuarantine, true, "it broke no rule of safety")
		case now.Before(until):
			add(ruleQuarantine, false, "until "+until.UTC().Format(time.RFC3339)+": it broke a rule of safety")
		default:
			add(ruleQuarantine, true, "over since "+until.UTC().Format(time.RFC3339))
		}
	}
	return reasons
}

// Admit says whether an address may be dialled that a proxy's name led to: rules
// about addresses would else be passed by in giving them a name. It is a
// proxyurl.Dialer's Admit; an error names the rule.
func (r Rules) Admit(addr netip.Addr) error {
	addr = addr.Unmap()
	if r.Banned != nil {
		if entry, banned := r.Banned.ContainsAddr(addr); banned {
			return &ExcludedError{Reason{ruleBanned, Fail, entry + " is banned"}}
		}
	}
	if _, in := within(r.Networks, addr); len(r.Networks) > 0 && !in {
		return &ExcludedError{Reason{ruleNetworks, Fail, addr.String() + " is in none of " + prefixes(r.Networks)}}
	}
	if p, in := within(r.NotNetworks, addr); in {
		return &ExcludedError{Reason{ruleNotNetworks, Fail, addr.String() + " is in " + p.String()}}
	}
	return nil
}

// ExcludedError says that an address is one that the rules do not want.
type ExcludedError struct{ Reason Reason }

// Error is "banned: 1.2.3.0/24 is banned".
func (e *ExcludedError) Error() string { return e.Reason.Rule + ": " + e.Reason.Text }

// within returns the first prefix that an address is in.
func within(list []netip.Prefix, addr netip.Addr) (p netip.Prefix, in bool) {
	addr = addr.Unmap()
	for _, p := range list {
		if p.Contains(addr) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// shownItems is how many items of a list a reason names.
const shownItems = 8

func several[T any](list []T, text func(T) string) string {
	var texts []string
	for _, v := range list[:min(len(list), shownItems)] {
		texts = append(texts, text(v))
	}
	if more := len(list) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

func prefixes(list []netip.Prefix) string { return several(list, netip.Prefix.String) }

func ports(list []PortRange) string { return several(list, PortRange.String) }

func asns(list []uint32) string {
	return several(list, func(n uint32) string { return fmt.Sprintf("AS%d", n) })
}

func texts(list []string) string { return several(list, func(s string) string { return s }) }
