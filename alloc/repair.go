package alloc

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// Repair puts counts that are no whole numbers from 0 to 2^52, which only others can have written,
// to the pool's lowest sound count, and tells how many it put right. It walks the whole set in
// pages and writes in scripts of 500; after an error some may have been put right.
func (p *Pool) Repair(ctx context.Context) (n int, err error) {
	var suspects []string
	var cursor uint64
	for {
		page, next, err := p.scanMembers(ctx, cursor)
		if err != nil {
			return 0, err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if !soundScore(page[i+1]) {
				suspects = append(suspects, page[i])
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for len(suspects) > 0 {
		some := suspects[:min(len(suspects), maxPerCall)]
		suspects = suspects[len(some):]
		args := make([]any, len(some))
		for i, member := range some {
			args[i] = member
		}
		reply, err := p.run(ctx, p.store.scripts.repair, []string{p.keys.eligible, p.keys.meta}, args...)
		if err != nil {
			return n, err
		}
		repaired, err := texts(reply, 3)
		if err != nil {
			return n, fmt.Errorf("repair in pool %s: %w", p.name, err)
		}
		n += len(repaired) / 3
	}
	return n, nil
}

func (p *Pool) scanMembers(ctx context.Context, cursor uint64) ([]string, uint64, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	page, next, err := p.store.client.ZScan(ctx, p.keys.eligible, cursor, "", maxPerCall).Result()
	if err != nil {
		return nil, 0, fmt.Errorf("repair in pool %s: %w", p.name, readError(err))
	}
	return page, next, nil
}

func soundScore(text string) bool {
	score, err := strconv.ParseFloat(text, 64)
	return err == nil && score >= 0 && score <= MaxCount && score == math.Trunc(score)
}
