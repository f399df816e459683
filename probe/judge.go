package probe

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// Capability is something that a proxy can do, and that a pool can require.
type Capability string

// The capabilities, cheap ones first: the order in which they are asked for.
const (
	HTTP Capability = "http" // brings a page over plain http
	TLS  Capability = "tls"  // brings a TLS connection to the judge, unbroken
)

// Capabilities returns the closed list, cheap ones first.
func Capabilities() []Capability { return []Capability{HTTP, TLS} }

// Judge is a web server to be asked through proxies. With Expect it is a page of
// known content; without, it is one of our own, which returns a nonce.
type Judge struct {
	Name    string
	HTTP    *url.URL       // http://..., shows HTTP; nil: not offered
	HTTPS   *url.URL       // https://..., shows TLS; nil: not offered
	Expect  *Expect        // nil: our own judge
	Allow   proxyurl.Allow // prefixes beyond public unicast that this judge may be at
	RootCAs *x509.CertPool // who may sign its certificate; nil: the system's authorities
}

// Expect is what a page judge answers.
type Expect struct {
	Status   int    // the exact status
	Contains string // a text that the page holds; "": any page
}

// Shows says whether the judge can prove the capability.
func (j Judge) Shows(c Capability) bool { return j.url(c) != nil }

func (j Judge) url(c Capability) *url.URL {
	switch c {
	case HTTP:
		return j.HTTP
	case TLS:
		return j.HTTPS
	}
	return nil
}

// Ask is one question: show this capability to this judge.
type Ask struct {
	Judge      Judge
	Capability Capability
}

// Asks chooses for each required capability the first judge that shows it and is
// well, cheap capabilities first. A nil well takes every judge. What no judge can
// show is returned in missing: without it nothing may be probed.
func Asks(judges []Judge, require []Capability, well func(judge string, c Capability) bool) (asks []Ask, missing []Capability) {
	for _, c := range Capabilities() {
		if !slices.Contains(require, c) {
			continue
		}
		i := slices.IndexFunc(judges, func(j Judge) bool {
			return j.Shows(c) && (well == nil || well(j.Name, c))
		})
		if i < 0 {
			missing = append(missing, c)
			continue
		}
		asks = append(asks, Ask{judges[i], c})
	}
	return asks, missing
}

// question is an Ask made ready to be sent.
type question struct {
	target target
	host   string // the Host header
	path   string // path and query, as in an origin-form request
	nonce  string // "" for a page judge
	secure bool   // within TLS
	expect *Expect
}

// target is where the proxy is asked to connect to.
type target struct {
	host string // name or IP address, without brackets
	port uint16
	addr netip.Addr // the address, if host is one or has been resolved
}

func (t target) hostport() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

func newQuestion(ask Ask) (question, error) {
	u := ask.Judge.url(ask.Capability)
	if u == nil {
		return question{}, fmt.Errorf("judge %s cannot show %s", ask.Judge.Name, ask.Capability)
	}
	q := question{host: u.Host, secure: ask.Capability == TLS, expect: ask.Judge.Expect}
	q.target = target{host: u.Hostname(), port: 80}
	if q.secure {
		q.target.port = 443
	}
	if text := u.Port(); text != "" {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port == 0 {
			return question{}, fmt.Errorf("judge %s: bad port \"%s\"", ask.Judge.Name, text)
		}
		q.target.port = uint16(port)
	}
	if addr, err := netip.ParseAddr(q.target.host); err == nil {
		q.target.addr = addr.Unmap()
	}
	q.path = u.RequestURI()
	if q.expect == nil {
		var random [16]byte
		rand.Read(random[:])
		q.nonce = hex.EncodeToString(random[:])
		separator := "?"
		if strings.Contains(q.path, "?") {
			separator = "&"
		}
		q.path += separator + "nonce=" + q.nonce
	}
	return q, nil
}

// answered looks at an answer and returns the address that the judge saw, if it
// is one that tells. The error is a *fault.
func (q question) answered(r response) (netip.Addr, error) {
	if q.expect != nil {
		return netip.Addr{}, q.expect.matches(r)
	}
	if r.status != 200 {
		return netip.Addr{}, faultf(WrongStatus, "status %d in place of 200", r.status)
	}
	var a judge.Answer
	decoder := json.NewDecoder(bytes.NewReader(r.body))
	err := decoder.Decode(&a)
	if _, more := decoder.Token(); err == nil && more != io.EOF {
		err = errors.New("something behind its end")
	}
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && bytes.Contains(r.body, []byte(`"evenpool_judge"`)) && bytes.Contains(r.body, []byte(q.nonce)):
		// A captive page may repeat the URL and so the nonce, but not the judge's
		// form; and what is merely cut short was not tampered with.
		return netip.Addr{}, faultf(Tampered, "the judge's answer with something added or changed: %v", err)
	case err != nil || a.Version != judge.Version:
		return netip.Addr{}, faultf(WrongContent, "not the judge's answer but \"%s\"", start(r.body))
	case a.Nonce != q.nonce:
		return netip.Addr{}, faultf(NonceMissing, "an answer to another question")
	}
	seen, err := netip.ParseAddr(a.Address)
	if err != nil {
		return netip.Addr{}, nil // a judge behind a socket of its own
	}
	return seen.Unmap(), nil
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
