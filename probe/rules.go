package probe

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// State is what rules make of a round, a result or one condition.
type State string

// The states. For a single condition Inconclusive means that it is not known.
const (
	Pass         State = "pass"
	Fail         State = "fail"
	Inconclusive State = "inconclusive"
)

// DefaultQuarantine is how long a proxy that broke a rule of safety stays out
// where a configuration does not say.
const DefaultQuarantine = 24 * time.Hour

// Rules are a pool's conditions. The zero value requires nothing and is of no
// use: the configuration sees to that. RuleTable says of each what it needs to be
// known and how it acts.
//
// In short: the operator's own word on an address (Banned, Networks, NotNetworks,
// Ports) needs no probe and acts at once, and so does a rule of safety. All else is
// seen by probing, may be seen wrongly, and acts by Fall: a round that breaks it is
// a failure like any other, one alone decides nothing, and the pool's guards hold
// what happens to many at once. What is not known makes a round inconclusive: that
// admits nobody and is held against nobody.
type Rules struct {
	Schemes []proxyurl.Scheme // that may become members, preferred ones first
	Require []Capability      // all of them must be shown

	// Banned are proxies that the operator does not want; nil: none. Neither probed
	// nor admitted; a member is retired at once, which no guard holds.
	Banned Bans
	// Networks are the prefixes that a proxy's own address must be in; empty: all. It
	// is about the address alone that is dialled: where the traffic comes out is
	// ExitCountries' and ExitASNs' business. Acts at once.
	Networks []netip.Prefix
	// NotNetworks are prefixes that a proxy must have nothing to do with: neither its
	// own address may be in them (acts at once) nor that of its exit, as far as a
	// judge tells it (acts by Fall).
	NotNetworks []netip.Prefix
	// Ports are those that a proxy may listen on; empty: all. Acts at once.
	Ports []PortRange

	// MinJudges is how many judges have to be content with a proxy in one round before
	// it is admitted; below 1 counts as 1. A member is asked by one.
	MinJudges int
	// Anonymity is the least that is wanted; "": none. AcceptClaimed lets it rest on
	// answers that nobody signed. A level that is too low is one, signed or not: a
	// proxy is believed what it says against itself.
	Anonymity     Anonymity
	AcceptClaimed bool
	// ExitCountries and ExitASNs are where the traffic must come out, NotCountries and
	// NotASNs where it must not: ISO 3166-1 codes in upper case, numbers of autonomous
	// systems; empty: anywhere. An exit for which the configured file has no entry meets
	// none of them: it is not known to be elsewhere. One that no judge told leaves the
	// round inconclusive. Every exit of a round must meet them.
	ExitCountries, NotCountries []string
	ExitASNs, NotASNs           []uint32
	// RequireTargets are the names of targets that must have been reached. A target is
	// asked now and then: between, its last answer counts, and a failure once only.
	RequireTargets []string

	MaxLatency Latency // over the last rounds that worked
	MinSuccess Success // over the last rounds that told anything
	// MaxExitChanges is how often the exit may have changed over the rounds that a
	// record keeps, within a family of addresses; nil: as often as it likes.
	MaxExitChanges *int
	// MaxAge is how long a member may stay without a pass; 0: as long as it does not
	// fail. It ends what is inconclusive for ever, and is held by the guards, but not
	// by Fall. An answer of a target that is older is not known any more.
	MaxAge time.Duration

	// Quarantine is how long a proxy stays out that broke a rule of safety: it is
	// neither probed nor admitted. 0: no longer than Rise takes.
	Quarantine time.Duration

	Rise int // rounds passed in a row that admit; below 1 counts as 1
	Fall int // rounds failed in a row that retire; below 1 counts as 1
}

// Latency bounds how long the stages of a probe may take; zero limits are none.
// Of a round each stage's slowest check counts, targets aside.
type Latency struct {
	Connect   time.Duration // until the proxy's host has accepted
	FirstByte time.Duration // until the first byte of the judge's answer
	Total     time.Duration // until its last
	Over      int           // so many rounds count, those that worked, newest first: 1 to 20; below 1 counts as 1
	Quantile  Quantile      // of them that must be within the limit; "": P90
}

// Success is the share of rounds that must have worked: those in which the proxy
// did all that was asked for, whatever other rules made of them.
type Success struct {
	Percent int // 1 to 100; 0: no rule
	Over    int // rounds, newest first, as far as there are so many: 1 to 20; below 1 counts as 20
}

// Quantile names a place in a row of figures, by nearest rank: the smallest figure
// that at least so many of them do not exceed.
type Quantile string

// The quantiles. Of few figures P90 is the largest: it takes ten to leave one out.
const (
	P50 Quantile = "p50"
	P90 Quantile = "p90"
	P95 Quantile = "p95"
	Max Quantile = "max"
)

// Quantiles returns the closed list, in ascending order.
func Quantiles() []Quantile { return []Quantile{P50, P90, P95, Max} }

// PortRange is a range of ports, both ends within it.
type PortRange struct{ First, Last uint16 }

// ParsePortRange reads "8080" or "8000-8999", from 1 to 65535.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	var r PortRange
	var err1, err2 error
	r.First, err1 = proxyurl.ParsePort(first)
	r.Last, err2 = proxyurl.ParsePort(last)
	if err1 != nil || err2 != nil || r.First > r.Last {
		return PortRange{}, fmt.Errorf("expected a port or a range of them, such as 8080 or 8000-8999")
	}
	return r, nil
}

// Contains says whether a port is in the range.
func (r PortRange) Contains(port uint16) bool { return r.First <= port && port <= r.Last }

// String is what ParsePortRange reads.
func (r PortRange) String() string {
	if r.First == r.Last {
		return strconv.Itoa(int(r.First))
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Reason is one condition and how it stands.
type Reason struct {
	Rule  string // a name of RuleTable; "require" with what is required: "require http"
	State State
	Text  string // a few words, escaped
}

// String is the reason in one line: "require tls: fail: tls_failed at tls".
func (r Reason) String() string { return fmt.Sprintf("%s: %s: %s", r.Rule, r.State, r.Text) }

// runs returns rise and fall.
func (r Rules) runs() (rise, fall int) { return max(r.Rise, 1), max(r.Fall, 1) }
