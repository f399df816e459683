package alloc

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// schemaVersion is the form in which this version keeps a pool.
const schemaVersion = 1

// ownMeta are the fields of meta that only the scripts write.
func ownMeta() []string { return []string{"schema", "generation", "created_ms", "emptied_min"} }

// Init makes the pool if it has no meta, and tells whether it did. A pool that was lost is made
// again by it, empty. ErrSchema when a version that keeps it otherwise has made it.
func (p *Pool) Init(ctx context.Context) (created bool, err error) {
	reply, err := p.run(ctx, p.store.scripts.init, []string{p.keys.meta}, schemaVersion, p.store.now().UnixMilli())
	if err != nil {
		return false, err
	}
	return reply == int64(1), nil
}

// Meta gives all fields of the pool's meta; none when there is no pool.
func (p *Pool) Meta(ctx context.Context) (map[string]string, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	fields, err := p.store.client.HGetAll(ctx, p.keys.meta).Result()
	if err != nil {
		return nil, fmt.Errorf("meta of pool %s: %w", p.name, readError(err))
	}
	return fields, nil
}

// SetMeta sets fields of the pool's meta, up to 100. ErrPoolLost when there is none. The fields
// schema, generation, created_ms and emptied_min are not the caller's.
func (p *Pool) SetMeta(ctx context.Context, fields map[string]string) error {
	if len(fields) == 0 {
		return nil
	}
	var args []any
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if slices.Contains(ownMeta(), field) {
			return fmt.Errorf("set meta of pool %s: %s is not to be set from outside", p.name, field)
		}
		args = append(args, field, fields[field])
	}
	_, err := p.run(ctx, p.store.scripts.setMeta, []string{p.keys.meta}, args...)
	return err
}
