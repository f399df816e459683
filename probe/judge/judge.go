// Package judge is the web server that probes ask through a proxy. It answers
// with what it saw of the request: the nonce that the question held, the address
// it came from, the host that was asked for and the headers; with a key it signs
// all of that. So an answer proves that this very question came through, and
// shows what the proxy did to it.
package judge

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Limits on what a request may hold. Beyond them it is refused, since the answer
// repeats it: a judge stands in the open and must not be of use to others.
const (
	MaxHeaderBytes = 4 << 10 // names and values together
	MaxNonceLength = 64      // hexadecimal digits; the shortest nonce has 16
	minNonceLength = 16
)

// Handler is a judge. Below any path:
//
//	?nonce=HEX            the Answer as JSON
//	?nonce=HEX&form=page  the same within the known page: see Page
//	/page                 KnownPage
//	/204                  status 204
//
// by GET or HEAD, and nothing else. It repeats to an asker what the asker sent,
// within bounds, and tells nobody else. Its zero value is ready, and neither signs
// nor limits. It is safe for concurrent use; the fields are set before.
type Handler struct {
	// Key signs the answers; nil: they are not signed.
	Key Key
	// Rate is how many requests a second each asker may make in the long run: an
	// IPv4 address, or an IPv6 /64. 0: as many as they like. Askers are exits of
	// proxies, of which many may share one.
	Rate float64
	// Burst is how many requests an asker may make at once; 0 means 1. It counts
	// only with Rate.
	Burst int
	// Direct are the addresses of those who ask without a proxy. Requests from
	// there are counted apart: if they are more than the control probes, a probe
	// went around its proxy.
	Direct []netip.Prefix

	hits, direct, limited atomic.Int64
	limiter               atomic.Pointer[limiter] // made when needed
}

// Hits returns how many requests have come in, refused ones included.
func (h *Handler) Hits() int64 { return h.hits.Load() }

// DirectHits returns how many of them came from Direct.
func (h *Handler) DirectHits() int64 { return h.direct.Load() }

// Limited returns how many of them were refused for their asker's rate.
func (h *Handler) Limited() int64 { return h.limited.Load() }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asker := askerOf(r)
	h.hits.Add(1)
	if slices.ContainsFunc(h.Direct, func(p netip.Prefix) bool { return p.Contains(asker) }) {
		h.direct.Add(1)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !h.allowed(asker) {
		h.limited.Add(1)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "this is an evenpool judge: too many questions from this address")
		return
	}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "this is an evenpool judge: it answers GET only")
	case r.ContentLength != 0:
		refuse(w, http.StatusRequestEntityTooLarge, "this is an evenpool judge: a question has no body")
	case headerBytes(r.Header)+len(r.Host) > MaxHeaderBytes:
		refuse(w, http.StatusRequestHeaderFieldsTooLarge, "this is an evenpool judge: too many headers")
	case strings.HasSuffix(r.URL.Path, "/204"):
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(r.URL.Path, "/page"):
		send(w, pageType, []byte(KnownPage))
	default:
		h.answer(w, r, asker)
	}
}

const (
	pageType = "text/html; charset=utf-8"
	jsonType = "application/json"
)

// answer answers a question.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, asker netip.Addr) {
	query := r.URL.Query()
	nonce, form := query.Get("nonce"), query.Get("form")
	switch {
	case !query.Has("nonce") && !strings.HasSuffix(r.URL.Path, "/"):
		refuse(w, http.StatusNotFound, "this is an evenpool judge: it has nothing there")
		return
	case !isNonce(nonce):
		refuse(w, http.StatusBadRequest, "this is an evenpool judge: ask with ?nonce= and 16 to 64 hexadecimal digits")
		return
	case form != "" && form != "page":
		refuse(w, http.StatusBadRequest, "this is an evenpool judge: form= is page, or left out")
		return
	}
	a := Answer{Version: Version, Nonce: nonce, Host: r.Host, Headers: r.Header, TimeMS: time.Now().UnixMilli()}
	if asker.IsValid() {
		a.Address = asker.String()
	}
	a.clean() // what is read and written again is the same, byte for byte
	if len(h.Key) > 0 {
		a.Sign(h.Key)
	}
	if form == "page" {
		send(w, pageType, Page(a))
		return
	}
	body, err := json.Marshal(a)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "no answer")
		return
	}
	send(w, jsonType, body)
}

func (h *Handler) allowed(asker netip.Addr) bool {
	if h.Rate <= 0 {
		return true
	}
	l := h.limiter.Load()
	if l == nil {
		h.limiter.CompareAndSwap(nil, newLimiter())
		l = h.limiter.Load()
	}
	return l.take(asker, h.Rate, h.Burst)
}

func send(w http.ResponseWriter, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an asker who has gone needs no answer
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Connection", "close")
	http.Error(w, text, status)
}

func headerBytes(h http.Header) int {
	n := 0
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + len(": \r\n")
		}
	}
	return n
}

func isNonce(s string) bool {
	if len(s) < minNonceLength || len(s) > MaxNonceLength {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// askerOf is invalid for a peer without an IP address (a Unix socket).
func askerOf(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

// NewServer returns a server for h with the limits of a judge in the open: slow,
// silent and talkative askers end soon. The caller serves and closes it.
func NewServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5 * time.Second,
		IdleTimeout:       5 * time.Second,
		MaxHeaderBytes:    MaxHeaderBytes,
		// Strangers cut connections all the time: nobody needs to read of each.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
}
