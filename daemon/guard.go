package daemon

import (
	"fmt"
	"time"

	"evenpool/daemon/api"
	"evenpool/daemon/config"
)

// panicAtLeast is the number of failing members below which mass failure is not
// spoken of: in a pool of three, two that fail are no sign of anything.
const panicAtLeast = 5

// guardInput is what the members' slice of a cycle showed.
type guardInput struct {
	members     int       // in the pool
	good        int       // members asked that were good in the cycle before; in a freeze, all members asked
	failing     int       // of these, those that fail in this one
	due         int       // members due to be retired, security apart
	frozenSince time.Time // when the freeze that is under way began; zero for none
	now         time.Time
}

// guardDecision says what the guard lets through.
type guardDecision struct {
	state       string    // one of api.GuardNormal, api.GuardHeld, api.GuardFrozen
	budget      int       // how many of the members that are due may be retired
	frozenSince time.Time // when a mass failure that is under way began; zero for none
	why         string    // a sentence; "" when the state is normal
}

// guard decides how many members a cycle may retire. A mass failure is taken for
// the observer's fault (Envoy's panic threshold), but not for longer than
// MaxFreeze: a freeze that never ends keeps the dead for good. Its beginning is
// remembered until the members are no longer failing in mass, so that a freeze
// which has run out does not begin anew in the next cycle. Otherwise a cycle
// retires at most a share of the members, one at least (Envoy's
// max_ejection_percent).
func guard(cfg config.Guard, in guardInput) guardDecision {
	d := guardDecision{state: api.GuardNormal, budget: max(1, cfg.MaxRetired.Of(in.members))}
	if in.failing >= panicAtLeast && in.failing*100 > int(cfg.PanicAbove)*in.good {
		d.frozenSince = in.frozenSince
		if d.frozenSince.IsZero() {
			d.frozenSince = in.now
		}
		if in.now.Sub(d.frozenSince) < cfg.MaxFreeze {
			d.state, d.budget = api.GuardFrozen, 0
			d.why = fmt.Sprintf("%d of %d good members failed at once, above panic_above %s: nothing is retired until %s",
				in.failing, in.good, cfg.PanicAbove, d.frozenSince.Add(cfg.MaxFreeze).UTC().Format(time.RFC3339))
			return d
		}
	}
	if in.due > d.budget {
		d.state = api.GuardHeld
		d.why = fmt.Sprintf("%d members are due to be retired, max_retired %s of %d allows %d in a cycle",
			in.due, cfg.MaxRetired, in.members, d.budget)
	}
	return d
}
