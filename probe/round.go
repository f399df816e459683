package probe

import (
	"context"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// Round probes an endpoint by each scheme in turn until one is ok or no other can
// do better: the endpoint cannot be dialled, is hostile, or the fault is ours. The
// results are one slice's round for Rules.Judge and Record.After. It blocks for at
// most the time limit for each question, and for as long as this host has no time
// for it. Whatever a proxy does, it is a Result; a cancelled context gives
// Cancelled.
func (p *Prober) Round(ctx context.Context, plan Plan, job Job) []Result {
	round := make([]Result, 0, len(job.Schemes))
	for _, scheme := range job.Schemes {
		v := visit{p: p, plan: &plan, job: &job}
		v.way = way{proxy: proxyurl.URL{Scheme: scheme, Endpoint: job.Endpoint}, allow: job.Allow, seen: &plan.seen, trace: job.Trace}
		v.result = Result{Proxy: v.way.proxy, At: time.Now(), Outcome: Unknown, Checks: make([]Check, 0, len(plan.first))}
		v.run(ctx)
		round = append(round, v.result)
		switch v.result.Outcome.Class() {
		case ClassOK, ClassLocal, ClassSecurity:
			return round
		}
		if v.result.Last().Stage == StageDial || v.result.Outcome == Disputed || v.result.Outcome == TooFewJudges {
			return round
		}
	}
	return round
}

// visit is one probe: an endpoint, by one scheme.
type visit struct {
	p      *Prober
	plan   *Plan
	job    *Job
	way    way
	result Result
}

// run goes from cheap to dear, and ends with the first that is not ok: for each
// required capability the first judge that shows it, then further judges until
// enough were content, then targets.
func (v *visit) run(ctx context.Context) {
	for _, a := range v.plan.first {
		if v.ask(ctx, a) != OK {
			v.confirm(ctx, a)
			return
		}
	}
	if len(v.plan.first) == 0 {
		return // nothing was asked
	}
	if !v.job.Member && !v.convince(ctx) {
		return
	}
	v.explore(ctx)
	for _, a := range v.plan.targets {
		if slices.Contains(v.job.Targets, a.target.Name) {
			v.askTarget(ctx, a)
		}
	}
}

// askTarget asks a target if its turn has come.
func (v *visit) askTarget(ctx context.Context, a *ask) {
	if v.job.Turn != nil {
		done := v.job.Turn(a.target.Name)
		if done == nil {
			return
		}
		defer done()
	}
	v.result.Targets = append(v.result.Targets, v.p.ask(ctx, &v.way, a, nil))
}

// ask asks one question and takes down what it shows.
func (v *visit) ask(ctx context.Context, a *ask) Outcome {
	c := v.p.ask(ctx, &v.way, a, nil)
	if c.Outcome == SOCKSRefused && c.names && !v.way.byAddress {
		v.askByAddress(ctx, a, &c)
	}
	v.result.Checks = append(v.result.Checks, c)
	v.result.add(c)
	v.result.Outcome = c.Outcome
	return c.Outcome
}

// askByAddress asks again: it may be the name that the proxy does not take. Who resolves
// is found out so.
func (v *visit) askByAddress(ctx context.Context, a *ask, c *Check) {
	other := v.way
	other.byAddress = true
	if again := v.p.ask(ctx, &other, a, nil); again.Outcome != SOCKSRefused {
		v.way, *c = other, again
	}
}

// confirm has a member's failure looked at by another judge, and what breaks a rule of
// safety whoever it is: where many at once do so to one judge alone, it is that judge
// who is not what it was. What happened before a judge came into play needs no other.
// Safety is not undone here by a judge who was treated better.
func (v *visit) confirm(ctx context.Context, failed *ask) {
	first := v.result.Outcome
	hostile := first.Class() == ClassSecurity
	if !hostile && (!v.job.Member || first.Class() != ClassProxy) || v.result.Last().Stage == StageDial {
		return
	}
	other := v.plan.another(failed.capability, []string{failed.judge.Name})
	if other == nil {
		return
	}
	second := v.ask(ctx, other).Class()
	switch {
	case hostile, second == ClassProxy:
		v.result.Outcome = first
	case second == ClassOK:
		v.result.Outcome = Disputed
	}
}

// convince asks further judges until enough were content, each for all that it
// shows. false: one was not, or there are not enough.
func (v *visit) convince(ctx context.Context) bool {
	var content []string
	for _, a := range v.plan.first {
		if !slices.Contains(content, a.judge.Name) {
			content = append(content, a.judge.Name)
		}
	}
	for _, j := range v.plan.judges {
		if len(content) >= v.plan.min {
			break
		}
		if slices.Contains(content, j.name) {
			continue
		}
		for _, a := range j.asks {
			if v.ask(ctx, a) != OK {
				return false
			}
		}
		content = append(content, j.name)
	}
	if len(content) < v.plan.min {
		v.result.Outcome = TooFewJudges
		return false
	}
	return v.result.Outcome == OK
}

// explore finds out whether a SOCKS 4 proxy takes names, too. It is no proof of
// anything required, and so no check of the result.
func (v *visit) explore(ctx context.Context) {
	if v.job.Member || v.way.proxy.Scheme != proxyurl.SOCKS4 {
		return
	}
	a := v.plan.first[0]
	if a.to.addr.IsValid() {
		return // the judge has no name
	}
	by := v.way
	by.proxy.Scheme = proxyurl.SOCKS4A
	if c := v.p.ask(ctx, &by, a, nil); c.Outcome == OK {
		v.result.Found |= c.Found
	}
}

// add takes down what a check showed. A signed answer counts before one that is
// claimed; of equals the lowest anonymity counts.
func (r *Result) add(c Check) {
	r.Latency = max(r.Latency, c.Total)
	r.Found |= c.Found
	if c.Exit.IsValid() && (!r.Exit.IsValid() || c.Verified && !r.Verified) {
		r.Exit = c.Exit
	}
	better := c.Verified && !r.Verified
	if c.Anonymity != "" && (better || c.Verified == r.Verified && c.Anonymity.below(r.Anonymity)) {
		r.Anonymity = c.Anonymity
	}
	r.Verified = r.Verified || c.Verified && (c.Anonymity != "" || r.Anonymity == "")
}

// below says whether a is lower than b; everything is lower than what is unknown.
func (a Anonymity) below(b Anonymity) bool {
	order := []Anonymity{Transparent, Anonymous, Elite, ""}
	return slices.Index(order, a) < slices.Index(order, b)
}
