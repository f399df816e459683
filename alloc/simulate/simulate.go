// Package simulate shows what a start and a restore policy do to the spread of allocations: it plays
// a history of members that come and go on a scratch pool, the same one for each policy.
//
// Which count a proxy gets is decided by the real settle script. Between two changes the allocations
// follow from the counts alone: most are worked out here, and the last of each stretch are made by the
// real allocate script. An answer, a retired count or a set that differs is an error.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"evenpool/alloc"
)

// Policy is a start and a restore policy.
type Policy struct {
	Start   alloc.Policy `json:"start"`
	Restore alloc.Policy `json:"restore"`
}

// Policies gives the pairs that show what each word does: each restore policy beside the default
// start policy, each start policy beside the default restore policy, and zero for all.
func Policies() []Policy {
	return []Policy{
		{"min", "floor"}, {"min", "min"}, {"min", "median"}, {"min", "max"}, {"min", "keep"}, {"min", "zero"},
		{"median", "floor"}, {"max", "floor"}, {"zero", "floor"}, {"zero", "zero"},
	}
}

// Options says what is asked of the pool, and how it is looked at.
type Options struct {
	Rate   float64       // allocations a second, at an even pace; more than 0
	Window time.Duration // what shares are of; long enough for one allocation
	Made   *atomic.Int64 // counts up by what was allocated, of all policies together; may be nil
	// checked is how many of the last allocations between two changes the real script makes, at
	// least; 0 is 256, which is a round and more of a common pool.
	checked int
}

const defaultChecked = 64

// MaxAllocations is how many allocations one history may ask for.
const MaxAllocations = 1_000_000_000

// Result is what became of one policy.
type Result struct {
	Policy
	Allocations int64 `json:"allocations"`
	Unserved    int64 `json:"unserved"` // asked for while the pool was empty
	// LargestShare is the largest part, 0 to 1, of the allocations of one window that one proxy got.
	LargestShare float64 `json:"largest_share"`
	// LongestRun is how many allocations in a row went to one proxy.
	LongestRun int64 `json:"longest_run"`
	// Spread is the highest count less the lowest: at its largest, and the mean of the windows' largest.
	MaxSpread  int64   `json:"max_spread"`
	MeanSpread float64 `json:"mean_spread"`
	// Gini is the coefficient of the members' counts, 0 (all have the same) to 1, at the windows' ends.
	MaxGini  float64 `json:"max_gini"`
	MeanGini float64 `json:"mean_gini"`
	// OverTime has the largest values of stretches of PointWindows windows each (the last may be
	// shorter), the first first, at most 144.
	OverTime     []Point `json:"over_time"`
	PointWindows int     `json:"point_windows"`
}

// Point is what was seen in one stretch of time, at its largest.
type Point struct {
	Share  float64 `json:"share"`
	Run    int64   `json:"run"`
	Spread int64   `json:"spread"`
	Gini   float64 `json:"gini"`
}

// Max gives the larger of each.
func (p Point) Max(q Point) Point {
	return Point{max(p.Share, q.Share), max(p.Run, q.Run), max(p.Spread, q.Spread), max(p.Gini, q.Gini)}
}

// Run plays a history for each policy and gives the results in their order, the same each time.
func Run(ctx context.Context, h History, policies []Policy, o Options) ([]Result, error) {
	if err := o.Check(h); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]Result, len(policies))
	next := make(chan int, len(policies))
	for i := range policies {
		next <- i
	}
	close(next)
	var players sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(policies)) {
		players.Go(func() {
			for i := range next {
				result, err := playOne(ctx, h, policies[i], o)
				if err != nil {
					cancel(fmt.Errorf("start %s, restore %s: %w", policies[i].Start, policies[i].Restore, err))
					return
				}
				results[i] = result
			}
		})
	}
	players.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

// Check says what about the options does not go together with a history.
func (o Options) Check(h History) error {
	switch asked := o.Rate * h.Length.Seconds(); {
	case !(o.Rate > 0):
		return fmt.Errorf("a rate of %g allocations a second: want more than 0", o.Rate)
	case asked > MaxAllocations:
		return fmt.Errorf("%.0f allocations: want at most %d; lower the rate, or shorten the time", asked, MaxAllocations)
	case o.Rate*o.Window.Seconds() < 1:
		return fmt.Errorf("a window of %s has less than one allocation: raise the rate, or lengthen the window", o.Window)
	case o.Window > h.Length:
		return fmt.Errorf("a window of %s is longer than the whole time, %s", o.Window, h.Length)
	}
	return nil
}

// playOne plays one policy on a pool of its own.
func playOne(ctx context.Context, h History, policy Policy, o Options) (result Result, err error) {
	p, err := newPlayer(h, policy, o)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, p.scratch.Close()) }()
	if err := p.play(ctx, h, o.Rate); err != nil {
		return Result{}, err
	}
	return p.look.result(), nil
}
