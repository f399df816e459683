package simulate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"evenpool/alloc"
)

// player has one policy's pool, and works out beside it what must be in it.
type player struct {
	scratch *alloc.Scratch
	pool    *alloc.Pool
	policy  Policy
	checked int64
	now     time.Time

	names []string       // all proxies of the history, by their bytes
	ranks map[string]int // name -> its place in names
	queue queue          // the members
	look  *look
	made  func(int64)
}

// newPlayer opens a scratch store, which is the caller's to close.
func newPlayer(h History, policy Policy, o Options) (*player, error) {
	names := h.names()
	p := &player{policy: policy, checked: int64(o.checked), now: dayOne,
		names: names, ranks: make(map[string]int, len(names)), made: func(int64) {}}
	if p.checked == 0 {
		p.checked = defaultChecked
	}
	if o.Made != nil {
		p.made = func(n int64) { o.Made.Add(n) }
	}
	for rank, name := range names {
		p.ranks[name] = rank
	}
	p.look = newLook(policy, int64(o.Rate*o.Window.Seconds()), len(names))
	var err error
	if p.scratch, err = alloc.OpenScratch(func() time.Time { return p.now }); err != nil {
		return nil, err
	}
	p.pool = p.scratch.Pool("simulated")
	return p, nil
}

// dayOne is when histories begin, on the clock of the pools.
var dayOne = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// play plays a history to its end.
func (p *player) play(ctx context.Context, h History, rate float64) error {
	if _, err := p.pool.Init(ctx); err != nil {
		return err
	}
	if err := p.begin(ctx, h.Members); err != nil {
		return err
	}
	asked := int64(0)
	for _, step := range slices.Concat(h.Steps, []Step{{At: h.Length}}) {
		due := int64(rate * step.At.Seconds())
		if err := p.allocate(ctx, due-asked); err != nil {
			return err
		}
		asked = due
		p.now = dayOne.Add(step.At)
		if err := p.settle(ctx, step.Changes); err != nil {
			return err
		}
	}
	return p.compare(ctx)
}

// begin admits the first members, all with count 0.
func (p *player) begin(ctx context.Context, members []string) error {
	changes := make([]Change, len(members))
	for i, name := range members {
		changes[i] = Change{Proxy: name, Joins: true}
	}
	return p.settleBy(ctx, changes, alloc.SettlePolicy{Start: "0", Restore: "0"})
}

func (p *player) settle(ctx context.Context, changes []Change) error {
	return p.settleBy(ctx, changes, alloc.SettlePolicy{Start: p.policy.Start, Restore: p.policy.Restore})
}

// settleBy makes changes by the real script, and takes the counts over that it gave.
func (p *player) settleBy(ctx context.Context, changes []Change, policy alloc.SettlePolicy) error {
	if len(changes) == 0 {
		return nil
	}
	policy.Host = "simulated"
	settlements := make([]alloc.Settlement, len(changes))
	for i, c := range changes {
		settlements[i] = alloc.Settlement{Endpoint: c.Proxy, Member: c.Proxy, Action: alloc.Retire}
		if c.Joins {
			settlements[i].Action = alloc.Admit
		}
	}
	settled, err := p.pool.Settle(ctx, settlements, policy)
	if err != nil {
		return err
	}
	members := p.queue.counts()
	for i, s := range settled {
		rank := p.ranks[changes[i].Proxy]
		had, is := members[rank]
		switch {
		case s.Change == alloc.ChangeAdmitted && changes[i].Joins && !is:
			members[rank] = s.CountAfter
		case s.Change == alloc.ChangeRetired && !changes[i].Joins && is && s.CountBefore == had:
			delete(members, rank)
		default:
			return fmt.Errorf("%+v gave %+v, and the count was %d: the history or the script is wrong", changes[i], s, had)
		}
	}
	p.queue = newQueue(members)
	p.look.changed(p.queue)
	return nil
}

// allocate lets n allocations happen.
func (p *player) allocate(ctx context.Context, n int64) error {
	if len(p.queue) == 0 {
		p.look.unserved(n)
		return nil
	}
	if unchecked := n - p.checked; unchecked > 0 {
		for range unchecked {
			p.look.allocated(p.queue.next().rank, p.queue)
		}
		p.made(unchecked)
		n -= unchecked
		if err := p.scratch.SetCounts(ctx, p.pool, p.members()); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	answers, err := p.pool.Allocate(ctx, int(n))
	if err != nil {
		return err
	}
	if int64(len(answers)) != n {
		return fmt.Errorf("%d answers to %d requests", len(answers), n)
	}
	for _, answer := range answers {
		next := p.queue.next()
		if answer.Member != p.names[next.rank] || answer.Count != next.count {
			return fmt.Errorf("the script allocated %q at %d, and %q at %d is next", answer.Member, answer.Count, p.names[next.rank], next.count)
		}
		p.look.allocated(next.rank, p.queue)
	}
	p.made(n)
	return nil
}

// members gives what must be in the set, in no order.
func (p *player) members() []alloc.Allocation {
	out := make([]alloc.Allocation, len(p.queue))
	for i, m := range p.queue {
		out[i] = alloc.Allocation{Member: p.names[m.rank], Count: m.count}
	}
	return out
}

// compare holds the set against what must be in it.
func (p *player) compare(ctx context.Context) error {
	got, err := p.pool.Members(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(p.queue, member.compare)
	if want := p.members(); !slices.Equal(got, want) {
		return fmt.Errorf("the set is not what the allocations have made of it: %d members, and there must be %d", len(got), len(want))
	}
	return nil
}
