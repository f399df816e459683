package daemon

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"evenpool/alloc"
	"evenpool/sources/proxyurl"
)

// What one cycle asks of one address and of one network is limited, whatever has
// come together in the store: from other hosts, and from all the lists there ever
// were. Members are proven, and are not counted.

// putOffFloods counts candidates, gives those back that are too many, and returns
// the others. A newcomer that is to be confirmed was counted before.
func (c *cycle) putOffFloods(ctx context.Context, items []*item) (left []*item, err error) {
	var off []alloc.Settlement
	for _, it := range items {
		if !it.isMember && !it.endpoint.IsZero() && !c.newcomers[it.claimed.Endpoint] {
			it.turn, _ = c.flood.Take(it.endpoint, c.allow(it.record)) // no probe is under way
		}
		if it.turn == 0 {
			left = append(left, it)
			continue
		}
		off = append(off, alloc.Settlement{Endpoint: it.claimed.Endpoint, Version: it.claimed.Version,
			Due: c.turnDue(it), Action: alloc.Keep})
	}
	c.report.PutOff += len(off)
	_, err = c.store.Settle(ctx, off, c.settle)
	if err != nil {
		return nil, errors.Join(err, c.release(ctx, items, at(time.Now())))
	}
	return left, nil
}

// notAsked takes back that an item was counted.
func (c *cycle) notAsked(it *item) {
	if !it.isMember && !it.endpoint.IsZero() && !c.newcomers[it.claimed.Endpoint] {
		c.flood.GiveBack(it.endpoint, c.allow(it.record))
	}
}

// turnDue is when a candidate is due that waits for its turn: of a thousand of one
// network 64 come with each run, and the rest is not claimed in vain every time.
// Those that were never asked come before those that were.
func (c *cycle) turnDue(it *item) time.Time {
	due := c.next.Add(time.Duration(min(it.turn, maxBackoffSteps)-1) * c.cfg.Probe.Schedule.Interval())
	if it.record.LastProbe.IsZero() {
		due = due.Add(-c.grace)
	}
	return shortlyBefore(due, c.grace, c.random)
}

// admitKey is how admitted is told what to leave out.
type admitKey struct{}

// admitted is a prober's Admit. A probe's context may say which addresses of a name
// are to be left out.
func admitted(ctx context.Context, addr netip.Addr) error {
	if admit, ok := ctx.Value(admitKey{}).(func(netip.Addr) error); ok {
		return admit(addr)
	}
	return nil
}

var errPutOff = errors.New("enough candidates of this address or network were asked")

// admitting leaves out what the rules do not want of the addresses that a name leads
// to, and has the others counted, members' apart: a thousand names may be one victim.
// A candidate whose name leads to none that may still be asked waits for its turn.
func (c *cycle) admitting(ctx context.Context, it *item, allow proxyurl.Allow) context.Context {
	if _, isAddr := it.endpoint.Addr(); isAddr {
		return ctx
	}
	turns := map[netip.Addr]int{} // it is dialled once for each scheme and question
	some := false                 // an address was admitted
	return context.WithValue(ctx, admitKey{}, func(addr netip.Addr) error {
		if err := c.rules.Admit(addr); err != nil || it.isMember {
			return err
		}
		turn, known := turns[addr]
		if !known {
			c.flooding.Lock()
			turn, _ = c.flood.TakeAddr(addr, allow)
			c.flooding.Unlock()
			turns[addr] = turn
		}
		if turn == 0 {
			some, it.turn = true, 0
			return nil
		}
		if !some {
			it.turn = max(it.turn, turn)
		}
		return errPutOff
	})
}
