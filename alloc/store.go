package alloc

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options says where pools are kept.
type Options struct {
	// URL is redis://, rediss:// or unix://; empty means embedded.
	URL string
	// Username and Password log in to Redis; they go before those of the URL.
	Username, Password string
	// StateDir is the directory where the embedded store keeps its file; made if it is missing,
	// held alone until Close. Redis does without.
	StateDir string
	// PoolSize is how many connections are opened at most; 0 is 8.
	PoolSize int
	// Logger gets what ends here, such as a snapshot that could not be saved; nil is none.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now. All time in the store comes from it.
	Now func() time.Time
}

// Store is where pools are kept: a Redis server, or the embedded store. It is safe for concurrent use.
type Store struct {
	client   *redis.Client
	scripts  scripts
	now      func() time.Time
	logger   *slog.Logger
	embedded *embedded   // nil for Redis
	changed  atomic.Bool // a script was sent since the last snapshot
	senders  senders
}

// senders are the goroutines that a store waits for when it is closed. None starts afterwards.
type senders struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func (s *senders) start(send func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(send)
	return true
}

func (s *senders) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// Open gives the store. With Redis it neither dials nor waits: each call does, and says
// ErrUnavailable while Redis is away. The embedded store is loaded from its file; it is an error
// when the file is damaged, or when another process has the state directory.
func Open(options Options) (*Store, error) {
	s := &Store{scripts: newScripts(), now: options.Now, logger: options.Logger}
	if s.now == nil {
		s.now = time.Now
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if options.URL == "" {
		if err := s.openEmbedded(options); err != nil {
			return nil, err
		}
		return s, nil
	}
	client, err := newClient(options, nil)
	if err != nil {
		return nil, err
	}
	s.client = client
	return s, nil
}

// Embedded says whether this is the embedded store.
func (s *Store) Embedded() bool { return s.embedded != nil }

// Run does what the store needs to have done while it is used, until ctx ends: the embedded store
// is saved whenever it has changed, every 5 s. It returns nil.
func (s *Store) Run(ctx context.Context) error {
	if s.embedded == nil {
		<-ctx.Done()
		return nil
	}
	return s.saveRegularly(ctx)
}

// Close saves the embedded store, if it has changed, and ends all connections. Calls that are
// under way fail.
func (s *Store) Close() error {
	if s.embedded != nil {
		return s.closeEmbedded()
	}
	defer s.senders.close() // what they send fails from now on
	return s.client.Close()
}

// Ping asks the server whether it is there; ErrUnavailable when not.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping: %w", readError(err))
	}
	return nil
}

// ServerInfo names the server and its version, such as "redis 7.0.15", "valkey 8.1.1" or "embedded".
func (s *Store) ServerInfo(ctx context.Context) (string, error) {
	if s.embedded != nil {
		return "embedded", nil
	}
	ctx, cancel := withBudget(ctx)
	defer cancel()
	text, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("info: %w", readError(err))
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	if version := fields["valkey_version"]; version != "" {
		return "valkey " + version, nil
	}
	return "redis " + fields["redis_version"], nil
}
