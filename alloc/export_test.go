package alloc

import "github.com/redis/go-redis/v9"

// Raw is the store's connection, for tests that stand in for other people's hands.
func (s *Store) Raw() *redis.Client { return s.client }

// Keys are the pool's keys: eligible, retired, record, due, events, named, meta.
func (p *Pool) Keys() []string { return p.keys.all() }

// ParseSnapshot and SnapshotOf are the two ends of the embedded store's file.
func ParseSnapshot(content []byte) error { _, err := parseSnapshot(content); return err }
