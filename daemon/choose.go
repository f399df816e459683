package daemon

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"evenpool/daemon/api"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// What of the lists is offered, where not all can be. Two things limit it: a pool
// has room for so many, and a network is asked so much (RELIABILITY L4). Which
// ones it is must be
//
//   - the same at every fetch and on every host: else each fetch would push out
//     of the store what the one before brought in, and nothing would ever be
//     probed twice;
//   - fair between sources: in turns, so that a list of 200,000 does not push out
//     one of 100;
//   - not neighbours: offered one after the other, they would be probed in one
//     burst;
//   - another one on another day, so that everything has its turn.
//
// So each day has an order of all endpoints that looks random and depends on
// nothing but the pool's name, the date and the endpoint, and of each list the
// first in that order are taken.

// ranked is an endpoint with its place in the day's order.
type ranked struct {
	rank     uint64
	endpoint proxyurl.Endpoint
}

// dayOrder seeds the order of a pool's day, in UTC.
func dayOrder(pool string, now time.Time) uint64 {
	h := fnv.New64a()
	h.Write([]byte(pool + " " + strconv.FormatInt(now.Unix()/(24*60*60), 10)))
	return h.Sum64()
}

// rankOf is where an endpoint stands in an order. Two that stand at the same place,
// of which there are none in practice, count as one.
func rankOf(order uint64, endpoint string) uint64 {
	h := order
	for i := range len(endpoint) { // FNV-1a, from another beginning
		h = (h ^ uint64(endpoint[i])) * 1099511628211
	}
	// The finalizer of SplitMix64: FNV leaves the high bits of like texts alike.
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// rank puts endpoints into an order.
func rank(order uint64, endpoints []proxyurl.Endpoint) []ranked {
	list := make([]ranked, len(endpoints))
	for i, e := range endpoints {
		list[i] = ranked{rankOf(order, e.String()), e}
	}
	slices.SortFunc(list, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	return list
}

// named is what one source names, in the day's order.
type named struct {
	list  []ranked
	allow proxyurl.Allow
}

// choice is what of the sources' lists is offered.
type choice struct {
	chosen map[uint64]struct{} // ranks
	cut    []api.Counts        // of each source: what is not, by reason
	demand []int               // of each source: how many it would offer if there were room
}

// noRoom is the reason for what is not offered since the pool's max_candidates are.
const noRoom = "pool-full"

// choose takes from each source in turns, until nothing is left or there is no
// room for more. Others, on other hosts, have their turns too: each takes as much
// as it asks for, and what it takes is not ours to offer. What two sources name is
// taken by whoever comes to it first, and counts once.
func choose(lists []named, others []int, room int) choice {
	c := choice{chosen: map[uint64]struct{}{}, cut: make([]api.Counts, len(lists)), demand: make([]int, len(lists))}
	others = slices.Clone(others)
	next := make([]int, len(lists))
	var flood sources.Flood
	// turn takes one endpoint of a source; false when it has none left.
	turn := func(i int) bool {
		for next[i] < len(lists[i].list) {
			r := lists[i].list[next[i]]
			next[i]++
			if _, taken := c.chosen[r.rank]; taken {
				continue
			}
			_, why := flood.Take(r.endpoint, lists[i].allow)
			if why == "" {
				c.demand[i]++
				if room > 0 {
					room--
					c.chosen[r.rank] = struct{}{}
					return true
				}
				why = noRoom
			}
			if c.cut[i] == nil {
				c.cut[i] = api.Counts{}
			}
			c.cut[i][why]++
		}
		return false
	}
	for more := true; more; {
		more = false
		for i := range lists {
			more = turn(i) || more
		}
		for i := range others {
			if others[i] > 0 && room > 0 {
				others[i]--
				room--
			}
		}
	}
	return c
}
