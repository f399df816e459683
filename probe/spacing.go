package probe

import (
	"sync"
	"time"
)

// Spacing sees to it that a target is left alone for its interval between the end of
// one question and the beginning of the next, over all proxies and pools that share
// it. The zero value is ready. It is safe for concurrent use.
type Spacing struct {
	mu    sync.Mutex
	next  time.Time // when the next may ask
	asked bool      // somebody asks now
}

// Take takes the target's turn if it has come; call Done when the question has ended.
// It is to be called when a proxy has shown all else and is about to be asked for the
// target: a turn that is taken is gone, and the dead would take them all. A turn that
// nobody took is lost: after a pause there is one, not many.
func (s *Spacing) Take(interval time.Duration, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A clock that was put back must not silence a target for as long.
	if s.asked || now.Before(s.next) && s.next.Sub(now) <= interval {
		return false
	}
	s.asked = true
	return true
}

// Done ends the turn that was taken.
func (s *Spacing) Done(interval time.Duration, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.next = false, now.Add(interval)
}

// Next says when the next turn comes, not before now. One that is taken at present is
// taken to end now.
func (s *Spacing) Next(interval time.Duration, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.asked:
		return now.Add(interval)
	case now.Before(s.next) && s.next.Sub(now) <= interval:
		return s.next
	}
	return now
}
