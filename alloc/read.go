package alloc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Members gives all members with their counts, the one that is next first.
func (p *Pool) Members(ctx context.Context) ([]Allocation, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	// One read of all: by ranks, members would be skipped and doubled while counts change.
	list, err := p.store.client.ZRangeWithScores(ctx, p.keys.eligible, 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("members of pool %s: %w", p.name, readError(err))
	}
	out := make([]Allocation, 0, len(list))
	for _, z := range list {
		member, _ := z.Member.(string)
		out = append(out, Allocation{Member: member, Count: countOf(z.Score)})
	}
	return out, nil
}

// Size tells how many members there are, how many proxies are known, members included, and how
// many of these are due now.
func (p *Pool) Size(ctx context.Context) (members, known, due int64, err error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	var card, length, count *redis.IntCmd
	now := strconv.FormatInt(p.store.now().UnixMilli(), 10)
	_, err = p.store.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		card = pipe.ZCard(ctx, p.keys.eligible)
		length = pipe.HLen(ctx, p.keys.record)
		count = pipe.ZCount(ctx, p.keys.due, "-inf", now)
		return nil
	})
	if err != nil {
		return 0, 0, 0, fmt.Errorf("size of pool %s: %w", p.name, readError(err))
	}
	return card.Val(), length.Val(), count.Val(), nil
}

// Score gives a member's count; false when it is not a member.
func (p *Pool) Score(ctx context.Context, member string) (int64, bool, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	score, err := p.store.client.ZScore(ctx, p.keys.eligible, member).Result()
	if errors.Is(err, redis.Nil) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("count in pool %s: %w", p.name, readError(err))
	}
	return countOf(score), true, nil
}

// Event is a change of the set of members.
type Event struct {
	ID       string // of the stream, ascending
	At       time.Time
	Change   Change // admitted, retired or moved
	Endpoint string // with its password if it has one
	Member   string // likewise
	Previous string // moved: the URL before; likewise
	Reason   string
	Policy   string // admitted: the start or restore policy that was applied
	Host     string
	Before   int64 // the count before: in the set or, admitted again, when it was retired
	After    int64 // the count after; 0 when retired
}

// Events gives the last n changes, the newest first. Some 10,000 are kept.
func (p *Pool) Events(ctx context.Context, n int) ([]Event, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	list, err := p.store.client.XRevRangeN(ctx, p.keys.events, "+", "-", int64(n)).Result()
	if err != nil {
		return nil, fmt.Errorf("events of pool %s: %w", p.name, readError(err))
	}
	out := make([]Event, 0, len(list))
	for _, message := range list {
		field := func(name string) string {
			text, _ := message.Values[name].(string)
			return text
		}
		out = append(out, Event{
			ID:       message.ID,
			At:       time.UnixMilli(parseCount(field("at_ms"))).UTC(),
			Change:   Change(field("change")),
			Endpoint: field("endpoint"),
			Member:   field("member"),
			Previous: field("previous"),
			Reason:   field("reason"),
			Policy:   field("policy"),
			Host:     field("host"),
			Before:   parseCount(field("before")),
			After:    parseCount(field("after")),
		})
	}
	return out, nil
}
