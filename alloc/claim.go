package alloc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Claimed is a proxy that is ours to probe until the claim ends.
type Claimed struct {
	Endpoint string
	Version  int64  // of the record, for Settlement; 0 when there is none
	Record   []byte // JSON as it was stored; nil when there is none
}

// Claim takes up to n proxies that are due at now, those due longest first, and keeps others from
// taking them until the given time, when they are due again unless they were settled. Fewer than n,
// or nil, when no more are due. More than 500 take several scripts; after an error, what was
// claimed before it is returned with it.
func (p *Pool) Claim(ctx context.Context, now, until time.Time, n int) ([]Claimed, error) {
	var out []Claimed
	for n > 0 {
		some := min(n, maxPerCall)
		keys := []string{p.keys.due, p.keys.record, p.keys.named, p.keys.meta}
		got, err := p.claim(ctx, p.store.scripts.claim, keys, now.UnixMilli(), until.UnixMilli(), some)
		if err != nil {
			return out, err
		}
		out = append(out, got...)
		if len(got) < some {
			break
		}
		n -= some
	}
	return out, nil
}

// ClaimThese is Claim for certain proxies: those of endpoints that are due at now, in that order.
func (p *Pool) ClaimThese(ctx context.Context, endpoints []string, now, until time.Time) ([]Claimed, error) {
	var out []Claimed
	for len(endpoints) > 0 {
		some := endpoints[:min(len(endpoints), maxPerCall)]
		endpoints = endpoints[len(some):]
		args := []any{now.UnixMilli(), until.UnixMilli()}
		for _, endpoint := range some {
			args = append(args, endpoint)
		}
		got, err := p.claim(ctx, p.store.scripts.claimThese, []string{p.keys.due, p.keys.record, p.keys.meta}, args...)
		if err != nil {
			return out, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// claim runs one of the claiming scripts once.
func (p *Pool) claim(ctx context.Context, sc *script, keys []string, args ...any) ([]Claimed, error) {
	reply, err := p.run(ctx, sc, keys, args...)
	if err != nil {
		return nil, err
	}
	flat, err := texts(reply, 2)
	if err != nil {
		return nil, fmt.Errorf("claim in pool %s: %w", p.name, err)
	}
	if len(flat) == 0 {
		return nil, nil
	}
	out := make([]Claimed, 0, len(flat)/2)
	for i := 0; i < len(flat); i += 2 {
		out = append(out, claimedOf(flat[i], flat[i+1]))
	}
	return out, nil
}

// claimedOf reads a stored record. One without a version, which only others can have put there,
// is taken for version 0 as the scripts take it.
func claimedOf(endpoint, stored string) Claimed {
	c := Claimed{Endpoint: endpoint}
	version, json, found := strings.Cut(stored, "|")
	if !found {
		return c
	}
	if n, err := strconv.ParseInt(version, 10, 64); err == nil && n >= 0 {
		c.Version = n
		c.Record = []byte(json)
	}
	return c
}
