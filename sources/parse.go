package sources

import (
	"bytes"
	"cmp"
	"io"
	"net/netip"
	"strings"

	"evenpool/sources/proxyurl"
)

// Limits bounds what one list can cost. A field that is zero has its default.
type Limits struct {
	MaxBytes      int64 // in the whole list, unpacked; default 16 MiB; more is an error
	MaxCandidates int   // default 200,000; those beyond it are rejected and counted
	MaxLine       int   // bytes in one line, default 512; a longer one is rejected
}

func (l Limits) orDefault() Limits {
	return Limits{
		MaxBytes:      cmp.Or(l.MaxBytes, 16<<20),
		MaxCandidates: cmp.Or(l.MaxCandidates, 200_000),
		MaxLine:       cmp.Or(l.MaxLine, 512),
	}
}

// maxSamples bounds List.Samples, sampleBytes the text of one.
const (
	maxSamples  = 5
	sampleBytes = 120
)

// Parse reads a list line by line. A bad line costs itself alone.
//
// An error is one of ErrTooLarge, ErrMarkup, ErrUnreadable and ErrEmpty (find
// them with errors.Is), or r's own. The list holds what was read until then: it
// is for showing what was wrong, not for use.
func Parse(r io.Reader, src Source, limits Limits) (List, error) {
	limits = limits.orDefault()
	lines := newLineReader(&boundedReader{r: r, limit: limits.MaxBytes}, limits.MaxLine)
	c := newCollector(src, limits)
	for {
		line, long, err := lines.next()
		if err == io.EOF {
			list := c.finish()
			return list, soundness(list, c.markup)
		}
		if err != nil {
			return c.finish(), err
		}
		line = trim(line)
		switch {
		case len(line) == 0:
			continue
		case c.list.Records == 0:
			c.markup = looksLikeMarkup(line)
		}
		if long {
			c.reject(lines.number, ReasonLineTooLong, longSample(line))
		} else {
			c.line(lines.number, string(line))
		}
	}
}

// trim takes off white space and comments: a "#" that begins the line or follows
// white space. A "#" elsewhere belongs to a password.
func trim(line []byte) []byte {
	line = bytes.TrimSpace(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return bytes.TrimSpace(line[:i])
		}
	}
	return line
}

// collector gathers records into a List.
type collector struct {
	src     Source
	limits  Limits
	formats []format
	schemes []proxyurl.Scheme

	list   List
	index  map[proxyurl.Endpoint]int // into list.Candidates and claims
	claims []uint8                   // of each candidate: bit i stands for schemes[i]
	counts []int                     // records of each of formats
	users  bool                      // some endpoint has a user
	markup bool                      // the first record looks like HTML or XML
}

func newCollector(src Source, limits Limits) *collector {
	c := &collector{
		src: src, limits: limits, formats: formats(), schemes: proxyurl.Schemes(),
		list:  List{Source: src.Name},
		index: make(map[proxyurl.Endpoint]int),
	}
	c.counts = make([]int, len(c.formats))
	return c
}

func (c *collector) line(number int, line string) {
	for i, f := range c.formats {
		r, claimed := f.parse(line)
		if !claimed {
			continue
		}
		c.counts[i]++
		if reason := cmp.Or(r.reject, c.add(r)); reason != "" {
			c.reject(number, reason, line)
			return
		}
		c.list.Records++
		return
	}
}

// add takes a record in, or says why not.
func (c *collector) add(r record) Reason {
	if r.reject != "" {
		return r.reject
	}
	scheme := cmp.Or(r.scheme, c.src.Scheme)
	bit := uint8(0)
	for i, s := range c.schemes {
		if s == scheme {
			bit = 1 << i
		}
	}
	if bit == 0 {
		return ReasonNoScheme
	}
	if addr, ok := r.endpoint.Addr(); ok {
		if err := c.src.Allow.Check(addr); err != nil {
			return reasonOf(err)
		}
	}
	at, known := c.index[r.endpoint]
	switch {
	case !known && len(c.list.Candidates) >= c.limits.MaxCandidates:
		return ReasonTooMany
	case !known:
		c.index[r.endpoint] = len(c.list.Candidates)
		c.list.Candidates = append(c.list.Candidates, Candidate{Endpoint: r.endpoint})
		c.claims = append(c.claims, bit)
		c.users = c.users || r.endpoint.HasUser()
	case c.claims[at]&bit != 0:
		c.list.Duplicates++
	default:
		c.claims[at] |= bit
	}
	return ""
}

func (c *collector) reject(number int, reason Reason, line string) {
	c.list.Records++
	if c.list.Rejects == nil {
		c.list.Rejects = make(map[Reason]int)
	}
	c.list.Rejects[reason]++
	if len(c.list.Samples) < maxSamples {
		c.list.Samples = append(c.list.Samples, Reject{
			Line: number, Reason: reason, Text: proxyurl.Redact(line, sampleBytes)})
	}
}

// longSample keeps of a line whose end is not known what cannot be a password.
func longSample(line []byte) string {
	name, rest, ok := proxyurl.CutScheme(string(line))
	if !ok {
		name, rest = "", string(line)
	} else {
		name += "://"
	}
	if i := strings.IndexAny(rest, ":@"); i >= 0 {
		rest = rest[:i]
	}
	return name + rest + "..."
}

// finish turns what was gathered into a List.
func (c *collector) finish() List {
	sets := make(map[uint8][]proxyurl.Scheme) // one slice for all that claim the same
	for i, claims := range c.claims {
		set, ok := sets[claims]
		if !ok {
			for j, s := range c.schemes {
				if claims&(1<<j) != 0 {
					set = append(set, s)
				}
			}
			sets[claims] = set
		}
		c.list.Candidates[i].Schemes = set
		c.list.Pairs += len(set)
	}
	if c.users {
		c.list.Pairs = countPairs(c.list.Candidates)
	}
	most := 0
	for i, n := range c.counts {
		if n > most {
			most, c.list.Format = n, c.formats[i].name()
		}
	}
	return c.list
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
