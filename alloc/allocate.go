package alloc

import (
	"context"
	"fmt"
	"strconv"
)

// Allocation is a member that was handed out.
type Allocation struct {
	// Member is the proxy's URL, with its password if it has one.
	Member string
	// Count is how often it was handed out, this time included. Where others put a count that is
	// no whole number, the nearest towards zero; beyond 64 bits, the largest.
	Count int64
}

// Allocate hands out n members, each time the one with the lowest count, ties decided by the
// members' bytes, and counts each. It gives them in that order; a member may come more than once.
// What is asked for at the same time travels in one script, first come, first served.
//
// An empty pool gives nil and no error. n is at least 1; more than 500 take several scripts one
// after the other, others' allocations may come in between, and when a later one fails, those that
// were made are returned with the error. Other errors: ErrBusy, at once, when too much is waiting;
// ErrUnavailable, also when the time is over before it was sent; ErrOutcomeUnknown, for all that
// travelled together, when the reply is lost; ErrPoolLost, ErrWrongType. It blocks until the
// context's deadline at most, 10 s without one.
func (p *Pool) Allocate(ctx context.Context, n int) ([]Allocation, error) {
	return p.gather.allocate(ctx, n)
}

// allocations reads what allocate.lua replies: members and the count that all have, or members each
// with its count and an empty text behind them.
func allocations(reply []string) ([]Allocation, error) {
	if len(reply) == 0 {
		return nil, nil
	}
	list, last := reply[:len(reply)-1], reply[len(reply)-1]
	if last != "" {
		out, count := make([]Allocation, len(list)), parseCount(last)
		for i, member := range list {
			out[i] = Allocation{Member: member, Count: count}
		}
		return out, nil
	}
	if len(list)%2 != 0 {
		return nil, fmt.Errorf("unexpected reply of %d texts", len(reply))
	}
	out := make([]Allocation, len(list)/2)
	for i := range out {
		out[i] = Allocation{Member: list[2*i], Count: parseCount(list[2*i+1])}
	}
	return out, nil
}

// parseCount reads a score. An empty text is 0.
func parseCount(text string) int64 {
	if count, err := strconv.ParseInt(text, 10, 64); err == nil {
		return count
	}
	score, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return countOf(score)
}

func countOf(score float64) int64 {
	const edge = 1 << 63
	switch {
	case score != score:
		return 0
	case score >= edge:
		return edge - 1
	case score <= -edge:
		return -edge
	}
	return int64(score)
}
