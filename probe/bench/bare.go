package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// bare is the least that a prober does, which all that evenpool's does beyond it is
// measured against. It speaks http to every proxy, and believes what it is told.
type bare struct {
	timeout time.Duration
	request []byte // for the judge's page
	connect []byte
	tls     *tls.Config
}

func newBare(_ context.Context, s spec) (prober, error) {
	secure, err := url.Parse(s.World.JudgeHTTPS)
	if err != nil {
		return nil, err
	}
	plain, err := url.Parse(s.World.JudgeHTTP)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.World.JudgePEM)
	b := bare{
		timeout: s.Timeout,
		request: fmt.Appendf(nil, "GET %spage HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", plain, plain.Host),
		connect: fmt.Appendf(nil, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", secure.Host, secure.Host),
		// As package probe has it: what is compared is not the key exchange.
		tls: &tls.Config{ServerName: secure.Hostname(), RootCAs: roots, SessionTicketsDisabled: true,
			CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}, NextProtos: []string{"http/1.1"}},
	}
	through := b.get
	if s.Ask[0] == probe.TLS {
		through = b.handshake
	}
	return func(ctx context.Context, proxy *lab.Proxy) string {
		// It knows http alone.
		want := proxy.URL.Scheme == proxyurl.HTTP && slices.Contains(proxy.Truth.Capabilities, string(s.Ask[0]))
		if through(ctx, proxy.URL.Endpoint.HostPort()) == want {
			return ""
		}
		return string(proxy.Behaviour)
	}, nil
}

func (b bare) dial(ctx context.Context, at string) (net.Conn, error) {
	deadline := time.Now().Add(b.timeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err == nil {
		err = conn.SetDeadline(deadline)
	}
	return conn, err
}

// get asks for a page of known content.
func (b bare) get(ctx context.Context, at string) bool {
	conn, err := b.dial(ctx, at)
	if err != nil {
		return false
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(b.request); err != nil {
		return false
	}
	answer, err := io.ReadAll(conn)
	head, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	return err == nil && strings.HasPrefix(string(head), "HTTP/1.1 200 ") && string(body) == judge.KnownPage
}

// handshake does CONNECT and TLS, and asks nothing.
func (b bare) handshake(ctx context.Context, at string) bool {
	conn, err := b.dial(ctx, at)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.Write(b.connect); err != nil {
		return false
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil || answer.StatusCode != 200 {
		return false
	}
	return tls.Client(conn, b.tls).Handshake() == nil
}
