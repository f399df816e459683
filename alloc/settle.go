package alloc

import (
	"context"
	"fmt"
	"time"
)

// Action is what a verdict does to the pool.
type Action string

// The actions of a settlement.
const (
	Keep   Action = "keep"   // update the record and the due time only
	Admit  Action = "admit"  // make Member a member, in place of Previous if that is one
	Retire Action = "retire" // take Member out and remember its count
	Forget Action = "forget" // drop record and due time, and retire Member if one is named
)

// Settlement is what one round of probing decided about one proxy.
type Settlement struct {
	Endpoint string
	Version  int64     // of the record that it started from, as claimed; 0 when there was none
	Record   []byte    // new JSON; nil leaves the record as it is
	Due      time.Time // when to probe it next; the zero time leaves that as it is
	Action   Action    // "" is Keep
	Member   string    // the URL to admit or retire
	Previous string    // Admit: the URL that it was a member under, "" for none; its count moves over
	Reason   string    // for the events; escaped already
}

// SettlePolicy is how newcomers get their count.
type SettlePolicy struct {
	Start       Policy        // for those that come for the first time; "" is "min"
	Restore     Policy        // for those that come back; "" is "floor"
	ForgetAfter time.Duration // how long a retired count is remembered; 0 is 7 days
	Host        string        // whose decision it was, for the events
}

// Change is what a settlement changed in the set of members.
type Change string

// The changes of the set.
const (
	ChangeNone     Change = "none"
	ChangeAdmitted Change = "admitted"
	ChangeRetired  Change = "retired"
	ChangeMoved    Change = "moved" // the same proxy under another URL, with its count
)

// Settled is what became of one settlement.
type Settled struct {
	Endpoint    string
	Stale       bool // the record is newer, or gone: nothing was done
	Change      Change
	CountBefore int64  // its count in the set or, admitted again, when it was retired; 0 for none
	CountAfter  int64  // its count in the set; 0 for none
	Policy      string // the start or restore policy that was applied, "" for none
}

const (
	defaultForgetAfter = 7 * 24 * time.Hour
	keptEvents         = 10_000
)

// Settle applies settlements in order and tells what became of each, in that order. Start and
// restore policies are decided inside the script, from the set as it is then. A settlement whose
// record has been settled by others since is stale and changes nothing.
//
// More than 50 take several scripts; after an error, what came of those before it is returned
// with it. After ErrOutcomeUnknown, settling the same again is harmless: what was done is stale then.
func (p *Pool) Settle(ctx context.Context, settlements []Settlement, policy SettlePolicy) ([]Settled, error) {
	k := p.keys
	keys := []string{k.eligible, k.retired, k.record, k.due, k.events, k.named, k.meta, k.reports}
	var out []Settled
	for len(settlements) > 0 {
		some := settlements[:min(len(settlements), maxSettled)]
		settlements = settlements[len(some):]
		reply, err := p.run(ctx, p.store.scripts.settle, keys, p.settleArgs(some, policy)...)
		if err != nil {
			return out, err
		}
		flat, err := texts(reply, 4)
		if err != nil || len(flat) != 4*len(some) {
			return out, fmt.Errorf("settle in pool %s: %d values for %d settlements: %w", p.name, len(flat), len(some), err)
		}
		for i, s := range some {
			out = append(out, settled(s.Endpoint, flat[4*i:4*i+4]))
		}
	}
	return out, nil
}

func (p *Pool) settleArgs(settlements []Settlement, policy SettlePolicy) []any {
	if policy.Start == "" {
		policy.Start = "min"
	}
	if policy.Restore == "" {
		policy.Restore = "floor"
	}
	if policy.ForgetAfter == 0 {
		policy.ForgetAfter = defaultForgetAfter
	}
	args := make([]any, 0, 6+8*len(settlements))
	args = append(args, p.store.now().UnixMilli(), string(policy.Start), string(policy.Restore),
		policy.ForgetAfter.Milliseconds(), policy.Host, keptEvents)
	for _, s := range settlements {
		due := int64(0)
		if !s.Due.IsZero() {
			due = s.Due.UnixMilli()
		}
		action := s.Action
		if action == "" {
			action = Keep
		}
		args = append(args, s.Endpoint, s.Version, s.Record, due, string(action), s.Member, s.Previous, s.Reason)
	}
	return args
}

func settled(endpoint string, reply []string) Settled {
	out := Settled{
		Endpoint:    endpoint,
		Change:      Change(reply[0]),
		CountBefore: parseCount(reply[1]),
		CountAfter:  parseCount(reply[2]),
		Policy:      reply[3],
	}
	if reply[0] == "stale" {
		out.Stale, out.Change = true, ChangeNone
	}
	return out
}
