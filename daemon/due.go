package daemon

import (
	"math/rand/v2"
	"time"
)

const (
	// maxBackoffSteps caps how many runs of the schedule a dead candidate waits.
	maxBackoffSteps = 32
	// maxWorkingSteps caps it for one that works and breaks another rule, such as one
	// that is too slow: that may be over soon.
	maxWorkingSteps = 4
)

// dueInput is what is known of an endpoint when its next probe is planned.
type dueInput struct {
	now, nextRun time.Time     // nextRun: the schedule's next run
	interval     time.Duration // between two runs of the schedule
	member       bool
	passes       int  // passes in a row
	fails        int  // counted failures in a row
	works        bool // it did all that was asked for when it was asked last
	rise         int
	confirmAfter time.Duration
	spread       time.Duration // candidates come this much before the run at most
}

// nextProbe says when an endpoint is to be probed again. Members, and whatever
// is not decided, come with the next run; a newcomer on its way in comes within
// the same cycle; a dead candidate waits twice as many runs after each failure,
// up to a cap that is lower for one that works, at a random place in the second half of that wait, so that those
// that died together do not come back together.
//
// Candidates of one run are due within spread before it. They are claimed by their
// due times, and among equals by their bytes: then neighbours would be asked
// together, and a network would get all of its probes in one burst.
func nextProbe(in dueInput, random *rand.Rand) time.Time {
	switch {
	case in.member:
		return in.nextRun
	case in.passes > 0 && in.passes < in.rise:
		return in.now.Add(in.confirmAfter)
	}
	steps := 1
	if in.fails > 0 {
		most := maxBackoffSteps
		if in.works {
			most = maxWorkingSteps
		}
		steps = min(1<<min(in.fails-1, 30), most)
		if steps > 2 {
			steps -= random.IntN(steps / 2)
		}
	}
	return shortlyBefore(in.nextRun.Add(time.Duration(steps-1)*in.interval), in.spread, random)
}

// shortlyBefore returns a random time within spread before at, or at itself. The
// store keeps whole milliseconds: the earliest is one later than spread would have
// it, so that a cycle whose time for probing ends there does not wait for it.
func shortlyBefore(at time.Time, spread time.Duration, random *rand.Rand) time.Time {
	if spread <= time.Millisecond {
		return at
	}
	return at.Add(-time.Duration(random.Int64N(int64(spread - time.Millisecond))))
}
