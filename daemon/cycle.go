package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

const (
	// sliceSize and sliceTime bound a slice: at its ends stand the control
	// probes, and what lies between is only as trustworthy as these are near.
	sliceSize = 2000
	sliceTime = 15 * time.Second
	// settleTime is kept free at a cycle's end for what is not probing.
	settleTime = 2 * time.Second
	// foreignEndpoint stands in events for members that have no endpoint.
	foreignEndpoint = "foreign"
	// releaseTime bounds how long a stopping daemon tries to give claims back.
	releaseTime = 2 * time.Second
)

// cycle is one scheduled round of probing a pool.
type cycle struct {
	*pool
	start      time.Time
	next       time.Time            // when the schedule's next cycle begins
	probeUntil time.Time            // no probe goes on beyond it
	horizon    time.Time            // members that are due by then are taken
	pending    map[string]time.Time // newcomers to be confirmed, and when
	newcomers  map[string]bool      // those that were ever pending: each counts once
	size       int                  // members when the cycle began
	grace      time.Duration        // candidates of the next run are due within it before that
	flooding   sync.Mutex
	flood      sources.Flood // what was asked in this cycle; under flooding
	frozen     time.Time     // since when the pool is frozen; zero for not
	barred     int           // candidates that were not asked, since rules bar them
	report     api.Cycle
	guardState string
	guardWhy   string
}

// cycle runs one cycle, members first. It is called through cron's chain, so
// that there is one at a time and a panic ends with it. It ends before the next
// one is to begin, with candidates left over if need be.
func (p *pool) cycle(ctx context.Context) {
	p.running.Store(true)
	defer p.running.Store(false)
	now := time.Now()
	c := &cycle{
		pool: p, start: now, next: p.nextRun(), horizon: now,
		pending:    map[string]time.Time{},
		newcomers:  map[string]bool{},
		guardState: api.GuardNormal,
		report:     api.Cycle{StartedAt: now.UTC(), Outcomes: api.Counts{}},
	}
	if p.everything.Swap(false) {
		c.horizon = c.next
	}
	c.grace = min(settleTime, c.next.Sub(now)/10)
	c.probeUntil = c.next.Add(-2 * c.grace)
	ctx, cancel := context.WithDeadline(ctx, c.next.Add(-c.grace/2))
	defer cancel()
	err := c.run(ctx)
	c.end(ctx, err)
}

func (c *cycle) run(ctx context.Context) error {
	if err := c.ensure(ctx); err != nil {
		return err
	}
	c.refreshFiles()
	if c.unoffered.Swap(false) {
		c.offer(ctx, c.sources...)
	}
	if repaired, err := c.store.Repair(ctx); err != nil {
		return err
	} else if repaired > 0 {
		c.log.Warn("scores that are no counts were put right", "members", repaired)
	}
	meta, err := c.store.Meta(ctx)
	if err != nil {
		return err
	}
	c.frozen = metaTime(meta, metaFrozenSince)
	if err := c.members(ctx); err != nil {
		return err
	}
	// Afterwards: the members have been spoken for.
	if err := c.forgetUnnamed(ctx); err != nil {
		return err
	}
	return c.candidates(ctx)
}

// members is the first slice: all members that are due.
func (c *cycle) members(ctx context.Context) error {
	members, err := c.store.Members(ctx)
	if err != nil {
		return err
	}
	offers := make([]alloc.Offer, 0, len(members))
	urls := make([]proxyurl.URL, 0, len(members))
	var foreign []alloc.Settlement
	for _, m := range members {
		u, err := proxyurl.ParseURL(m.Member)
		if err != nil || u.String() != m.Member {
			foreign = append(foreign, alloc.Settlement{Endpoint: foreignEndpoint, Action: alloc.Forget, Member: m.Member,
				Reason: "not the canonical URL of a proxy"})
			continue
		}
		// A member that somebody else put into the set has no record yet.
		rec := c.named(u.Endpoint, probe.Record{Member: m.Member, FirstSeen: c.start})
		offers = append(offers, alloc.Offer{Endpoint: u.Endpoint.String(), Record: rec.Encode()})
		urls = append(urls, u)
	}
	if len(foreign) > 0 {
		// Others put them there. They cannot be probed, and no worker can use them.
		c.log.Warn("members that are not the canonical URL of a proxy are taken out", "members", len(foreign))
		if _, err := c.store.Settle(ctx, foreign, c.settle); err != nil {
			return err
		}
	}
	if _, err := c.store.Offer(ctx, offers, c.start); err != nil {
		return err
	}
	endpoints, err := c.retireBarred(ctx, urls)
	if err != nil {
		return err
	}
	c.size = len(endpoints)
	claimed, err := c.store.ClaimThese(ctx, endpoints, c.horizon, c.claimUntil())
	if err != nil {
		return errors.Join(err, c.giveBack(ctx, claimed, at(c.start)))
	}
	if len(claimed) == 0 {
		return nil
	}
	return c.slice(ctx, claimed, true)
}

