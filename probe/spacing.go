package probe

import (
	"sync"
	"time"
)

// Spacing sees to it that no target is asked more often than once in its interval,
// over all proxies and pools that share it. The zero value is ready. It is safe for
// concurrent use.
type Spacing struct {
	mu   sync.Mutex
	next map[string]time.Time // by name: when the next may ask
}

// Take takes a target's turn if it has come. It is to be called when a proxy has
// shown all else and is about to be asked for the target: a turn that is taken is
// gone, and the dead would take them all. A turn that nobody took is lost: after a
// pause there is one, not many.
func (s *Spacing) Take(target string, interval time.Duration, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A clock that was put back must not silence a target for as long.
	if next, known := s.next[target]; known && now.Before(next) && next.Sub(now) <= interval {
		return false
	}
	if s.next == nil {
		s.next = map[string]time.Time{}
	}
	s.next[target] = now.Add(interval)
	return true
}
