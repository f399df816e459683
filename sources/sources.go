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
	// Format names one of the formats; "" and "auto" have it found by content.
	Format string
	// Scheme is claimed for records that name none: one of proxyurl.Schemes, or
	// proxyurl.Any to have it found out by probing; "" rejects such records with
	// ReasonNoScheme.
	Scheme proxyurl.Scheme
	// Allow opens prefixes beyond the public unicast addresses for this source
	// alone: for the list's own URL and for the addresses in it.
	Allow proxyurl.Allow

	// What follows is for lists on the web; a zero value has the Fetcher's default.

	// Headers are sent with the request besides those that evenpool sends itself.
	// They may hold a key, and so are never sent on to another host.
	Headers map[string]string
	// UserAgent is sent in place of the Fetcher's.
	UserAgent string
	// Proxy is the URL of a proxy to fetch through: http://, https:// or socks5://,
	// with a user and a password if it asks for them; "" for none. The environment
	// has no say in it. Its own address is not held to be public: it is the
	// operator's.
	Proxy string
	// Timeout is for one fetch, all tries of it.
	Timeout time.Duration

	// MaxBytes bounds the list, unpacked; 0 for the Fetcher's limit.
	MaxBytes int64
	// MaxCandidates bounds how many endpoints are taken from the list; 0 for the
	// Fetcher's limit.
	MaxCandidates int
}

// Candidate is an endpoint that a source named, with what it says of it.
type Candidate struct {
	Endpoint proxyurl.Endpoint
	// Said is shared between the candidates of a list of which the same is said: do
	// not write to it. Lists have hundreds of thousands of candidates.
	*Said
}

// Said is what a list says of a candidate: the schemes claimed for it, and hints.
type Said struct {
	// Schemes is never empty, without repeats, in the order of proxyurl.Claims.
	Schemes []proxyurl.Scheme
	// Hint is what the list says beyond that.
	Hint Hint
}

// Hint is what a list claims of a proxy. It is shown and never believed.
type Hint struct {
	// Country is an ISO 3166-1 alpha-2 code in capitals, or a name as the list
	// writes it, escaped and at most 40 bytes long; "" where the list says nothing.
	Country string
	// Anonymity is "transparent", "anonymous" or "elite"; "" where the list says
	// nothing, or nothing that is understood.
	Anonymity string
}

// List is what one reading of a source gave.
type List struct {
	// Source is the source's name.
	Source string
	// Format names the format that most records were written in, as Formats
	// lists them; "" for a list without records.
	Format string
	// Candidates holds each endpoint once, in order of first appearance.
	Candidates []Candidate
	// Records counts the records: lines that are neither blank nor comments,
	// elements of an array, rows of a table.
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
	// NotModified says that the list is what it was at the fetch before.
	NotModified bool
	// CopyErr says why the good copy could not be kept on disk, or why the one
	// that lay there was not used. The list itself is none the worse for it.
	CopyErr error
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
	Line   int // from 1; where a format has no lines, the record's number
	Reason Reason
	Text   string // the line, cut, escaped, without passwords: safe to show
}
