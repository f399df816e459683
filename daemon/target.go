package daemon

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"evenpool/probe"
)

// target is a page that pools require to be reached. It is asked by one at a time and
// left alone for a while after each, by all pools together, control probes included.
//
// So a failure cannot be bracketed by two controls within its slice. Proxies are sent
// to it as long as its last control was well, and after one that failed there the next
// turn is a control's. Only if that is well, the failure counts: with the proxy's next
// round. In an outage of the target nothing is held against anybody.
type target struct {
	probe.Target
	every   time.Duration
	spacing probe.Spacing

	mu       sync.Mutex
	well     bool                // its last control was, and nobody failed at it since
	sick     bool                // its last control was not
	booked   time.Time           // the last turn that a proxy is to come back for
	suspects map[string]*suspect // by endpoint: who failed at it
}

// suspect is a proxy that failed at a target.
type suspect struct {
	check  probe.Check
	at     time.Time
	proven bool // the target was well, before and after
}

// suspectLife is how long a failure is remembered that nobody asked for again.
const suspectLife = 24 * time.Hour

func newTarget(t probe.Target, every time.Duration) *target {
	return &target{Target: t, every: every, suspects: map[string]*suspect{}}
}

// control asks the target directly, if that is called for and its turn has come.
func (t *target) control(ctx context.Context, prober *probe.Prober, log *slog.Logger) {
	t.mu.Lock()
	well := t.well
	t.mu.Unlock()
	if well || !t.spacing.Take(t.every, time.Now()) {
		return
	}
	check := prober.ControlTarget(ctx, t.Target)
	now := time.Now()
	t.spacing.Done(t.every, now)
	if ctx.Err() != nil {
		return // cancelled: no word on the target
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	wasSick := t.sick
	t.well, t.sick = check.Outcome == probe.OK, check.Outcome != probe.OK
	for endpoint, s := range t.suspects {
		s.proven = s.proven || t.well
		if !s.proven || now.Sub(s.at) > suspectLife {
			delete(t.suspects, endpoint)
		}
	}
	if t.sick && !wasSick {
		log.Error("a target does not answer us rightly; nobody is asked for it until it does", "target", t.Name,
			"outcome", check.Outcome, "detail", check.Detail)
	} else if !t.sick && wasSick {
		log.Info("a target answers rightly again", "target", t.Name)
	}
}

// turn takes the target's turn for a proxy; nil when it has not come.
func (t *target) turn() (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.well || !t.spacing.Take(t.every, time.Now()) {
		return nil
	}
	return func() { t.spacing.Done(t.every, time.Now()) }
}

// note takes down how a proxy did, and says whether that stands as it is. What is our
// own fault tells nothing. What nobody but the proxy or the target can be at fault for
// is a failure; that the target's own certificate is not what comes through, too.
func (t *target) note(endpoint string, c probe.Check) (stands bool) {
	class := c.Outcome.Class()
	if class != probe.ClassProxy && class != probe.ClassSecurity {
		return class == probe.ClassOK
	}
	if class == probe.ClassSecurity {
		c.Outcome = probe.TargetFailed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.well = false
	t.suspects[endpoint] = &suspect{check: c, at: time.Now()}
	return false
}

// suspected says whether a proxy failed at the target when it was asked last, and
// whether that is proven.
func (t *target) suspected(endpoint string) (suspected, proven bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, suspected := t.suspects[endpoint]
	return suspected, suspected && s.proven
}

// failed returns the failure that is proven against a proxy, once.
func (t *target) failed(endpoint string) (check probe.Check, proven bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, suspected := t.suspects[endpoint]
	if !suspected || !s.proven {
		return probe.Check{}, false
	}
	delete(t.suspects, endpoint)
	return s.check, true
}

// book gives a proxy that has missed its turn one to come back for; false when there
// is none until then. Turns are booked a little further apart than they come, since
// questions take their time.
func (t *target) book(now, until time.Time) (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sick {
		return time.Time{}, false
	}
	at = t.spacing.Next(t.every, now)
	if behind := t.booked.Add(t.every + t.every/10 + 250*time.Millisecond); behind.After(at) {
		at = behind
	}
	if at.After(until) {
		return time.Time{}, false
	}
	t.booked = at
	return at, true
}

// sendTo chooses the targets that a proxy is asked for in this round: not those at
// which a failure is proven, which counts with this round.
func (c *cycle) sendTo(it *item) (names []string) {
	for _, name := range c.rules.TargetsOf(it.record, c.rules.RequireTargets, time.Now()) {
		if _, proven := c.target(name).suspected(it.claimed.Endpoint); !proven {
			names = append(names, name)
		}
	}
	return names
}

// reached leaves of a round's answers from targets what stands.
func (c *cycle) reached(it *item) {
	for i := range it.round.Results {
		r := &it.round.Results[i]
		r.Targets = slices.DeleteFunc(r.Targets, func(check probe.Check) bool {
			return !c.target(check.Target).note(it.claimed.Endpoint, check)
		})
	}
}

// proven adds to a round what is proven against the proxy by now.
func (c *cycle) proven(it *item) {
	for i := range it.round.Results {
		r := &it.round.Results[i]
		for _, t := range c.targets {
			if r.Outcome != probe.OK {
				continue
			}
			if check, proven := t.failed(it.claimed.Endpoint); proven {
				r.Targets = append(r.Targets, check)
			}
		}
	}
}

// comeBack books the turns that an item misses; false if it has to wait for the next
// cycle, or for a control.
func (c *cycle) comeBack(it *item, now time.Time) (at time.Time, ok bool) {
	if it.record.Member != "" || !it.round.Verdict.AwaitsTargets() {
		return time.Time{}, false
	}
	for _, name := range c.rules.TargetsOf(it.record, c.rules.RequireTargets, now) {
		t := c.target(name)
		if suspected, _ := t.suspected(it.claimed.Endpoint); suspected {
			return time.Time{}, false
		}
		booked, ok := t.book(now, c.probeUntil)
		if !ok {
			return time.Time{}, false
		}
		if booked.After(at) {
			at = booked
		}
	}
	return at, !at.IsZero()
}

// target returns one of the pool's targets by its name.
func (p *pool) target(name string) *target {
	for _, t := range p.targets {
		if t.Name == name {
			return t
		}
	}
	return nil // the configuration has seen to it that there is one
}
