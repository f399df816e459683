package alloc

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Scratch is a store in this process's memory that is kept nowhere. It runs the same scripts as any
// other, and is for trying out what must not touch a pool that is in use.
type Scratch struct {
	*Store
	server *miniredis.Miniredis
}

// OpenScratch gives an empty one. A nil now is time.Now. Close ends it.
func OpenScratch(now func() time.Time) (*Scratch, error) {
	server := miniredis.NewMiniRedis()
	client, err := memoryClient(Options{}, server)
	if err != nil {
		server.Close()
		return nil, err
	}
	if now == nil {
		now = time.Now
	}
	return &Scratch{Store: &Store{client: client, scripts: newScripts(), now: now}, server: server}, nil
}

// Close ends the store and forgets all that was in it.
func (s *Scratch) Close() error {
	err := s.Store.Close()
	s.server.Close()
	return err
}

// Load copies into an empty scratch store what an embedded store last saved in its state directory,
// which another process may have in use; nothing, where nothing was saved.
func (s *Scratch) Load(stateDir string) error {
	return loadSnapshot(filepath.Join(stateDir, snapshotName), s.client)
}

// SetCounts gives members of a pool other counts, as if so many allocations had been made. Who is no
// member stays none.
func (s *Scratch) SetCounts(ctx context.Context, pool *Pool, counts []Allocation) error {
	if len(counts) == 0 {
		return nil
	}
	ctx, cancel := withBudget(ctx)
	defer cancel()
	scores := make([]redis.Z, len(counts))
	for i, c := range counts {
		scores[i] = redis.Z{Score: float64(c.Count), Member: c.Member}
	}
	if err := s.client.ZAddXX(ctx, pool.keys.eligible, scores...).Err(); err != nil {
		return fmt.Errorf("set counts in pool %s: %w", pool.name, readError(err))
	}
	return nil
}
