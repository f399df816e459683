package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// query is a request's parameters: known names only, each at most once.
type query map[string]string

// parseQuery reads a query string. What is not understood is refused: a worker
// that writes ?count=10 shall hear of it and not get one proxy.
func parseQuery(raw string, params []string) (query, error) {
	if raw == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, badRequest("query \"%s\" is not readable", proxyurl.Escape(raw, 100))
	}
	q := query{}
	for _, name := range slices.Sorted(maps.Keys(values)) { // in order: the same error each time
		list := values[name]
		if name != "timeout_ms" && !slices.Contains(params, name) {
			return nil, badRequest("unknown parameter \"%s\"; this path takes %s",
				proxyurl.Escape(name, 40), strings.Join(append(slices.Clone(params), "timeout_ms"), ", "))
		}
		if len(list) > 1 {
			return nil, badRequest("%s is given %d times", name, len(list))
		}
		q[name] = list[0]
	}
	return q, nil
}

func (q query) has(name string) bool { _, ok := q[name]; return ok }

func (q query) get(name string) string { return q[name] }

// whole gives a parameter that is a whole number from lowest to highest.
func (q query) whole(name string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(q[name])
	if err != nil || n < lowest || n > highest {
		return 0, badRequest("%s=%s: expected a whole number from %d to %d", name, proxyurl.Escape(q[name], 40), lowest, highest)
	}
	return n, nil
}

// budget is the time that the request has.
func (q query) budget() (time.Duration, error) {
	if !q.has("timeout_ms") {
		return api.DefaultBudget, nil
	}
	ms, err := q.whole("timeout_ms", 1, int(api.MaxBudget.Milliseconds()))
	return time.Duration(ms) * time.Millisecond, err
}

// The bounds of a request's body.
const (
	maxBody     = 4 << 10
	bodyTimeout = 2 * time.Second
)

// limitBody gives a body its deadline, before anything else is done: whatever
// the answer is, net/http reads what is left of the body when it is written.
func limitBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
}

// refuseBody reads the body, since no request has one. An empty object passes,
// as some clients cannot send a POST without it; anything else is refused, so
// that nobody believes that an n in there was read.
func refuseBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		// A read deadline that passes later would end the context of the request.
		err = http.NewResponseController(w).SetReadDeadline(time.Time{})
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return &api.Error{Code: api.CodeBadRequest, Status: http.StatusRequestEntityTooLarge,
			Message: fmt.Sprintf("the body is over %d bytes; this path takes none", maxBody)}
	}
	if err != nil {
		return badRequest("the body did not arrive within %s", bodyTimeout)
	}
	if body = bytes.TrimSpace(body); len(body) > 0 && string(body) != "{}" {
		return badRequest("this path takes no body; its parameters go into the query, as in ?n=10")
	}
	return nil
}

// wantsText says whether the Accept header asks for text/plain and prefers it to
// JSON. Everybody else gets JSON, whatever they accept.
func wantsText(h http.Header) bool {
	var text, json float64
	for _, line := range h.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "text/plain":
				text = max(text, quality(params))
			case "application/json":
				json = max(json, quality(params))
			}
		}
	}
	return text > json
}

// quality reads the weight among the parameters of a media range (RFC 9110,
// 12.4.2): 1 unless it says otherwise.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "q") {
			if q, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return q
			}
			return 0
		}
	}
	return 1
}
