package probe

import (
	"net/netip"
	"slices"

	"evenpool/sources/proxyurl"
)

// PlanOptions say what a slice asks.
type PlanOptions struct {
	Judges    []Judge      // all that the pool has, preferred ones first
	Require   []Capability // what a proxy has to show
	MinJudges int          // how many judges have to be content before a proxy may become a member; 0: 2 where as many show something required, else 1
	Targets   []Target     // what jobs may ask
	Seen      Seen         // by control probes: our own addresses, and what headers the judges receive from us
	// Well says which judges may be asked; nil: all of them.
	Well func(judge string, c Capability) bool
}

// Plan is what a slice asks, made once from the judges that are well. It is shared
// by all probes of the slice.
type Plan struct {
	judges  []planned // well ones that show anything required, preferred ones first
	first   []*ask    // for each required capability the first judge's question, cheap ones first
	min     int
	targets []*ask
	seen    Seen
}

// planned is a judge and the questions to it, cheap ones first.
type planned struct {
	name string
	asks []*ask
}

// NewPlan makes the questions ready. What no judge that is well can show is
// returned in missing: without it nothing may be probed. An error is a judge or
// target that cannot be asked at all, however well.
func NewPlan(o PlanOptions) (plan Plan, missing []Capability, err error) {
	plan = Plan{min: o.MinJudges, seen: o.Seen}
	if plan.min <= 0 {
		useful := 0
		for _, j := range o.Judges {
			if slices.ContainsFunc(o.Require, j.Shows) {
				useful++
			}
		}
		plan.min = min(2, max(1, useful))
	}
	for _, j := range o.Judges {
		known := planned{name: j.Name}
		for _, c := range Capabilities() {
			if !slices.Contains(o.Require, c) || !j.Shows(c) || o.Well != nil && !o.Well(j.Name, c) {
				continue
			}
			a, err := newAsk(j, c)
			if err != nil {
				return Plan{}, nil, err
			}
			known.asks = append(known.asks, a)
		}
		if len(known.asks) > 0 {
			plan.judges = append(plan.judges, known)
		}
	}
	for _, c := range Capabilities() {
		if !slices.Contains(o.Require, c) {
			continue
		}
		if a := plan.another(c, nil); a != nil {
			plan.first = append(plan.first, a)
		} else {
			missing = append(missing, c)
		}
	}
	for _, t := range o.Targets {
		a, err := newTargetAsk(t)
		if err != nil {
			return Plan{}, nil, err
		}
		plan.targets = append(plan.targets, a)
	}
	return plan, missing, nil
}

// another returns the question for a capability to the first judge that is not
// among those asked; nil for none.
func (p Plan) another(c Capability, asked []string) *ask {
	for _, j := range p.judges {
		if slices.Contains(asked, j.name) {
			continue
		}
		for _, a := range j.asks {
			if a.capability == c {
				return a
			}
		}
	}
	return nil
}

// Job is one endpoint to be probed.
type Job struct {
	Endpoint proxyurl.Endpoint
	Schemes  []proxyurl.Scheme // to be tried, in this order
	Allow    proxyurl.Allow    // prefixes beyond public unicast that it may be at
	Member   bool              // it is one now: it is asked by one judge, and a failure is confirmed by another
	Targets  []string          // names of those that it is to be asked for
	// Turn takes a target's turn, at the moment in which it would be asked: nil for one
	// whose turn it is not, else what is called when the answer is there. A nil Turn
	// gives every turn.
	Turn  func(target string) (done func())
	Trace Trace // nil: nobody is told what is said
}

// Trace is called when a question begins, with what the check has by then: whom it
// asks, for what. What it returns is told what is sent and received on the way, what
// is within TLS in plain. The bytes are a peer's, unescaped, and not to be kept. All
// of it is called by the goroutine that called Round.
type Trace func(scheme proxyurl.Scheme, question Check) (said func(sent bool, data []byte))

// way is how a question goes to where it is asked.
type way struct {
	proxy     proxyurl.URL // zero: directly
	allow     proxyurl.Allow
	byAddress bool       // the proxy is given an address in place of a name
	addr      netip.Addr // directly: the one to be dialled; invalid: whichever the name has
	seen      *Seen
	trace     Trace
}
