package alloc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Known is all that a pool holds of one proxy beside its count as a member.
type Known struct {
	Claimed           // Version 0 and no Record when it is not known
	Due     time.Time // when it is to be probed next; zero when it is not queued
	Retired *Retired  // nil when it never was a member, or is one, or that is forgotten
}

// Retired is what is remembered of a former member.
type Retired struct {
	Count int64
	At    time.Time
}

// Look gives what a pool holds of a proxy, nothing being no error.
func (p *Pool) Look(ctx context.Context, endpoint string) (Known, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	var record, retired *redis.StringCmd
	var due *redis.FloatCmd
	_, err := p.store.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		record = pipe.HGet(ctx, p.keys.record, endpoint)
		retired = pipe.HGet(ctx, p.keys.retired, endpoint)
		due = pipe.ZScore(ctx, p.keys.due, endpoint)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return Known{}, fmt.Errorf("look into pool %s: %w", p.name, readError(err))
	}
	known := Known{Claimed: claimedOf(endpoint, record.Val())}
	if due.Err() == nil {
		known.Due = time.UnixMilli(countOf(due.Val())).UTC()
	}
	if count, at, found := strings.Cut(retired.Val(), "|"); found {
		ms, err := strconv.ParseInt(at, 10, 64)
		if err == nil {
			known.Retired = &Retired{Count: parseCount(count), At: time.UnixMilli(ms).UTC()}
		}
	}
	return known, nil
}

// NextDue tells when the first of all known proxies is to be probed, claims
// included; false when none is queued.
func (p *Pool) NextDue(ctx context.Context) (time.Time, bool, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	first, err := p.store.client.ZRangeWithScores(ctx, p.keys.due, 0, 0).Result()
	if err != nil {
		return time.Time{}, false, fmt.Errorf("queue of pool %s: %w", p.name, readError(err))
	}
	if len(first) == 0 {
		return time.Time{}, false, nil
	}
	return time.UnixMilli(countOf(first[0].Score)), true, nil
}

// Records gives what is known of each of some proxies, in their order; Version 0
// and no Record for one that is not known. It reads 500 at a time.
func (p *Pool) Records(ctx context.Context, endpoints []string) ([]Claimed, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	out := make([]Claimed, 0, len(endpoints))
	for len(endpoints) > 0 {
		some := endpoints[:min(len(endpoints), maxPerCall)]
		endpoints = endpoints[len(some):]
		values, err := p.store.client.HMGet(ctx, p.keys.record, some...).Result()
		if err != nil {
			return nil, fmt.Errorf("records in pool %s: %w", p.name, readError(err))
		}
		for i, value := range values {
			text, _ := value.(string)
			out = append(out, claimedOf(some[i], text))
		}
	}
	return out, nil
}
