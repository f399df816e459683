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

// errorOf turns what a handler returned into what is written. An error that has
// no code of its own is a bug of ours, and logged.
func (rt *routes) errorOf(r *http.Request, err error) *api.Error {
	text := proxyurl.Escape(err.Error(), maxMessage)
	if own := (*api.Error)(nil); errors.As(err, &own) {
		return own
	}
	switch {
	case errors.Is(err, errUnknownPool):
		return &api.Error{Code: api.CodeUnknownPool, Message: fmt.Sprintf("no pool %s; configured: %s",
			proxyurl.Escape(r.PathValue("pool"), 40), listNames(rt.backend.poolNames()))}
	case errors.Is(err, errUnknownSource):
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("no source %s; configured: %s",
			proxyurl.Escape(r.PathValue("source"), 40), listNames(rt.sourceNames(r.Context())))}
	case errors.Is(err, errBusy), errors.Is(err, alloc.ErrBusy):
		return &api.Error{Code: api.CodeBusy, Message: text, RetryAfter: busyRetry}
	case errors.Is(err, alloc.ErrPoolLost):
		return &api.Error{Code: api.CodePoolLost, Message: text, RetryAfter: lostRetry}
	case errors.Is(err, alloc.ErrUnavailable):
		return &api.Error{Code: api.CodeUnavailable, Message: text, RetryAfter: unavailableRetry}
	// What follows is not known to have been left undone. If nothing can have
	// been done, the caller may simply ask again.
	case errors.Is(err, alloc.ErrOutcomeUnknown), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		if r.Method == http.MethodPost {
			return &api.Error{Code: api.CodeOutcomeUnknown, Message: text}
		}
		return &api.Error{Code: api.CodeUnavailable, Message: text, RetryAfter: unavailableRetry}
	}
	rt.logFailure(r, text)
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
func (rt *routes) logFailure(r *http.Request, text string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if text == rt.failure && time.Since(rt.failedAt) < time.Minute {
		return
	}
	rt.failure, rt.failedAt = text, time.Now()
	rt.log.Error("request failed", "method", r.Method, "path", proxyurl.Escape(r.URL.Path, 100), "error", text)
}

// badRequest says what is wrong with a request and what to write instead. The
// arguments are escaped already.
func badRequest(format string, args ...any) error {
	return &api.Error{Code: api.CodeBadRequest, Message: fmt.Sprintf(format, args...)}
}

func internalError() *api.Error {
	return &api.Error{Code: api.CodeInternal, Message: "internal error; the daemon's log says more"}
}

// panicked answers for a handler that panicked. Nothing is written before a
// handler has returned, so the answer is still open.
func (rt *routes) panicked(w http.ResponseWriter, r *http.Request, p any) {
	if p == http.ErrAbortHandler {
		panic(p)
	}
	rt.log.Error("request panicked", "method", r.Method, "path", proxyurl.Escape(r.URL.Path, 100),
		"panic", proxyurl.Escape(fmt.Sprint(p), maxMessage), "stack", string(debug.Stack()))
	rt.writeError(w, r, internalError())
}

// write sends an answer.
func (rt *routes) write(w http.ResponseWriter, r *http.Request, rep reply) {
	status := rep.status
	if status == 0 {
		status = http.StatusOK
	}
	switch {
	case rep.json != nil:
		body, err := encode(rep.json)
		if err != nil {
			rt.writeError(w, r, rt.errorOf(r, err))
			return
		}
		rt.send(w, status, "application/json", body)
	case rep.text != "":
		rt.send(w, status, "text/plain; charset=utf-8", []byte(rep.text))
	default:
		rt.send(w, status, "", nil)
	}
}

// writeError sends an error: the one place where an envelope is written.
func (rt *routes) writeError(w http.ResponseWriter, r *http.Request, e *api.Error) {
	body, err := encode(e)
	if err != nil {
		rt.log.Error("error not encoded", "path", proxyurl.Escape(r.URL.Path, 100), "error", err)
	}
	status := e.Status
	if status == 0 {
		status = e.Code.Status()
	}
	if e.RetryAfter > 0 {
		seconds := (e.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	rt.send(w, status, "application/json", body)
}

func (rt *routes) send(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if contentType != "" {
		h.Set("Content-Type", contentType)
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone is no news
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
