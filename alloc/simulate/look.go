package simulate

import (
	"slices"

	"evenpool/alloc"
)

// maxPoints is how many points Result.OverTime has at most: one for each 10 minutes of a day.
const maxPoints = 144

// look watches allocations, window by window.
type look struct {
	policy  Policy
	total   int64 // allocations
	missed  int64 // requests without one
	windows []Point

	// Of the window that is open:
	size    int64   // how many requests it takes
	asked   int64   // how many there were
	served  int64   // how many of them got a member
	share   []int64 // by rank: how many that proxy got
	largest int64   // of share
	seen    Point   // Run and Spread

	last int   // the rank that the last allocation went to
	run  int64 // how many in a row it has had
}

func newLook(policy Policy, window int64, proxies int) *look {
	return &look{policy: policy, size: window, share: make([]int64, proxies), last: -1}
}

// allocated notes that a proxy was allocated, which the queue has counted.
func (l *look) allocated(rank int, q queue) {
	l.total++
	l.served++
	l.share[rank]++
	l.largest = max(l.largest, l.share[rank])
	if rank != l.last {
		l.last, l.run = rank, 0
	}
	l.run++
	l.seen.Run = max(l.seen.Run, l.run)
	if l.asked++; l.asked == l.size {
		l.close(q)
	}
}

// unserved notes requests that found the pool empty.
func (l *look) unserved(n int64) {
	l.missed += n
	for n > 0 {
		some := min(n, l.size-l.asked)
		n -= some
		if l.asked += some; l.asked == l.size {
			l.close(nil)
		}
	}
}

// changed notes how even the counts are now: when members came or went, and at the end of a window.
// Between these, allocations bring counts together only.
func (l *look) changed(q queue) {
	counts := make([]int64, len(q))
	for i, m := range q {
		counts[i] = m.count
	}
	evenness := alloc.EvennessOf(counts)
	l.seen.Spread = max(l.seen.Spread, evenness.Spread())
	l.seen.Gini = evenness.Gini
}

func (l *look) close(q queue) {
	l.changed(q)
	if l.served > 0 {
		l.seen.Share = float64(l.largest) / float64(l.served)
	}
	l.windows = append(l.windows, l.seen)
	l.asked, l.served, l.largest, l.seen = 0, 0, 0, Point{}
	clear(l.share)
}

// result sums up. The rest of a window that did not come to its end has no say.
func (l *look) result() Result {
	r := Result{Policy: l.policy, Allocations: l.total, Unserved: l.missed}
	var most Point
	for _, w := range l.windows {
		most = most.Max(w)
		r.MeanSpread += float64(w.Spread)
		r.MeanGini += w.Gini
	}
	if n := float64(len(l.windows)); n > 0 {
		r.MeanSpread, r.MeanGini = r.MeanSpread/n, r.MeanGini/n
	}
	r.LargestShare, r.LongestRun, r.MaxSpread, r.MaxGini = most.Share, most.Run, most.Spread, most.Gini
	r.OverTime = Fewer(l.windows, maxPoints)
	r.PointWindows = each(len(l.windows), maxPoints)
	return r
}

// Fewer gives n points or less, of stretches of equal length (the last may be shorter), at their
// largest.
func Fewer(points []Point, n int) []Point {
	out := make([]Point, 0, n)
	for some := range slices.Chunk(points, each(len(points), n)) {
		var most Point
		for _, p := range some {
			most = most.Max(p)
		}
		out = append(out, most)
	}
	return out
}

// each is how many of some points become one, so that n are left at most.
func each(points, n int) int { return max(1, (points+n-1)/n) }
