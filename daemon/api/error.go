package api

import (
	"encoding/json"
	"net/http"
	"time"
)

// Code says what went wrong. The list is closed within /v1; a client that meets
// a code which it does not know goes by the HTTP status.
type Code string

// The codes, and what a worker does about each.
const (
	CodeBadRequest  Code = "bad_request"  // 400 (405, 413): the request is wrong; correct it
	CodeForbidden   Code = "forbidden"    // 403: this user may not
	CodeUnknownPool Code = "unknown_pool" // 404: no pool of that name is configured
	CodeNotFound    Code = "not_found"    // 404: no such path, or no source of that name
	CodeTooMany     Code = "too_many"     // 429: this user has too many connections
	CodeInternal    Code = "internal"     // 500: a bug; the daemon's log has it
	// CodeOutcomeUnknown (502): the allocation may or may not have happened. No
	// proxy was given out to you; asking again may count twice, which costs
	// nothing but a little evenness.
	CodeOutcomeUnknown Code = "outcome_unknown"
	CodeUnavailable    Code = "unavailable" // 503: the store is away, nothing happened; ask again later
	CodePoolLost       Code = "pool_lost"   // 503: the store lost the pool, it is being built again
	CodeBusy           Code = "busy"        // 503: the daemon has too much to do; ask again later
)

// Codes gives all codes. The slice is the caller's.
func Codes() []Code {
	return []Code{CodeBadRequest, CodeForbidden, CodeUnknownPool, CodeNotFound, CodeTooMany,
		CodeInternal, CodeOutcomeUnknown, CodeUnavailable, CodePoolLost, CodeBusy}
}

// Status gives the HTTP status that goes with the code; 500 for a code that is
// not in the list.
func (c Code) Status() int {
	switch c {
	case CodeBadRequest:
		return http.StatusBadRequest
	case CodeForbidden:
		return http.StatusForbidden
	case CodeUnknownPool, CodeNotFound:
		return http.StatusNotFound
	case CodeTooMany:
		return http.StatusTooManyRequests
	case CodeOutcomeUnknown:
		return http.StatusBadGateway
	case CodeUnavailable, CodePoolLost, CodeBusy:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Retryable says whether nothing has happened and the same request may succeed
// later: then wait for RetryAfter and ask again. It is false for
// CodeOutcomeUnknown, where something may have happened.
func (c Code) Retryable() bool {
	s := c.Status()
	return s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable
}

// Error is how every failed request ends, from the daemon or from the client
// itself. As JSON it is the whole body of the answer:
//
//	{"error":{"code":"unavailable","message":"...","retry_after_ms":1000}}
type Error struct {
	Code Code
	// Message is one sentence for people, without control characters.
	Message string
	// RetryAfter is how long to wait before asking again; 0 when that would not
	// help.
	RetryAfter time.Duration
	// Status is the HTTP status; 0 when there was no answer and the client says
	// what it knows: CodeUnavailable if the request was provably not sent,
	// CodeOutcomeUnknown if it may have been carried out.
	Status int

	cause error
}

// Error gives the message and the code.
func (e *Error) Error() string {
	return e.Message + " (" + string(e.Code) + ")"
}

// Unwrap gives what went wrong on the client's side, nil for an answer of the
// daemon: errors.Is(err, context.DeadlineExceeded) works.
func (e *Error) Unwrap() error { return e.cause }

// envelope is an Error on the wire.
type envelope struct {
	Error struct {
		Code         Code   `json:"code"`
		Message      string `json:"message"`
		RetryAfterMS int64  `json:"retry_after_ms,omitempty"`
	} `json:"error"`
}

// MarshalJSON writes the envelope; Status is not part of it.
func (e *Error) MarshalJSON() ([]byte, error) {
	var w envelope
	w.Error.Code, w.Error.Message = e.Code, e.Message
	w.Error.RetryAfterMS = e.RetryAfter.Milliseconds()
	return plainJSON(w)
}

// UnmarshalJSON reads the envelope; Status is left alone.
func (e *Error) UnmarshalJSON(b []byte) error {
	var w envelope
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	e.Code, e.Message = w.Error.Code, w.Error.Message
	e.RetryAfter = time.Duration(w.Error.RetryAfterMS) * time.Millisecond
	return nil
}
