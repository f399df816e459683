// Package sources fetches the lists of candidates that others publish and reads
// them: what one names, what was wrong with the rest of it, and whether it is a
// list at all.
//
// A source is a hint and nothing more. The package knows nothing of probing or
// storing; it bounds what a list can cost (bytes, lines, candidates, time), dials
// only public addresses for it unless the source opens others, and never lets a
// broken list look like an empty one.
package sources

import (
	"time"

	"evenpool/sources/proxyurl"
)

// Source is one list: where it is, and how to read what it leaves open.
type Source struct {
	// Name is the source's name in the configuration; it is in errors.
	Name string
	// URL is "http://...", "https://..." or "file:///absolute/path".
	URL string
	// Scheme is claimed for records that name none; "" rejects those with
	// ReasonNoScheme.
	Scheme proxyurl.Scheme
	// Allow opens prefixes beyond the public unicast addresses for this source
	// alone: for the list's own URL and for the addresses in it.
	Allow proxyurl.Allow
}

// Candidate is an endpoint that a source named, with the schemes claimed for it.
type Candidate struct {
	Endpoint proxyurl.Endpoint
	// Schemes is never empty, without repeats, in the order of proxyurl.Schemes.
	// It is shared between candidates: do not write to it.
	Schemes []proxyurl.Scheme
}

// List is what one reading of a source gave.
type List struct {
	// Source is the source's name.
	Source string
	// Format names the format that most records were written in: "plain",
	// "scheme"; "" for a list without records.
	Format string
	// Candidates holds each endpoint once, in order of first appearance.
	Candidates []Candidate
	// Records counts the lines that are neither blank nor comments.
	Records int
	// Pairs counts what is unique by scheme, host and port. It is larger than
	// the number of candidates where an endpoint is claimed under several
	// schemes, and smaller where a host and port come with several users.
	Pairs int
	// Duplicates counts records that repeat a scheme and endpoint seen before.
	Duplicates int
	// Rejects counts the records that gave no candidate, by reason; nil for none.
	Rejects map[Reason]int
	// Samples holds the first few rejected records, in order.
	Samples []Reject
	// FetchedAt is when these candidates were read. Parse leaves it zero.
	FetchedAt time.Time
	// Stale says that these are the candidates of an earlier fetch, because the
	// newest one gave nothing to use. Err then says why.
	Stale bool
	Err   error
}

// Rejected returns how many records gave no candidate.
func (l List) Rejected() int {
	n := 0
	for _, count := range l.Rejects {
		n += count
	}
	return n
}

// Reject is a record that gave no candidate.
type Reject struct {
	Line   int // from 1
	Reason Reason
	Text   string // the line, cut, escaped, without passwords: safe to show
}
