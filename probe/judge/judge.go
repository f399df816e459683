// Package judge is the web server that probes ask through a proxy. It answers
// with what it saw of the request: the nonce that the question held, the address
// it came from and its headers. So an answer proves that this very question came
// through, and shows what the proxy did to it.
package judge

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
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

// Answer is the JSON of an answer.
type Answer struct {
	Version int                 `json:"evenpool_judge"` // 1
	Nonce   string              `json:"nonce"`          // as it came, hexadecimal
	Address string              `json:"address"`        // the asker's IP address as the judge saw it
	Headers map[string][]string `json:"headers"`        // of the request, names in canonical form, without Host
}

// Version is Answer.Version.
const Version = 1

// Handler answers GET and HEAD of any path with an Answer; the query holds
// nonce=HEX. It is safe for concurrent use; its zero value is ready.
type Handler struct {
	hits atomic.Int64
}

// Hits returns how many requests have come in, refused ones included.
func (h *Handler) Hits() int64 { return h.hits.Load() }

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.hits.Add(1)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	nonce := r.URL.Query().Get("nonce")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "this is an evenpool judge: it answers GET only")
		return
	case r.ContentLength != 0:
		refuse(w, http.StatusRequestEntityTooLarge, "this is an evenpool judge: a question has no body")
		return
	case headerBytes(r.Header) > MaxHeaderBytes:
		refuse(w, http.StatusRequestHeaderFieldsTooLarge, "this is an evenpool judge: too many headers")
		return
	case !isNonce(nonce):
		refuse(w, http.StatusBadRequest, "this is an evenpool judge: ask with ?nonce= and 16 to 64 hexadecimal digits")
		return
	}
	body, err := json.Marshal(Answer{Version, nonce, remoteAddress(r.RemoteAddr), r.Header})
	if err != nil {
		refuse(w, http.StatusInternalServerError, "no answer")
		return
	}
	w.Header().Set("Content-Type", "application/json")
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

// remoteAddress is "" for a peer without an IP address (a Unix socket).
func remoteAddress(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return ""
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	return addr.Unmap().WithZone("").String()
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
