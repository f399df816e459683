package probe

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"evenpool/sources/proxyurl"
)

// Control asks a judge directly, and returns what it saw of us. What a proxy would
// be blamed for is the judge's fault here. A judge that has IPv4 and IPv6 addresses
// is asked by both at once, since it sees another address of ours by each; one of
// them that is well is enough. It blocks for at most the time limit.
func (p *Prober) Control(ctx context.Context, j Judge, c Capability) (Check, Seen) {
	a, err := newAsk(j, c)
	if err != nil {
		return Check{Judge: j.Name, Capability: c, Outcome: Unknown, Detail: proxyurl.Escape(err.Error(), maxDetail)}, Seen{}
	}
	ways := p.directWays(ctx, a)
	checks := make([]Check, len(ways))
	seen := make([]Seen, len(ways))
	var group sync.WaitGroup
	for i := range ways[1:] {
		group.Go(func() { checks[i+1], seen[i+1] = p.control(ctx, ways[i+1], a) })
	}
	checks[0], seen[0] = p.control(ctx, ways[0], a)
	group.Wait()
	best, all := 0, Seen{}
	for i := range checks {
		if checks[i].Outcome == OK {
			all.Add(seen[i])
			if checks[best].Outcome != OK {
				best = i
			}
		}
	}
	return checks[best], all
}

// ControlTarget asks a target directly: whether it is to be had at all.
func (p *Prober) ControlTarget(ctx context.Context, t Target) Check {
	a, err := newTargetAsk(t)
	if err != nil {
		return Check{Target: t.Name, Outcome: Unknown, Detail: proxyurl.Escape(err.Error(), maxDetail)}
	}
	c, _ := p.control(ctx, way{allow: t.Allow}, a)
	return c
}

func (p *Prober) control(ctx context.Context, w way, a *ask) (Check, Seen) {
	var seen Seen
	w.allow = a.allow
	c := p.ask(ctx, &w, a, func(said witness) {
		if said.exit.IsValid() {
			seen.Own = []netip.Addr{said.exit}
		}
		for name := range said.headers {
			seen.addHeader(a.judge.Name, name)
		}
	})
	c.Outcome = asJudge(c.Outcome)
	return c, seen
}

// directWays returns one way for each family of addresses that a judge has which
// can tell what it saw.
func (p *Prober) directWays(ctx context.Context, a *ask) []way {
	one := []way{{}}
	if a.to.addr.IsValid() || a.judge.Expect != nil {
		return one
	}
	limited, cancel := context.WithTimeout(ctx, p.options.Timeout/2)
	defer cancel()
	addrs, err := a.resolve(limited, p.options.Resolver)
	if err != nil {
		return one // the dial will say why
	}
	var ways []way
	for _, addr := range addrs {
		if !slices.ContainsFunc(ways, func(w way) bool { return w.addr.Is4() == addr.Is4() }) {
			ways = append(ways, way{addr: addr})
		}
	}
	if len(ways) < 2 {
		return one
	}
	return ways
}
