package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"

	"evenpool/probe/judge"
)

// answered looks at an answer to the question. The error is a *fault.
func (q question) answered(r response) (witness, error) {
	switch {
	case q.target != nil:
		return witness{}, q.target.matches(r)
	case q.judge.Expect != nil:
		return witness{}, q.judge.Expect.matches(r)
	case q.judge.Echo != nil:
		return q.judge.Echo.read(r, q.random)
	}
	return q.own(r)
}

// own reads the answer of a judge of ours. What is proven by it, in this order: the
// page is the judge's, byte for byte; the judge wrote the answer in it; it is the
// answer to this question. The time in it proves nothing that the nonce does not.
func (q question) own(r response) (witness, error) {
	if r.status != 200 {
		return witness{}, faultf(WrongStatus, "status %d in place of 200", r.status)
	}
	text, signed := r.body, len(q.judge.Key) > 0
	if q.tls == nil {
		var err error
		if text, err = judge.CutPage(r.body); err != nil {
			return witness{}, pageFault(r.body, err)
		}
	}
	var a judge.Answer
	switch err := json.Unmarshal(text, &a); {
	case err == nil && a.Version == judge.Version:
	case q.tls != nil:
		return witness{}, faultf(WrongContent, "not the judge's answer but \"%s\"", start(text))
	case signed:
		return witness{}, faultf(Forged, "the judge's page with no answer of a judge in it: \"%s\"", start(text))
	default:
		return witness{}, faultf(Tampered, "the judge's page with no answer of a judge in it: \"%s\"", start(text))
	}
	if again, err := json.Marshal(a); q.tls == nil && (err != nil || !bytes.Equal(again, text)) {
		// Whatever else is in it, JSON has many ways to hide.
		return witness{}, faultf(Tampered, "the judge's page with an answer that no judge writes so: \"%s\"", start(text))
	}
	if signed {
		if err := a.Verify(q.judge.Key); err != nil {
			return witness{}, faultf(Forged, "%v", err)
		}
	}
	switch {
	case a.Nonce != q.random && signed:
		return witness{}, faultf(Replayed, "signed by the judge for another question")
	case a.Nonce != q.random:
		return witness{}, faultf(NonceMissing, "an answer to another question")
	case signed && !sameHost(a.Host, q.host, q.to.port):
		// Of two judges with one key, one would do for a proxy that reaches no other.
		return witness{}, faultf(Forged, "signed by the judge for another host, \"%s\"", start([]byte(a.Host)))
	}
	seen := witness{headers: a.Headers}
	if seen.headers == nil {
		seen.headers = map[string][]string{}
	}
	if addr, err := netip.ParseAddr(a.Address); err == nil { // none: a judge behind a socket of its own
		seen.exit = addr.Unmap().WithZone("")
	}
	return seen, nil
}

// pageFault says what it means that a page is not as our judge sent it.
func pageFault(body []byte, err error) error {
	switch {
	case errors.Is(err, judge.ErrPageAltered):
		return faultf(Tampered, "%v", err)
	case errors.Is(err, judge.ErrPageCut):
		return faultf(WrongContent, "%v", err)
	}
	return faultf(WrongContent, "not the judge's page but \"%s\"", start(body))
}

// sameHost compares Host headers: a proxy may leave the usual port out, or write
// it.
func sameHost(got, want string, port uint16) bool {
	usual := map[uint16]string{80: ":80", 443: ":443"}[port]
	bare := func(host string) string {
		if usual != "" {
			host = strings.TrimSuffix(host, usual)
		}
		return strings.ToLower(host)
	}
	return bare(got) == bare(want)
}

func (e *Expect) matches(r response) error {
	if r.status != e.Status {
		return faultf(WrongStatus, "status %d in place of %d", r.status, e.Status)
	}
	if !bytes.Contains(r.body, []byte(e.Contains)) {
		return faultf(WrongContent, "the expected text is not in \"%s\"", start(r.body))
	}
	return nil
}

// start is as much of a page as is worth showing.
func start(body []byte) []byte { return body[:min(len(body), 60)] }
