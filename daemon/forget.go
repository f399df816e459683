package daemon

import (
	"context"
	"time"

	"evenpool/alloc"
	"evenpool/probe"
)

const (
	// forgetPage is how many candidates one script looks at, forgetPages how many
	// scripts there are in one cycle, or at one offer, at most: 25,000 candidates
	// in some 0.1 s.
	forgetPage  = 500
	forgetPages = 50
)

// unnamedFor is how long a candidate is kept that nothing speaks for: allocation's
// forget_after, but not less than two rounds of the slowest list, which else would
// be offered what was forgotten since the round before.
func (p *pool) unnamedFor() time.Duration {
	return max(p.cfg.Allocation.ForgetAfter, p.twoRounds())
}

// twoRounds is what the slowest of the pool's lists takes to be fetched twice.
// What none of them has named for so long has left the lists.
func (p *pool) twoRounds() time.Duration {
	slowest := time.Duration(0)
	for _, s := range p.sources {
		slowest = max(slowest, s.cfg.Schedule.Interval())
	}
	return 2 * slowest
}

// crowdOut forgets up to so many candidates to make room for new ones, those first
// that nothing has spoken for longest. They are none that a list still names.
func (p *pool) crowdOut(ctx context.Context, now time.Time, most int) (int, error) {
	return p.forget(ctx, now, now.Add(-min(p.twoRounds(), p.unnamedFor())), most)
}

// forget drops up to so many candidates that nothing has spoken for since before.
// Members stay, and so does what has passed a probe within the time for which an
// unnamed candidate is kept.
func (p *pool) forget(ctx context.Context, now, before time.Time, most int) (dropped int, err error) {
	skip := 0
	for range forgetPages {
		if dropped >= most {
			break
		}
		list, err := p.store.Unnamed(ctx, before, skip, min(forgetPage, most-dropped))
		if err != nil {
			return dropped, err
		}
		if len(list) == 0 {
			break
		}
		what := make([]alloc.Forgetting, len(list))
		stay := 0 // of those that live on, those that are still within what is looked at
		for i, u := range list {
			what[i] = alloc.Forgetting{Unnamed: u, Spoken: p.spokenFor(u, now)}
			if !what[i].Spoken.IsZero() && what[i].Spoken.Before(before) {
				stay++
			}
		}
		gone, spared, err := p.store.Forget(ctx, what, now, p.claimEnd(now))
		dropped += gone
		if err != nil {
			return dropped, err
		}
		skip += len(list) - gone - spared + stay
	}
	return dropped, nil
}

// spokenFor says when something spoke for a candidate that no list names: it passed,
// or it is a member. The zero time means that nothing did, lately.
func (p *pool) spokenFor(u alloc.Unnamed, now time.Time) time.Time {
	rec, err := probe.DecodeRecord(u.Record)
	switch {
	case err != nil:
		return time.Time{}
	case rec.Member != "":
		return now
	case now.Sub(rec.LastPass) < p.unnamedFor():
		return rec.LastPass
	}
	return time.Time{}
}

// forgetUnnamed forgets the candidates that nothing has spoken for in long.
func (c *cycle) forgetUnnamed(ctx context.Context) (err error) {
	now := time.Now()
	c.report.Forgotten, err = c.pool.forget(ctx, now, now.Add(-c.unnamedFor()), forgetPage*forgetPages)
	return err
}
