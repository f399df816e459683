package alloc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// saveEvery is how often the embedded store is saved when it has changed: the most that a kill
// costs.
const saveEvery = 5 * time.Second

// snapshotName is the file in the state directory that the embedded store is kept in.
const snapshotName = "embedded.snapshot"

// embedded is a Redis in this process. Only its client reaches it, through memory.
type embedded struct {
	server *miniredis.Miniredis
	lock   *os.File // of the state directory
	path   string   // of the snapshot

	saving sync.Mutex            // one snapshot at a time
	failed atomic.Pointer[error] // why the last save failed, which was said; nil when it did not
	closed bool
}

func (s *Store) openEmbedded(options Options) (err error) {
	if options.StateDir == "" {
		return errors.New("embedded store: no state directory; set state_dir, or redis.url for a Redis server")
	}
	if err := os.MkdirAll(options.StateDir, 0o700); err != nil {
		return fmt.Errorf("embedded store: %w", err)
	}
	lock, err := lockFile(filepath.Join(options.StateDir, "embedded.lock"))
	if err != nil {
		return fmt.Errorf("embedded store: %w", err)
	}
	e := &embedded{
		server: miniredis.NewMiniRedis(),
		lock:   lock,
		path:   filepath.Join(options.StateDir, snapshotName),
	}
	defer func() {
		if err != nil {
			e.server.Close()
			lock.Close()
		}
	}()
	options.Username, options.Password = "", ""
	if s.client, err = memoryClient(options, e.server); err != nil {
		return err
	}
	s.embedded = e
	if err := loadSnapshot(e.path, s.client); err != nil {
		s.client.Close()
		return fmt.Errorf("embedded store: %w", err)
	}
	return nil
}

// memoryClient gives a client that reaches a server in this process through memory.
func memoryClient(options Options, server *miniredis.Miniredis) (*redis.Client, error) {
	return newClient(options, func(context.Context, string, string) (net.Conn, error) {
		conn, err := server.Dial()
		if err != nil {
			return nil, err
		}
		return newMemConn(conn), nil
	})
}

// lockFile takes a file for this process alone, until it is closed. The kernel lets go of it when
// the process dies, however it does.
func lockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w; end it, or give this one its own", path, ErrStateDirTaken)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return file, nil
}

func (s *Store) saveRegularly(ctx context.Context) error {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			s.saveAndTell(ctx)
		}
	}
}

// saveAndTell saves, and logs when saving begins to fail and when it works again.
func (s *Store) saveAndTell(ctx context.Context) {
	err := s.save(ctx)
	if ctx.Err() != nil {
		return
	}
	e := s.embedded
	if err == nil {
		if e.failed.Swap(nil) != nil {
			s.logger.Info("embedded store saved again", "path", e.path)
		}
	} else if e.failed.Swap(&err) == nil {
		s.logger.Error("embedded store not saved", "path", e.path, "error", err)
	}
}

// SaveError gives why the embedded store could not be saved when it last tried; nil when it could,
// and for a Redis.
func (s *Store) SaveError() error {
	if s.embedded == nil {
		return nil
	}
	if failed := s.embedded.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// save writes a snapshot if a script was sent since the last one.
func (s *Store) save(ctx context.Context) error {
	e := s.embedded
	e.saving.Lock()
	defer e.saving.Unlock()
	if e.closed || !s.changed.Swap(false) {
		return nil
	}
	ctx, cancel := withBudget(ctx)
	defer cancel()
	if err := saveSnapshot(ctx, e.path, s.client); err != nil {
		s.changed.Store(true)
		return err
	}
	return nil
}

func (s *Store) closeEmbedded() error {
	err := s.save(context.Background())
	e := s.embedded
	e.saving.Lock()
	defer e.saving.Unlock()
	if e.closed {
		return redis.ErrClosed
	}
	e.closed = true
	err = errors.Join(err, s.client.Close())
	e.server.Close()
	return errors.Join(err, e.lock.Close())
}
