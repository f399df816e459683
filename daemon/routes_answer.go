package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// How long a worker waits before it asks again.
const (
	unavailableRetry = time.Second // the store is away; the daemon tries it about as often
	lostRetry        = 5 * time.Second
	busyRetry        = time.Second
)

// maxMessage bounds the text of an error, in bytes.
const maxMessage = 400

// asked is what is told of a request in its answer.
type asked struct {
	method, path string
	pool, source string // "" when the path names none
}

func askedOf(r *http.Request) asked {
	return asked{r.Method, r.URL.Path, r.PathValue("pool"), r.PathValue("source")}
}

// errorOf turns what a handler returned into what is written. An error that has
// no code of its own is a bug of ours, and logged.
func (rt *routes) errorOf(ctx context.Context, q asked, err error) *api.Error {
	text := proxyurl.Escape(err.Error(), maxMessage)
	if own := (*api.Error)(nil); errors.As(err, &own) {
		return own
	}
	switch {
	case errors.Is(err, errUnknownPool):
		return &api.Error{Code: api.CodeUnknownPool, Message: fmt.Sprintf("no pool %s; configured: %s",
			proxyurl.Escape(q.pool, 40), listNames(rt.backend.poolNames()))}
	case errors.Is(err, errUnknownSource):
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no source %s; configured: %s",
			proxyurl.Escape(q.source, 40), listNames(rt.sourceNames(ctx)))}
	case errors.Is(err, errBusy), errors.Is(err, alloc.ErrBusy):
		return &api.Error{Code: api.CodeBusy, Message: text, RetryAfter: busyRetry}
	case errors.Is(err, alloc.ErrPoolLost):
		return &api.Error{Code: api.CodePoolLost, Message: text, RetryAfter: lostRetry}
	case errors.Is(err, alloc.ErrUnavailable):
		return &api.Error{Code: api.CodeUnavailable, Message: text, RetryAfter: unavailableRetry}
	// What follows is not known to have been left undone. If nothing can have
	// been done, the caller may simply ask again.
	case errors.Is(err, alloc.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		if q.method == http.MethodPost {
			return &api.Error{Code: api.CodeOutcomeUnknown, Message: text}
		}
		return &api.Error{Code: api.CodeUnavailable, Message: text, RetryAfter: unavailableRetry}
	}
	rt.logFailure(q, text)
	return internalError()
}

func (rt *routes) sourceNames(ctx context.Context) (names []string) {
	list, _ := rt.backend.sourceStates(ctx)
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

// logFailure logs an error that comes with every request, as a broken pool
// brings one, once a minute.
func (rt *routes) logFailure(q asked, text string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if text == rt.failure && time.Since(rt.failedAt) < time.Minute {
		return
	}
	rt.failure, rt.failedAt = text, time.Now()
	rt.log.Error("request failed", "method", q.method, "path", proxyurl.Escape(q.path, 100), "error", text)
}

// badRequest says what is wrong with a request and what to write instead. The
// arguments are escaped already.
func badRequest(format string, args ...any) error {
	return &api.Error{Code: api.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

func internalError() *api.Error {
	return &api.Error{Code: api.CodeInternal, Message: "internal error; the daemon's log says more"}
}

// panicked gives the answer for a handler that panicked.
func (rt *routes) panicked(q asked, p any) answer {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	rt.log.Error("request panicked", "method", q.method, "path", proxyurl.Escape(q.path, 100),
		"panic", proxyurl.Escape(fmt.Sprint(p), maxMessage), "stack", string(debug.Stack()))
	return rt.refused(internalError())
}

// answer is what is written to a client: all that differs from one to the next.
type answer struct {
	status     int
	kind       string // Content-Type; "" where there is no body
	body       []byte
	retryAfter int64 // seconds; 0: not said
}

// answer gives what is written for a successful reply.
func (rt *routes) answer(ctx context.Context, q asked, rep reply) answer {
	a := answer{status: rep.status}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	switch {
	case rep.written != nil:
		a.kind, a.body = typeJSON, rep.written
	case rep.json != nil:
		body, err := encode(rep.json)
		if err != nil {
			return rt.failed(ctx, q, err)
		}
		a.kind, a.body = typeJSON, body
	case rep.text != "":
		a.kind, a.body = "text/plain; charset=utf-8", []byte(rep.text)
	}
	return a
}

const typeJSON = "application/json"

// failed gives what is written for an error that a handler returned.
func (rt *routes) failed(ctx context.Context, q asked, err error) answer {
	return rt.refused(rt.errorOf(ctx, q, err))
}

// refused gives what is written for an error: the one place where an envelope is.
func (rt *routes) refused(e *api.Error) answer {
	body, err := encode(e)
	if err != nil {
		rt.log.Error("error not encoded", "code", string(e.Code), "error", err)
	}
	a := answer{status: e.Status, kind: typeJSON, body: body, retryAfter: int64((e.RetryAfter + time.Second - 1) / time.Second)}
	if a.status == 0 {
		a.status = e.Code.Status()
	}
	return a
}

// send writes an answer through net/http; front.append writes the same bytes.
func (rt *routes) send(w http.ResponseWriter, a answer) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if a.kind != "" {
		h.Set("Content-Type", a.kind)
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	if a.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(a.retryAfter, 10))
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has gone is no news
}

// encode writes JSON in one line, and <, > and & as they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// appendOne writes one allocation as encode writes it, which takes several times as long.
func appendOne(b []byte, a alloc.Allocation) []byte {
	b = append(b, `{"proxy":`...)
	b = appendString(b, a.Member)
	if a.Count != 0 {
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, a.Count, 10)
	}
	return append(b, "}\n"...)
}

// appendMany writes some allocations likewise.
func appendMany(b []byte, list []alloc.Allocation) []byte {
	b = append(b, `{"proxies":[`...)
	for i, a := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"proxy":`...)
		b = appendString(b, a.Member)
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, a.Count, 10)
		b = append(b, '}')
	}
	return append(b, "]}\n"...)
}

// appendString writes a text as JSON. Most have nothing to escape.
func appendString(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			escaped, _ := encode(text) // a string is always encoded
			return append(b, bytes.TrimSuffix(escaped, []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
