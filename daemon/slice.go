package daemon

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// item is one claimed endpoint on its way through a slice.
type item struct {
	claimed  alloc.Claimed
	endpoint proxyurl.Endpoint
	record   probe.Record // before the slice, then after it
	isMember bool         // it was a member before the slice
	wasGood  bool         // and its last round did not fail
	waits    bool         // it comes back in this cycle, for targets' turns
	begun    bool         // its round was begun
	probed   bool         // its round was carried out, and nobody cancelled it
	turn     int          // it waits for so many runs behind its neighbours; 0: it does not
	round    probe.Round
	decision probe.Decision
}

// slice asks the judges, probes what was claimed, asks the judges again, and
// settles what can be said. If no judge answers rightly at one of the ends, the
// slice is void: its claims are given back and nothing is held against anybody.
func (c *cycle) slice(ctx context.Context, claimed []alloc.Claimed, members bool) error {
	items := c.items(claimed)
	if !members {
		var err error
		if items, err = c.settleBarred(ctx, items); err != nil || len(items) == 0 {
			return err
		}
		if items, err = c.putOffFloods(ctx, items); err != nil || len(items) == 0 {
			return err
		}
	}
	before := c.control(ctx)
	if ctx.Err() != nil { // a judge that was not heard to the end is not ill
		return c.release(ctx, items, at(time.Now()))
	}
	plan, missing, err := c.plan(before.well)
	if err != nil {
		return errors.Join(err, c.release(ctx, items, at(time.Now())))
	}
	if len(missing) > 0 {
		return c.void(ctx, items, "before", missing)
	}
	c.probe(ctx, items, plan)
	after := c.control(ctx)
	if ctx.Err() != nil {
		return c.release(ctx, items, at(time.Now()))
	}
	lies := c.liars(items)
	well := func(judge string, capability probe.Capability) bool {
		return !lies[judge] && before.well(judge, capability) && after.well(judge, capability)
	}
	if _, missing, _ := c.plan(well); len(missing) > 0 {
		return c.void(ctx, items, "after", missing)
	}
	c.decide(items, well)
	if members {
		if frozen := c.holdBack(items); !frozen.Equal(c.frozen) {
			if err := c.store.SetMeta(ctx, map[string]string{metaFrozenSince: timeMeta(frozen)}); err != nil {
				return errors.Join(err, c.release(ctx, items, at(time.Now())))
			}
			c.frozen = frozen
		}
	}
	return c.settleItems(ctx, items, members)
}

// plan is what a slice asks, of the judges that are well.
func (c *cycle) plan(well func(string, probe.Capability) bool) (probe.Plan, []probe.Capability, error) {
	targets := make([]probe.Target, len(c.targets))
	for i, t := range c.targets {
		targets[i] = t.Target
	}
	return probe.NewPlan(probe.PlanOptions{Judges: c.judges, Require: c.rules.Require,
		MinJudges: c.rules.MinJudges, Targets: targets, Seen: c.seen, Well: well})
}

// items reads what was claimed. A record that cannot be read begins anew.
func (c *cycle) items(claimed []alloc.Claimed) []*item {
	items := make([]*item, 0, len(claimed))
	for _, cl := range claimed {
		it := &item{claimed: cl}
		var err error
		if it.endpoint, err = proxyurl.ParseEndpoint(cl.Endpoint); err != nil {
			c.log.Warn("what is due is no endpoint; it is forgotten", "endpoint", proxyurl.Escape(cl.Endpoint, 80))
			items = append(items, it)
			continue
		}
		if len(cl.Record) > 0 {
			if it.record, err = probe.DecodeRecord(cl.Record); err != nil {
				c.log.Warn("a record that cannot be read begins anew", "endpoint", it.endpoint.Redacted(), "err", err)
				it.record = probe.Record{FirstSeen: c.start}
			}
		}
		it.record = c.named(it.endpoint, it.record)
		it.isMember = it.record.Member != ""
		it.wasGood = it.isMember && it.record.Fails == 0
		items = append(items, it)
	}
	return items
}

