package alloc

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// Evenness is how alike the counts of a pool's members are. All is 0 for an empty pool.
type Evenness struct {
	Members         int
	Lowest, Highest int64
	Mean            float64
	// Gini is the Gini coefficient of the counts: 0 where all are alike, towards 1 where one member
	// has everything (C. Gini, Variabilità e mutabilità, 1912; by the sorted form,
	// https://mathworld.wolfram.com/GiniCoefficient.html, without the correction for small n).
	Gini float64
}

// Spread is the highest count less the lowest.
func (e Evenness) Spread() int64 { return e.Highest - e.Lowest }

// Evenness reads the counts of all members, a thousand at a time, so that no allocation waits for
// long; those that change meanwhile are as they were when their turn came. ErrUnavailable and
// ErrWrongType are its errors.
func (p *Pool) Evenness(ctx context.Context) (Evenness, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	var counts []int64
	for cursor := uint64(0); ; {
		page, next, err := p.store.client.ZScan(ctx, p.keys.eligible, cursor, "", 1000).Result()
		if err != nil {
			return Evenness{}, fmt.Errorf("evenness of pool %s: %w", p.name, readError(err))
		}
		for i := 1; i < len(page); i += 2 {
			score, err := strconv.ParseFloat(page[i], 64)
			if err == nil { // one out of range is infinite, and repaired in the next cycle
				counts = append(counts, countOf(score))
			}
		}
		if cursor = next; cursor == 0 {
			return EvennessOf(counts), nil
		}
	}
}

// EvennessOf is that of some counts, which it sorts.
func EvennessOf(counts []int64) Evenness {
	n := len(counts)
	if n == 0 {
		return Evenness{}
	}
	slices.Sort(counts)
	sum, weighted := 0.0, 0.0
	for i, count := range counts {
		sum += float64(count)
		weighted += float64(2*(i+1)-n-1) * float64(count)
	}
	e := Evenness{Members: n, Lowest: counts[0], Highest: counts[n-1], Mean: sum / float64(n)}
	if sum > 0 {
		e.Gini = max(0, weighted/(float64(n)*sum))
	}
	return e
}
