package judge

import (
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

// limiter is a token bucket for each asker, in the form that needs one number
// (GCRA, ITU-T I.371): the time at which the bucket would be full again. An idle
// asker's number lies in the past, which says the same as none; so a table of
// fixed size, with a place by hash and no keys, forgets by itself. Two askers at
// one place share a bucket. Nobody can choose to: the hash has a secret seed.
type limiter struct {
	seed  maphash.Seed
	full  [1 << 16]atomic.Int64 // nanoseconds since start
	start time.Time
}

func newLimiter() *limiter { return &limiter{seed: maphash.MakeSeed(), start: time.Now()} }

// take takes a token of those that come back at a rate a second, up to burst.
func (l *limiter) take(asker netip.Addr, rate float64, burst int) bool {
	now := int64(time.Since(l.start))
	each := int64(float64(time.Second) / rate)
	place := &l.full[maphash.Comparable(l.seed, network(asker))%uint64(len(l.full))]
	for {
		was := place.Load()
		full := max(was, now) + each
		if full-now > each*int64(max(burst, 1)) {
			return false
		}
		if place.CompareAndSwap(was, full) {
			return true
		}
	}
}

// network is what counts as one asker: an IPv4 address, or an IPv6 /64, since
// that many addresses belong to everybody.
func network(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 32
	}
	p, _ := a.WithZone("").Prefix(bits) // invalid stays invalid: all of those are one
	return p
}