// probe carries out the items' rounds, in random order, so many at once as is
// configured. It begins none after the slice's time, and cancels those that are
// under way when the cycle's time for probing is over.
func (c *cycle) probe(ctx context.Context, items []*item, plan probe.Plan) {
	ctx, cancel := context.WithDeadline(ctx, c.probeUntil)
	defer cancel()
	sliceEnd := time.Now().Add(sliceTime)
	queue := make(chan *item)
	var workers sync.WaitGroup
	for range min(c.cfg.Probe.Concurrency, len(items)) {
		workers.Go(func() {
			for it := range queue {
				c.probeItem(ctx, it, plan)
			}
		})
	}
	for _, i := range c.random.Perm(len(items)) {
		if ctx.Err() != nil || time.Now().After(sliceEnd) {
			break
		}
		if !items[i].endpoint.IsZero() {
			items[i].begun = true
			queue <- items[i]
		}
	}
	close(queue)
	workers.Wait()
	for _, it := range items {
		if !it.begun {
			c.notAsked(it)
		}
	}
}

// probeItem carries out one item's round. A panic is a bug of ours and held
// against nobody; outside this goroutine nobody could catch it.
func (c *cycle) probeItem(ctx context.Context, it *item, plan probe.Plan) {
	defer func() {
		if p := recover(); p != nil {
			it.round = probe.Round{At: time.Now(), Results: []probe.Result{{Outcome: probe.Unknown}}}
			it.probed = true
			c.log.Error("a probe panicked", "endpoint", it.endpoint.Redacted(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	job := probe.Job{Endpoint: it.endpoint, Schemes: c.rules.TryOrder(it.record), Allow: c.allow(it.record), Member: it.isMember,
		Targets: c.sendTo(it), Turn: func(name string) func() { return c.target(name).turn() }}
	it.round.Results = c.prober.Round(c.admitting(ctx, it, job.Allow), plan, job)
	it.round.At, it.round.Geo = time.Now(), c.geo.Geo()
	c.reached(it)
	it.probed = ctx.Err() == nil && it.turn == 0
}

// decide applies the rules to what was seen.
func (c *cycle) decide(items []*item, well func(string, probe.Capability) bool) {
	for _, it := range items {
		if !it.probed {
			continue
		}
		c.proven(it)
		it.round.Verdict = c.rules.Judge(it.record, it.round, well)
		it.record = it.record.After(it.round)
		it.decision = c.rules.Decide(it.record, it.round.Verdict)
		for _, r := range it.round.Results {
			c.report.Outcomes[string(r.Outcome)]++
		}
		switch it.round.Verdict.State {
		case probe.Pass:
			c.report.Passed++
		case probe.Fail:
			c.report.Failed++
		default:
			c.report.Inconclusive++
		}
	}
}

// settleItems writes the verdicts into the store.
func (c *cycle) settleItems(ctx context.Context, items []*item, members bool) error {
	now := time.Now()
	batch := make([]alloc.Settlement, 0, len(items))
	for _, it := range items {
		batch = append(batch, c.settlement(it, now))
		switch {
		case it.turn > 0:
			c.report.PutOff++
		case it.probed && members:
			c.report.ProbedMembers++
		case it.probed && !c.newcomers[it.claimed.Endpoint]:
			c.report.ProbedCandidates++
		}
	}
	settled, err := c.store.Settle(ctx, batch, c.settle)
	for i, s := range settled {
		it := items[i]
		if s.Stale {
			c.log.Debug("a newer verdict stands", "endpoint", it.endpoint.Redacted())
			continue
		}
		switch s.Change {
		case alloc.ChangeAdmitted:
			c.report.Admitted++
		case alloc.ChangeRetired:
			c.report.Retired++
		}
		if s.Change != alloc.ChangeNone {
			c.log.Debug("settled", "endpoint", it.endpoint.Redacted(), "change", s.Change, "reason", batch[i].Reason,
				"count_before", s.CountBefore, "count_after", s.CountAfter, "policy", s.Policy)
		}
		if it.waits || it.record.Member == "" && it.probed && it.record.Passes > 0 && it.record.Passes < c.rules.Rise {
			c.pending[it.claimed.Endpoint] = batch[i].Due
			c.newcomers[it.claimed.Endpoint] = true
		}
	}
	if err != nil {
		return errors.Join(err, c.release(ctx, items[len(settled):], at(now)))
	}
	return nil
}

// settlement is what the store is told of one item; it also brings the record up
// to what is decided.
func (c *cycle) settlement(it *item, now time.Time) alloc.Settlement {
	s := alloc.Settlement{Endpoint: it.claimed.Endpoint, Version: it.claimed.Version, Due: now, Action: alloc.Keep}
	switch {
	case it.endpoint.IsZero():
		s.Action = alloc.Forget
		return s
	case it.turn > 0:
		s.Due = c.turnDue(it)
		return s
	case !it.probed:
		return s
	}
	switch it.decision.Action {
	case probe.Admit, probe.Move:
		s.Action, s.Member, s.Previous = alloc.Admit, it.decision.Member, it.decision.Previous
		it.record.Member = s.Member
	case probe.Retire:
		s.Action, s.Member = alloc.Retire, it.decision.Member
		it.record.Member = ""
	}
	s.Reason = it.decision.Reason
	s.Due = nextProbe(dueInput{
		now: now, nextRun: c.next, interval: c.cfg.Probe.Schedule.Interval(),
		member: it.record.Member != "", passes: it.record.Passes, fails: it.record.Fails,
		works: len(it.record.Rounds) > 0 && it.record.Rounds[0].Worked,
		rise:  c.rules.Rise, confirmAfter: c.cfg.Probe.ConfirmAfter, spread: c.grace,
	}, c.random)
	if bar := c.rules.Bar(it.endpoint, it.record, now); bar.Bars() {
		s.Due = c.barDue(bar)
	} else if at, ok := c.comeBack(it, now); ok {
		s.Due, it.waits = at, true
	}
	s.Record = it.record.Encode()
	return s
}

// void gives a slice's claims back, to be asked again in the next cycle.
func (c *cycle) void(ctx context.Context, items []*item, end string, missing []probe.Capability) error {
	c.report.VoidSlices++
	if c.guardState == api.GuardNormal {
		c.guardState = api.GuardVoid
		c.guardWhy = "no judge answered rightly " + end + " a slice, for " + string(missing[0]) + ": nothing was admitted or retired"
	}
	return c.release(ctx, items, func() time.Time { return shortlyBefore(c.next, c.grace, c.random) })
}

// release gives claims back without a word on the endpoints. It is done even when
// the daemon is stopping: else nobody could probe them until the claim ends.
func (c *cycle) release(ctx context.Context, items []*item, due func() time.Time) error {
	claimed := make([]alloc.Claimed, len(items))
	for i, it := range items {
		claimed[i] = it.claimed
	}
	return errors.Join(c.giveBack(ctx, claimed, due), context.Cause(ctx))
}

// at is the same time for all.
func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// giveBack makes claimed endpoints due, also when ctx has ended. due is called for
// each of them.
func (c *cycle) giveBack(ctx context.Context, claimed []alloc.Claimed, due func() time.Time) error {
	if len(claimed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	batch := make([]alloc.Settlement, len(claimed))
	for i, cl := range claimed {
		batch[i] = alloc.Settlement{Endpoint: cl.Endpoint, Version: cl.Version, Due: due(), Action: alloc.Keep}
	}
	_, err := c.store.Settle(ctx, batch, c.settle)
	return err
}