// candidates goes on, slice by slice, until nothing is due before the next cycle,
// or the time is over. Newcomers on their way in come first.
func (c *cycle) candidates(ctx context.Context) error {
	for time.Now().Before(c.probeUntil) {
		claimed, err := c.claimSlice(ctx)
		if err != nil {
			return err
		}
		if len(claimed) > 0 {
			if err := c.slice(ctx, claimed, false); err != nil {
				return err
			}
			continue
		}
		// What is due before the next run is a newcomer to be confirmed, or was
		// claimed by somebody who may have died.
		next, ok, err := c.store.NextDue(ctx)
		if err != nil {
			return err
		}
		if !ok || !next.Before(c.next) || next.After(c.probeUntil) {
			return nil
		}
		timer := time.NewTimer(max(time.Until(next), 10*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
	return nil
}

func (c *cycle) claimSlice(ctx context.Context) ([]alloc.Claimed, error) {
	now := time.Now()
	var confirm []string
	for endpoint, at := range c.pending {
		if !at.After(now) && len(confirm) < sliceSize {
			confirm = append(confirm, endpoint)
			delete(c.pending, endpoint)
		}
	}
	var claimed []alloc.Claimed
	if len(confirm) > 0 {
		var err error
		if claimed, err = c.store.ClaimThese(ctx, confirm, now, c.claimUntil()); err != nil {
			return nil, errors.Join(err, c.giveBack(ctx, claimed, at(now)))
		}
	}
	if left := sliceSize - len(claimed); left > 0 {
		more, err := c.store.Claim(ctx, now, c.claimUntil(), left)
		claimed = append(claimed, more...)
		if err != nil {
			return nil, errors.Join(err, c.giveBack(ctx, claimed, at(now)))
		}
	}
	return claimed, nil
}

// claimUntil is when a claim ends that nobody settles, because its daemon died:
// after the longest that a slice can take, and beyond what it claims.
func (c *cycle) claimUntil() time.Time {
	until := c.claimEnd(time.Now())
	if beyond := c.horizon.Add(time.Second); until.Before(beyond) {
		return beyond
	}
	return until
}

// claimEnd is when a claim ends that a slice of candidates makes now.
func (p *pool) claimEnd(now time.Time) time.Time {
	// By each scheme, two judges for all that is required, and what it takes to find
	// out what else it can.
	probes := time.Duration(len(p.rules.Schemes)*(2*len(p.rules.Require)+2)) * p.cfg.Probe.Timeout
	return now.Add(sliceTime + probes + 2*p.cfg.Probe.Timeout + 10*time.Second)
}

// end writes down what the cycle did, where it can be seen: in the store, in
// status, and in one line of the log.
func (c *cycle) end(ctx context.Context, err error) {
	c.report.DurationMS = time.Since(c.start).Milliseconds()
	switch {
	case err == nil:
		err = c.store.SetMeta(ctx, map[string]string{metaLastCycle: timeMeta(time.Now())})
	case errors.Is(err, context.Canceled):
		c.log.Info("the cycle was cancelled; nothing is held against anybody")
		return
	}
	c.missed.Store(errors.Is(err, alloc.ErrUnavailable))
	if err != nil {
		c.report.Error = proxyurl.Escape(err.Error(), 200)
	}
	guard := api.Guard{State: c.guardState, Why: c.guardWhy, Since: time.Now().UTC()}
	c.mu.Lock()
	if c.guard.State == guard.State {
		guard.Since = c.guard.Since
	}
	if c.guardState == api.GuardFrozen {
		guard.Since = c.frozen.UTC()
	}
	changed := c.guard.State != guard.State
	c.pool.guard = guard
	report := c.report
	c.last = &report
	c.mu.Unlock()
	if changed {
		c.log.Warn("the guard's state changed", "state", guard.State, "why", guard.Why)
	}
	attrs := []any{"duration", time.Since(c.start).Round(time.Millisecond), "members", c.report.ProbedMembers,
		"candidates", c.report.ProbedCandidates, "admitted", c.report.Admitted, "retired", c.report.Retired,
		"held", c.report.Held, "put_off", c.report.PutOff, "barred", c.barred, "forgotten", c.report.Forgotten, "void_slices", c.report.VoidSlices, "outcomes", c.report.Outcomes}
	if err != nil {
		c.log.Error("the cycle ended early", append(attrs, "err", err)...)
		return
	}
	c.log.Info("cycle", attrs...)
	if members, known, due, err := c.store.Size(ctx); err == nil {
		c.setCounts(poolCounts{members, known, due, time.Now()})
	}
}

// holdBack turns the retirements that the guard does not let through into
// keeping; those that have failed longest go first. A proxy that broke a
// security rule is retired whatever the guard says.
func (c *cycle) holdBack(items []*item) (frozenSince time.Time) {
	var due []*item
	in := guardInput{members: c.size, frozenSince: c.frozen, now: time.Now()}
	if c.frozen.IsZero() {
		// Those that were not asked, as none but a few were reported, do not fail.
		in.good = max(0, c.size-len(items))
	}
	for _, it := range items {
		// Those that failed when the freeze began are not good any more; while it
		// lasts, all members count.
		if it.decision.AtOnce {
			continue // it goes whatever the guard says
		}
		if it.wasGood || !c.frozen.IsZero() && it.isMember {
			in.good++
			if it.round.Verdict.State == probe.Fail {
				in.failing++
			}
		}
		if it.decision.Action == probe.Retire && !it.decision.AtOnce {
			due = append(due, it)
		}
	}
	in.due = len(due)
	d := guard(c.cfg.Guard, in)
	c.guardState, c.guardWhy = d.state, d.why
	slices.SortStableFunc(due, func(a, b *item) int { return b.record.Fails - a.record.Fails })
	for _, it := range due[min(d.budget, len(due)):] {
		it.decision.Action = probe.Keep
		c.report.Held++
	}
	return d.frozenSince
}
