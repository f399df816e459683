package sources

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"net/netip"

	"evenpool/sources/proxyurl"
)

// maxSamples bounds List.Samples, sampleBytes the text of one.
const (
	maxSamples  = 5
	sampleBytes = 120
)

// collector gathers records into a List. For each record a format calls begin,
// and then, for every address in it, one of the take methods or reject.
type collector struct {
	src      Source
	limits   Limits
	fallback claims // of a record that names no scheme

	list    List
	number  int            // of the record that is read now
	formats map[string]int // how many records each has
	markup  bool           // the list begins like HTML or XML

	// Of an address and a port alone, which nearly all are, a few bytes are kept
	// until the end.
	index *index
	hints hints

	accepted int // claims of candidates, not counting repeats
	users    bool
}

func newCollector(src Source, limits Limits) *collector {
	return &collector{
		src: src, limits: limits, fallback: claimOf(src.Scheme),
		list:    List{Source: src.Name},
		formats: make(map[string]int),
		index:   newIndex(),
	}
}

// begin counts a record.
func (c *collector) begin(number int) {
	c.list.Records++
	c.number = number
}

// take takes in an endpoint, or says why not.
func (c *collector) take(e proxyurl.Endpoint, named claims, hint Hint) Reason {
	named = cmp.Or(named, c.fallback)
	addr, isAddr := e.Addr()
	switch {
	case isAddr && addr.Is4() && !e.HasUser():
		return c.take4(addr.As4(), e.Port(), named, c.hints.of(hint))
	case named == 0:
		return ReasonNoScheme
	case isAddr:
		if err := c.src.Allow.Check(addr); err != nil {
			return reasonOf(err)
		}
	}
	switch at, hash := c.index.other(e); {
	case at != nil:
		c.again(at, named, c.hints.of(hint))
	case c.index.entries.n >= c.limits.MaxCandidates:
		return ReasonTooMany
	default:
		c.index.addOther(e, entry{claims: named, hint: c.hints.of(hint)}, hash)
		c.accepted += bits.OnesCount8(uint8(named))
		c.users = c.users || e.HasUser()
	}
	return ""
}

// take4 is take for an IPv4 address and a port, and the number of a hint.
func (c *collector) take4(addr [4]byte, port uint16, named claims, hint uint16) Reason {
	if named == 0 {
		return ReasonNoScheme
	}
	if !proxyurl.PublicDotted(addr) {
		if err := c.src.Allow.Check(netip.AddrFrom4(addr)); err != nil {
			return reasonOf(err)
		}
	}
	number := binary.BigEndian.Uint32(addr[:])
	switch at, hash := c.index.dotted(number, port); {
	case at != nil:
		c.again(at, named, hint)
	case c.index.entries.n >= c.limits.MaxCandidates:
		return ReasonTooMany
	default:
		c.index.add(entry{addr: number, port: port, claims: named, hint: hint}, hash)
		c.accepted += bits.OnesCount8(uint8(named))
	}
	return ""
}

// again takes in what a list says of an endpoint that it has named before.
func (c *collector) again(e *entry, named claims, hint uint16) {
	c.list.Duplicates += bits.OnesCount8(uint8(named & e.claims))
	c.accepted += bits.OnesCount8(uint8(named &^ e.claims))
	e.claims |= named
	if e.hint == 0 {
		e.hint = hint
	}
}

// takeRecord takes in what a line says, or rejects it.
func (c *collector) takeRecord(r record, line string) {
	reason := r.reject
	if reason == "" {
		reason = c.take(r.endpoint, r.claims, r.hint)
	}
	if reason != "" {
		c.reject(reason, line, showLine)
	}
}

// reject counts what gave no candidate. show makes of raw what is safe to show.
func (c *collector) reject(reason Reason, raw string, show func(raw string) string) {
	if c.list.Rejects == nil {
		c.list.Rejects = make(map[Reason]int)
	}
	c.list.Rejects[reason]++
	if len(c.list.Samples) < maxSamples {
		c.list.Samples = append(c.list.Samples, Reject{Line: c.number, Reason: reason, Text: show(raw)})
	}
}

// rejectLine is reject for a line that is still bytes: of most, nothing is shown.
func (c *collector) rejectLine(reason Reason, line []byte) {
	if len(c.list.Samples) < maxSamples {
		c.reject(reason, string(line), showLine)
		return
	}
	c.list.Rejects[reason]++
}

// asIs shows what is safe already.
func asIs(shown string) string { return shown }

// read returns how many addresses were looked at, good and bad, for each scheme.
func (c *collector) read() int { return c.accepted + c.list.Duplicates + c.list.Rejected() }

// finish turns what was gathered into a List.
func (c *collector) finish() List {
	c.index.slots = nil // not needed any more: room for the candidates
	type saying struct {
		claims claims
		hint   uint16
	}
	var last saying
	var said *Said
	sayings := make(map[saying]*Said) // one for all of which the same is said
	if c.index.entries.n > 0 {
		c.list.Candidates = make([]Candidate, c.index.entries.n)
	}
	for i := range c.list.Candidates {
		e := c.index.entries.at(i)
		if this := (saying{e.claims, e.hint}); said == nil || this != last {
			if last, said = this, sayings[this]; said == nil && e.hint == 0 {
				said = &bare[e.claims]
			} else if said == nil {
				said = &Said{Schemes: e.claims.list(), Hint: c.hints.at(e.hint)}
				sayings[this] = said
			}
		}
		c.list.Candidates[i] = Candidate{c.index.endpoint(e), said}
	}
	c.index = nil
	c.list.Pairs = c.accepted
	if c.users {
		c.list.Pairs = countPairs(c.list.Candidates)
	}
	c.list.Format = c.mostFormat()
	return c.list
}

// mostFormat names the format of most records; of two that are as frequent, the
// first in formats.
func (c *collector) mostFormat() (name string) {
	most := 0
	for _, f := range formats() {
		if n := c.formats[f.name()]; n > most {
			most, name = n, f.name()
		}
	}
	return name
}

// countPairs counts what is unique by scheme, host and port, where some
// endpoints differ by the user alone.
func countPairs(candidates []Candidate) int {
	type pair struct {
		scheme proxyurl.Scheme
		addr   netip.Addr
		name   string
		port   uint16
	}
	pairs := make(map[pair]struct{}, len(candidates))
	for _, c := range candidates {
		p := pair{port: c.Endpoint.Port()}
		var ok bool
		if p.addr, ok = c.Endpoint.Addr(); !ok {
			p.name = c.Endpoint.Host()
		}
		for _, p.scheme = range c.Schemes {
			pairs[p] = struct{}{}
		}
	}
	return len(pairs)
}
