package daemon

import (
	"context"
	"iter"
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

// crowdOut forgets up to so many candidates to make room for new ones: first those
// that nothing has spoken for longest, and lists have not named for two rounds; then
// those that lists do name, but that are passed over today.
//
// Nothing else that lists name is ever pushed out. So it cannot happen that two
// lists, or two hosts, push out one another's candidates at every fetch: what goes is
// not offered again today, and tomorrow has another order. Of a list on another host
// that came first, what is too much is passed over there as soon as it is known how
// much we would offer (see others), and is old two rounds later.
func (p *pool) crowdOut(ctx context.Context, now time.Time, most int, passedOver iter.Seq[string]) (int, error) {
	dropped, err := p.forget(ctx, now, now.Add(-min(p.twoRounds(), p.unnamedFor())), most)
	if err != nil || dropped >= most {
		return dropped, err
	}
	pages := 0
	page := make([]string, 0, forgetPage)
	look := func() error {
		list, err := p.store.UnnamedThese(ctx, page)
		if err != nil {
			return err
		}
		page = page[:0]
		pages++
		gone, _, _, err := p.drop(ctx, now, now, list[:min(len(list), most-dropped)])
		dropped += gone
		return err
	}
	for endpoint := range passedOver {
		if page = append(page, endpoint); len(page) == forgetPage {
			if err := look(); err != nil || dropped >= most || pages == forgetPages {
				return dropped, err
			}
		}
	}
	if len(page) > 0 {
		err = look()
	}
	return dropped, err
}

// forget drops up to so many candidates that nothing has spoken for since before.
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
		gone, moved, stay, err := p.drop(ctx, now, before, list)
		dropped += gone
		if err != nil {
			return dropped, err
		}
		skip += len(list) - gone - moved + stay
	}
	return dropped, nil
}

// drop drops candidates, but not members, nor what is in quarantine, nor what has
// passed a probe within the time for which an unnamed candidate is kept. It says how many are gone, how many
// were noted as spoken for, and how many of these not since before.
func (p *pool) drop(ctx context.Context, now, before time.Time, list []alloc.Unnamed) (gone, moved, stay int, err error) {
	what := make([]alloc.Forgetting, len(list))
	for i, u := range list {
		what[i] = alloc.Forgetting{Unnamed: u, Spoken: p.spokenFor(u, now)}
		if !what[i].Spoken.IsZero() && what[i].Spoken.Before(before) {
			stay++
		}
	}
	gone, moved, err = p.store.Forget(ctx, what, now, p.claimEnd(now))
	return gone, moved, stay, err
}

// spokenFor says when something spoke for a candidate that no list names: it passed,
// it is a member, or it has to stay known since it broke a rule of safety: forgotten
// and named again, it would be as good as new. The zero time means that nothing did,
// lately.
func (p *pool) spokenFor(u alloc.Unnamed, now time.Time) time.Time {
	rec, err := probe.DecodeRecord(u.Record)
	switch {
	case err != nil:
		return time.Time{}
	case rec.Member != "":
		return now
	case now.Sub(rec.Offended) < p.rules.Quarantine:
		return rec.Offended
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
