package simulate

import (
	"cmp"
	"slices"
)

// member is one of the pool; its rank is its place among all names by their bytes.
type member struct {
	count int64
	rank  int
}

func (m member) less(n member) bool {
	return m.count < n.count || m.count == n.count && m.rank < n.rank
}

func (m member) compare(n member) int {
	return cmp.Or(cmp.Compare(m.count, n.count), cmp.Compare(m.rank, n.rank))
}

// queue is a heap of members, the next one first: none is behind those at twice its place and one or
// two more.
type queue []member

func newQueue(counts map[int]int64) queue {
	q := make(queue, 0, len(counts))
	for rank, count := range counts {
		q = append(q, member{count, rank})
	}
	slices.SortFunc(q, member.compare) // which is a heap, too
	return q
}

// next counts one allocation more for the member that is next, and gives it with its new count.
func (q queue) next() member {
	q[0].count++
	top := q[0]
	// As heap.Fix would, without its calls through an interface: this is where the time goes.
	at := 0
	for {
		child := 2*at + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].less(q[child]) {
			child++
		}
		if !q[child].less(top) {
			break
		}
		q[at] = q[child]
		at = child
	}
	q[at] = top
	return top
}

func (q queue) counts() map[int]int64 {
	counts := make(map[int]int64, len(q))
	for _, m := range q {
		counts[m.rank] = m.count
	}
	return counts
}
