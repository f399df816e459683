package sources

import (
	"encoding/binary"
	"hash/maphash"

	"evenpool/sources/proxyurl"
)

// entry is a candidate while the list is read. Of an IPv4 address and a port
// alone, which nearly all are, it is all that is kept until the end.
type entry struct {
	addr   uint32 // IPv4; for another endpoint its place in index.others
	port   uint16 // 0 for another endpoint
	hint   uint16
	claims claims
}

// index holds the entries of a list, in order, and finds them. It is a hash table
// with open addressing; each slot holds 1 more than an entry's place, 0 for none,
// and above that a part of the hash. A map of the language does the same in three
// times the time and several times the memory, and that is most of what reading a
// list costs.
type index struct {
	entries pieces[entry]
	others  pieces[proxyurl.Endpoint] // all that are no IPv4 address and a port alone

	slots []uint32 // 2^bits
	bits  int
	// seeds, so that no list is made to have all its addresses in one slot.
	seed   uint64
	strong maphash.Seed
}

// A table begins with 2^firstBits slots. It grows by four times, from manyBits on
// by two.
const (
	firstBits = 12
	manyBits  = 18
)

func newIndex() *index {
	x := &index{strong: maphash.MakeSeed()}
	x.seed = maphash.Comparable(x.strong, 0) | 1
	x.resize(firstBits)
	return x
}

func (x *index) resize(bits int) { x.bits, x.slots = bits, make([]uint32, 1<<bits) }

// hashDotted mixes an address, a port and the seed (multiplicative hashing, Knuth
// volume 3, section 6.4, twice, with the upper half folded in between).
func (x *index) hashDotted(addr uint32, port uint16) uint64 {
	h := (uint64(addr)<<16 | uint64(port)) ^ x.seed
	h *= 0x9e3779b97f4a7c15
	return (h ^ h>>32) * x.seed
}

func (x *index) hashOther(e proxyurl.Endpoint) uint64 { return maphash.Comparable(x.strong, e) }

// dotted returns the entry of an IPv4 address and a port, nil where there is none,
// and the hash to add one with.
func (x *index) dotted(addr uint32, port uint16) (at *entry, hash uint64) {
	hash = x.hashDotted(addr, port)
	mask := len(x.slots) - 1
	tag := uint32(hash) &^ uint32(mask)
	for slot := int(hash >> (64 - x.bits)); ; slot++ {
		held := x.slots[slot&mask]
		if held == 0 {
			return nil, hash
		}
		if held&^uint32(mask) == tag {
			if e := x.entries.at(int(held&uint32(mask)) - 1); e.addr == addr && e.port == port {
				return e, hash
			}
		}
	}
}

// other is dotted for every other endpoint.
func (x *index) other(endpoint proxyurl.Endpoint) (at *entry, hash uint64) {
	hash = x.hashOther(endpoint)
	mask := len(x.slots) - 1
	tag := uint32(hash) &^ uint32(mask)
	for slot := int(hash >> (64 - x.bits)); ; slot++ {
		held := x.slots[slot&mask]
		if held == 0 {
			return nil, hash
		}
		if held&^uint32(mask) == tag {
			if e := x.entries.at(int(held&uint32(mask)) - 1); e.port == 0 && *x.others.at(int(e.addr)) == endpoint {
				return e, hash
			}
		}
	}
}

// addOther is add for what is no IPv4 address and a port alone.
func (x *index) addOther(endpoint proxyurl.Endpoint, said entry, hash uint64) {
	said.addr, said.port = uint32(x.others.n), 0
	x.others.add(endpoint)
	x.add(said, hash)
}

// add adds an entry that is not there.
func (x *index) add(e entry, hash uint64) {
	x.entries.add(e)
	x.put(x.entries.n, hash)
	if 4*x.entries.n < 3*len(x.slots) { // and so a place has no bits above the mask's
		return
	}
	if x.bits < manyBits {
		x.resize(x.bits + 2)
	} else {
		x.resize(x.bits + 1)
	}
	for place := range x.entries.n {
		e := x.entries.at(place)
		if e.port != 0 {
			x.put(place+1, x.hashDotted(e.addr, e.port))
		} else {
			x.put(place+1, x.hashOther(*x.others.at(int(e.addr))))
		}
	}
}

func (x *index) put(held int, hash uint64) {
	mask := len(x.slots) - 1
	slot := int(hash >> (64 - x.bits))
	for x.slots[slot&mask] != 0 {
		slot++
	}
	x.slots[slot&mask] = uint32(hash)&^uint32(mask) | uint32(held)
}

// endpoint returns what an entry is of.
func (x *index) endpoint(e *entry) proxyurl.Endpoint {
	if e.port == 0 {
		return *x.others.at(int(e.addr))
	}
	var addr [4]byte
	binary.BigEndian.PutUint32(addr[:], e.addr)
	return proxyurl.DottedEndpoint(addr, e.port)
}

// pieces is a slice in pieces, so that nothing is copied when there is more.
type pieces[T any] struct {
	full [][]T // all but the last are full
	n    int
}

const pieceBits = 12

func (p *pieces[T]) at(place int) *T {
	return &p.full[place>>pieceBits][place&(1<<pieceBits-1)]
}

func (p *pieces[T]) add(one T) {
	in := p.n & (1<<pieceBits - 1)
	if in == 0 {
		p.full = append(p.full, make([]T, 1<<pieceBits))
	}
	p.full[len(p.full)-1][in] = one
	p.n++
}
