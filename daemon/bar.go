package daemon

import (
	"context"
	"errors"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// What the rules bar needs no probe: it is not offered, not asked, and not a member.

// barredSteps is within how many runs of the schedule a candidate is looked at again
// that rules bar for as long as they stand. It is cheap, and a list of banned proxies
// may change.
const barredSteps = 4

// refreshFiles reads again what has changed of the files that the rules rest on.
func (c *cycle) refreshFiles() {
	if changed, err := c.geo.Refresh(); err != nil {
		c.log.Error("a file of places is not usable; what was read before stays in use", "err", err)
	} else if changed {
		c.log.Info("the files of places were read again")
	}
	if c.banned == nil {
		return
	}
	if changed, err := c.banned.refresh(); err != nil {
		c.log.Error("the list of banned proxies is not usable; what was read before stays in use", "err", err)
	} else if changed {
		c.log.Info("the list of banned proxies was read again", "entries", c.banned.get().Len())
		c.unoffered.Store(true) // who is not banned any more is to be offered
	}
}

// retireBarred retires the members that rules bar, whatever their turn is and whatever
// the guard says, and returns the endpoints of the others. The same endpoint by two
// schemes is two members: the second goes with the next cycle. A member whose record
// says that it is none was put back into the set by somebody else, such as a worker
// that was late to undo an allocation: it is one again, and is asked at once.
func (c *cycle) retireBarred(ctx context.Context, members []proxyurl.URL) (left []string, err error) {
	endpoints := make([]string, len(members))
	for i, u := range members {
		endpoints[i] = u.Endpoint.String()
	}
	known, err := c.store.Records(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var batch []alloc.Settlement
	for i, u := range members {
		rec, err := probe.DecodeRecord(known[i].Record)
		if err != nil {
			rec = probe.Record{FirstSeen: c.start}
		}
		rec = c.named(u.Endpoint, rec)
		before := rec.Member
		rec.Member = u.String()
		s := alloc.Settlement{Endpoint: endpoints[i], Version: known[i].Version, Member: u.String()}
		if bar := c.rules.Bar(u.Endpoint, rec, now); bar.Bars() {
			s.Action, s.Reason, s.Due = alloc.Retire, bar.Decision(rec).Reason, c.barDue(bar)
			rec.Member = ""
			c.log.Info("a member is retired by a rule that needs no probe", "endpoint", u.Endpoint.Redacted(), "reason", s.Reason)
		} else {
			left = append(left, endpoints[i])
			if before != "" {
				continue
			}
			// It may just have been retired, by another host: then it is not in the set now.
			_, still, err := c.store.Score(ctx, u.String())
			if err != nil {
				return nil, err
			}
			if !still {
				continue
			}
			s.Action, s.Member, s.Due = alloc.Keep, "", now
		}
		s.Record = rec.Encode()
		batch = append(batch, s)
	}
	settled, err := c.store.Settle(ctx, batch, c.settle)
	for _, s := range settled {
		if s.Change == alloc.ChangeRetired {
			c.report.Retired++
		}
	}
	return left, err
}

// settleBarred settles those of a slice of candidates that rules bar, and returns the
// others.
func (c *cycle) settleBarred(ctx context.Context, items []*item) (left []*item, err error) {
	now := time.Now()
	var batch []alloc.Settlement
	for _, it := range items {
		bar := probe.Bar{}
		if !it.endpoint.IsZero() {
			bar = c.rules.Bar(it.endpoint, it.record, now)
		}
		if !bar.Bars() {
			left = append(left, it)
			continue
		}
		s := alloc.Settlement{Endpoint: it.claimed.Endpoint, Version: it.claimed.Version, Due: c.barDue(bar), Action: alloc.Keep}
		if d := bar.Decision(it.record); d.Action == probe.Retire {
			s.Action, s.Member, s.Reason = alloc.Retire, d.Member, d.Reason
			it.record.Member = ""
			s.Record = it.record.Encode()
		}
		batch = append(batch, s)
	}
	c.barred += len(batch)
	if _, err := c.store.Settle(ctx, batch, c.settle); err != nil {
		return nil, errors.Join(err, c.release(ctx, items, at(now)))
	}
	return left, nil
}

// barDue is when an endpoint is looked at again that rules bar.
func (c *cycle) barDue(bar probe.Bar) time.Time {
	if !bar.Until.IsZero() {
		return bar.Until
	}
	return shortlyBefore(c.next.Add(time.Duration(c.random.IntN(barredSteps))*c.cfg.Probe.Schedule.Interval()), c.grace, c.random)
}

// wanted leaves out what of a list the rules bar, and counts it by rule. It takes no
// room, and no turn of its network.
func (p *pool) wanted(list []proxyurl.Endpoint, now time.Time) (left []proxyurl.Endpoint, barred api.Counts) {
	barred = api.Counts{}
	for _, e := range list {
		if bar := p.rules.Bar(e, p.named(e, probe.Record{}), now); bar.Bars() {
			barred[bar.Reasons[0].Rule]++
		} else {
			left = append(left, e)
		}
	}
	return left, barred
}
