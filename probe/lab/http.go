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
	"strings"

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
	slow           bool // waits before it does as it is told
	tells          bool // names the client to the destination: X-Forwarded-For, Via
	// connect, if set, is what it does with a CONNECT.
	connect func(ctx context.Context, s *session, hostport string)
	// spoil, if set, sends the destination's answer to a plain request; it gets
	// the answer as it ought to be sent.
	spoil func(s *session, answer []byte)
}

func (p httpProxy) serve(ctx context.Context, s *session) {
	req, err := s.readRequest()
	if err != nil {
		return
	}
	if p.slow && !s.wait(s.lab.slow) {
		return
	}
	switch {
	case p.password != "" && !authorized(req, p.user, p.password):
		s.answer(http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n", "a password is needed\n")
	case req.Method == http.MethodConnect && p.noConnect, req.Method != http.MethodConnect && p.noGet:
		s.answer(http.StatusMethodNotAllowed, "", "this proxy does not do that\n")
	case req.Method == http.MethodConnect && p.connect != nil:
		p.connect(ctx, s, req.Host)
	case req.Method == http.MethodConnect:
		connect(ctx, s, req.Host)
	case req.URL.Scheme != "http" || req.URL.Host == "":
		s.answer(http.StatusBadRequest, "", "this is a proxy\n")
	default:
		p.forward(ctx, s, req)
	}
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
	hostport := req.URL.Host
	if req.URL.Port() == "" {
		hostport = net.JoinHostPort(req.URL.Hostname(), "80")
	}
	to, err := s.dial(ctx, hostport)
	if err != nil {
		s.refuse(err)
		return
	}
	defer s.lab.untrack(to)
	dropHops(req.Header)
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "") // else Write puts Go's own
	}
	req.Close = true
	if p.tells {
		client, _, _ := net.SplitHostPort(s.RemoteAddr().String())
		req.Header.Add("X-Forwarded-For", client)
		req.Header.Add("Via", "1.1 lab")
	}
	if err := req.Write(to); err != nil {
		s.refuse(err)
		return
	}
	in := &io.LimitedReader{R: to, N: maxHead}
	resp, err := http.ReadResponse(bufio.NewReader(in), req)
	if err != nil {
		s.refuse(err)
		return
	}
	defer resp.Body.Close()
	dropHops(resp.Header)
	resp.Close = true
	if p.spoil == nil {
		in.N = math.MaxInt64
		out := bufio.NewWriter(s)
		if resp.Write(out) == nil {
			out.Flush()
		}
		return
	}
	in.N = maxAnswer
	var whole bytes.Buffer
	if resp.Write(&whole) == nil {
		p.spoil(s, whole.Bytes())
	}
}

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
