package daemon

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"evenpool/daemon/api"
)

// maxHead bounds the head of a request that the front reads, in bytes.
const maxHead = 4 << 10

// head is a plain request for allocations.
type head struct {
	path   []byte
	pool   []byte // empty when the path names none
	n      int
	many   bool // n was given: the answer is a list
	budget time.Duration
	text   bool // the answer is wanted as plain text
}

// headState is what readHead makes of some bytes.
type headState int

const (
	headPlain   headState = iota // a plain request, as a whole
	headPartial                  // may become one
	headOther                    // anything else: net/http's, also where it is wrong
)

// readHead reads a plain request for allocations from the beginning of b; n is how many bytes it has.
// Plain is what the usual clients send: no body, the path as it is documented, each parameter once and in
// its range, and only headers that change nothing or are understood. All else is headOther, so that there
// is one place that says what is wrong with a request. The head's slices are parts of b.
func readHead(b []byte) (h head, n int, state headState) {
	if !maybePlain(b) {
		return h, 0, headOther
	}
	line, n, state := headLine(b, 0)
	if state != headPlain {
		return h, 0, state
	}
	if !h.readTarget(line) {
		return h, 0, headOther
	}
	n, state = h.readHeaders(b, n)
	return h, n, state
}

// readHeaders reads the lines from n to the empty one.
func (h *head) readHeaders(b []byte, n int) (end int, state headState) {
	var line []byte
	var host, accept, length bool // seen
	for {
		line, n, state = headLine(b, n)
		if state != headPlain {
			return 0, state
		}
		if len(line) == 0 {
			break
		}
		name, value, found := bytes.Cut(line, []byte(":"))
		value = bytes.Trim(value, " \t")
		ok := found && plainText(value)
		switch {
		case !ok:
		case isHeader(name, "Host"):
			ok, host = !host && plainHost(value), true
		case isHeader(name, "Accept"):
			ok, accept = !accept, true
			h.text = acceptsText(value)
		case isHeader(name, "Content-Length"):
			ok, length = !length && string(value) == "0", true
		case isHeader(name, "Connection"):
			ok = isHeader(value, "keep-alive")
		default:
			ok = isHeader(name, "User-Agent") || isHeader(name, "Accept-Encoding") || isHeader(name, "Accept-Language") ||
				isHeader(name, "Content-Type")
		}
		if !ok {
			return 0, headOther
		}
	}
	if !host {
		return 0, headOther
	}
	return n, headPlain
}

// headLine gives the line that begins at from, without its end, and where the next one begins.
func headLine(b []byte, from int) (line []byte, next int, state headState) {
	i := bytes.IndexByte(b[from:], '\n')
	switch {
	case i < 0 && len(b) < maxHead:
		return nil, 0, headPartial
	case i < 0, from+i >= maxHead, i == 0, b[from+i-1] != '\r':
		return nil, 0, headOther
	}
	return b[from : from+i-1], from + i + 1, headPlain
}

var (
	postAllocate = []byte("POST /v1/allocate")
	postPools    = []byte("POST /v1/pools/")
)

// maybePlain says whether the beginning of a first line may become a plain request's.
func maybePlain(b []byte) bool {
	for _, known := range [][]byte{postAllocate, postPools} {
		if n := min(len(known), len(b)); bytes.Equal(b[:n], known[:n]) {
			return true
		}
	}
	return false
}

// readTarget reads the first line.
func (h *head) readTarget(line []byte) bool {
	target, ok := bytes.CutPrefix(line, []byte("POST "))
	if !ok {
		return false
	}
	target, ok = bytes.CutSuffix(target, []byte(" HTTP/1.1"))
	if !ok {
		return false
	}
	path, query, asks := bytes.Cut(target, []byte("?"))
	h.path = path
	if string(path) != "/v1/allocate" {
		rest, ok1 := bytes.CutPrefix(path, []byte("/v1/pools/"))
		pool, ok2 := bytes.CutSuffix(rest, []byte("/allocate"))
		if !ok1 || !ok2 || !plainName(pool) {
			return false
		}
		h.pool = pool
	}
	h.n, h.budget = 1, api.DefaultBudget
	return !asks || h.readQuery(query)
}

// readQuery reads ?n= and ?timeout_ms=.
func (h *head) readQuery(query []byte) bool {
	var timed bool
	for more := true; more; {
		var param []byte
		param, query, more = bytes.Cut(query, []byte("&"))
		name, value, _ := bytes.Cut(param, []byte("="))
		number, err := strconv.ParseUint(string(value), 10, 31) // digits only
		switch {
		case err != nil, number == 0:
			return false
		case string(name) == "n" && !h.many && number <= api.MaxAllocate:
			h.n, h.many = int(number), true
		case string(name) == "timeout_ms" && !timed && number <= uint64(api.MaxBudget.Milliseconds()):
			h.budget, timed = time.Duration(number)*time.Millisecond, true
		default:
			return false
		}
	}
	return true
}

// plainName says whether b is made of what names of pools are made of.
func plainName(b []byte) bool {
	return len(b) > 0 && !bytes.ContainsFunc(b, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// plainHost says whether b is a name or an address, and perhaps a port.
func plainHost(b []byte) bool {
	return len(b) > 0 && !bytes.ContainsFunc(b, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.:", r)
	})
}

func plainText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' || r > '~' })
}

// isHeader compares without regard to case. Letters beyond ASCII that fold to one of ours are longer.
func isHeader(b []byte, name string) bool {
	return len(b) == len(name) && strings.EqualFold(string(b), name)
}

func acceptsText(value []byte) bool {
	switch string(value) {
	case "*/*", typeJSON:
		return false
	case "text/plain":
		return true
	}
	return wantsText(http.Header{"Accept": {string(value)}})
}
