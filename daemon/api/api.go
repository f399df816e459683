// Package api is what is spoken on the daemon's Unix socket: the wire types of
// every request and answer, the closed list of errors, and a client. It needs
// the standard library only, so that a worker written in Go can copy or import
// it alone.
//
// The protocol is HTTP/1.1 with JSON under /v1. Times are RFC 3339 in UTC; a
// number names its unit in its key ("latency_ms"); a time that is not known is
// left out; a list or a map is never null. Fields may be added: a client
// ignores those that it does not know.
//
// A proxy's password is shown to the worker that allocates the proxy and to
// nobody else: in every other answer it reads "user:***@".
package api

import (
	"bytes"
	"encoding/json"
	"time"
)

// Bounds and defaults of a request.
const (
	// MaxAllocate is the largest n of one request. A script in Redis takes 500 at
	// most, as Redis serves nobody else meanwhile; a larger request is two, and
	// others' allocations may come in between.
	MaxAllocate = 1000
	// DefaultBudget is the time that a request has when it names none.
	DefaultBudget = time.Second
	// MaxBudget is the longest time that a request may ask for.
	MaxBudget = 10 * time.Second
)

// Allocation is one proxy that was handed out.
type Allocation struct {
	// Proxy is the member's URL, scheme://[user:password@]host:port, as it is to
	// be used: with its password.
	Proxy string `json:"proxy"`
	// Count is how many times the proxy was allocated, this time included.
	Count int64 `json:"count"`
}

// AllocateOne answers POST allocate without n.
//
//	{"proxy":"http://203.0.113.7:8080","count":18}
//	{"proxy":null,"retry_after_ms":30000}
type AllocateOne struct {
	// Proxy is the member's URL with its password, or nil when the pool is empty:
	// then make no request.
	Proxy *string `json:"proxy"`
	// Count is the count after this allocation; absent when Proxy is nil.
	Count int64 `json:"count,omitempty"`
	// RetryAfterMS says when an empty pool may have a member, in milliseconds;
	// absent otherwise.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// AllocateMany answers POST allocate with n, also with n=1.
type AllocateMany struct {
	// Proxies are in the order in which they were allocated: n of them, or none
	// when the pool is empty. With fewer than n members, members come repeatedly.
	Proxies List[Allocation] `json:"proxies"`
	// RetryAfterMS is as in AllocateOne.
	RetryAfterMS int64 `json:"retry_after_ms,omitempty"`
}

// Members answers GET members.
type Members struct {
	// Members are ordered as they will be allocated: by count, then by the bytes
	// of the URL.
	Members List[Member] `json:"members"`
}

// Member is one member of a pool.
type Member struct {
	// Proxy is the member's URL, its password hidden.
	Proxy string `json:"proxy"`
	Count int64  `json:"count"`
	// Since is when it was admitted.
	Since time.Time `json:"since,omitzero"`
	// LastProbeAt and LastOutcome are of its newest probe.
	LastProbeAt time.Time `json:"last_probe_at,omitzero"`
	LastOutcome string    `json:"last_outcome,omitempty"`
	// LatencyMS is what its newest passing probe took, 0 when not known.
	LatencyMS int64 `json:"latency_ms,omitempty"`
}

// ProbeStarted answers POST probe: a cycle begins now, nobody waits for its end.
type ProbeStarted struct {
	Pool string `json:"pool"`
}

// List is a slice that is written as [] when it is nil, so that nobody who
// loops over it meets a null.
type List[T any] []T

// MarshalJSON writes the list, never null.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return plainJSON([]T(l))
}

// Counts is a number for each name, written as {} when it is nil.
type Counts map[string]int

// MarshalJSON writes the numbers in the order of their names, never null.
func (c Counts) MarshalJSON() ([]byte, error) {
	if c == nil {
		return []byte("{}"), nil
	}
	return plainJSON(map[string]int(c))
}

// plainJSON leaves the escaping of <, > and & to the encoder around it; with
// json.Marshal every "&" in a list's URL would read \u0026.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}
