package lab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// httpProxy is an HTTP proxy: absolute-form requests and CONNECT, one request a
// connection. The zero value is a good and discreet one; each field spoils or
// changes something.
type httpProxy struct {
	noGet     bool // answers absolute-form requests with 405
	noConnect bool // answers CONNECT with 405
	// password, if not empty, is demanded with the user: 407 without.
	user, password string
	wait           int  // it waits this part of the lab's Slow before it does as it is told: 1 for all of it; 0: not
	oneHost        bool // it serves localhost, by name or address, and no other host
	// adds, if set, adds headers to what the destination is asked.
	adds func(s *session, h http.Header)
	// connect, if set, is what it does with a CONNECT.
	connect func(ctx context.Context, s *session, hostport string)
	// answers, if set, may answer a plain request itself; false: it did not.
	answers func(ctx context.Context, s *session, req *http.Request) bool
	// edit, if set, changes the body of the destination's answer to a plain request.
	edit func(body []byte, contentType string) []byte
	// spoil, if set, sends the destination's answer to a plain request; it gets
	// the answer as it ought to be sent.
	spoil func(s *session, answer []byte)
}

func (p httpProxy) serve(ctx context.Context, s *session) {
	req, err := s.readRequest()
	if err != nil {
		return
	}
	if p.wait > 0 && !s.wait(s.lab.slow/time.Duration(p.wait)) {
		return
	}
	switch {
	case p.password != "" && !authorized(req, p.user, p.password):
		s.answer(http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n", "a password is needed\n")
	case req.Method == http.MethodConnect && p.noConnect, req.Method != http.MethodConnect && p.noGet:
		s.answer(http.StatusMethodNotAllowed, "", "this proxy does not do that\n")
	case p.oneHost && !isLocalhost(req.Host):
		s.answer(http.StatusForbidden, "", "this proxy does not go there\n")
	case req.Method == http.MethodConnect && p.connect != nil:
		p.connect(ctx, s, req.Host)
	case req.Method == http.MethodConnect:
		connect(ctx, s, req.Host)
	case req.URL.Scheme != "http" || req.URL.Host == "":
		s.answer(http.StatusBadRequest, "", "this is a proxy\n")
	case p.answers != nil && p.answers(ctx, s, req):
	default:
		p.forward(ctx, s, req)
	}
}

// isLocalhost says whether a request's host, with or without a port, is localhost.
func isLocalhost(host string) bool {
	host = (&url.URL{Host: host}).Hostname()
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (addr == loopback4 || addr == loopback6)
}

// answer sends a whole answer of the proxy's own; header lines end with CRLF.
func (s *session) answer(status int, header, body string) {
	fmt.Fprintf(s, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s",
		status, http.StatusText(status), len(body), header, body)
}

// refuse answers for a destination that cannot be reached.
func (s *session) refuse(err error) {
	status := http.StatusBadGateway
	if errors.Is(err, errOutside) {
		status = http.StatusForbidden
	}
	s.answer(status, "", proxyurl.Escape(err.Error(), 200)+"\n")
}

func authorized(req *http.Request, user, password string) bool {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return req.Header.Get("Proxy-Authorization") == want
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

func connect(ctx context.Context, s *session, hostport string) {
	to, err := s.dial(ctx, hostport)
	if err != nil {
		s.refuse(err)
		return
	}
	defer s.lab.untrack(to)
	if _, err := io.WriteString(s, established); err == nil {
		relay(s, to)
	}
}

// forward asks the destination and passes the answer on.
func (p httpProxy) forward(ctx context.Context, s *session, req *http.Request) {
	in, resp, done, err := p.ask(ctx, s, req)
	if err != nil {
		s.refuse(err)
		return
	}
	defer done()
	if p.spoil == nil && p.edit == nil {
		in.N = math.MaxInt64
		out := bufio.NewWriter(s)
		if resp.Write(out) == nil {
			out.Flush()
		}
		return
	}
	in.N = maxAnswer
	if p.edit != nil {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return
		}
		body = p.edit(body, resp.Header.Get("Content-Type"))
		resp.Body, resp.ContentLength, resp.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	var whole bytes.Buffer
	if resp.Write(&whole) != nil {
		return
	}
	if p.spoil == nil {
		s.Write(whole.Bytes())
		return
	}
	p.spoil(s, whole.Bytes())
}

// ask asks the destination in the client's place. The answer's body may be read
// until done is called, as far as in has bytes left.
func (p httpProxy) ask(ctx context.Context, s *session, req *http.Request) (in *io.LimitedReader, resp *http.Response, done func(), err error) {
	hostport := req.URL.Host
	if req.URL.Port() == "" {
		hostport = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	to, err := s.dial(ctx, hostport)
	if err != nil {
		return nil, nil, nil, err
	}
	dropHops(req.Header)
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "") // else Write puts Go's own
	}
	req.Close = true
	if p.adds != nil {
		p.adds(s, req.Header)
	}
	if err := req.Write(to); err != nil {
		s.lab.untrack(to)
		return nil, nil, nil, err
	}
	in = &io.LimitedReader{R: to, N: maxHead}
	resp, err = http.ReadResponse(bufio.NewReader(in), req)
	if err != nil {
		s.lab.untrack(to)
		return nil, nil, nil, err
	}
	dropHops(resp.Header)
	resp.Close = true
	return in, resp, func() { resp.Body.Close(); s.lab.untrack(to) }, nil
}

// client is the address that a session's client comes from.
func (s *session) client() string {
	host, _, _ := net.SplitHostPort(s.RemoteAddr().String())
	return host
}

// What proxies add to requests.

func via(_ *session, h http.Header) { h.Add("Via", "1.1 lab") }

func forwardedFor(s *session, h http.Header) {
	h.Add("X-Forwarded-For", s.client())
	via(s, h)
}

// wrongFor names somebody who has nothing to do with it.
func wrongFor(s *session, h http.Header) {
	h.Add("X-Forwarded-For", "1.2.3.4")
	via(s, h)
}

// forwarded writes IPv6 addresses as RFC 7239 section 6 wants them.
func forwarded(s *session, h http.Header) {
	h.Add("Forwarded", fmt.Sprintf("for=%q;by=_lab;proto=http", s.RemoteAddr().String()))
}

func oddHeader(s *session, h http.Header) { h.Add("X-Lab-Caller", "user@["+s.client()+"]:lab") }

// dropHops removes what is meant for the next hop only (RFC 9110, section
// 7.6.1).
func dropHops(h http.Header) {
	for _, line := range h.Values("Connection") {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Te", "Upgrade"} {
		h.Del(name)
	}
}
