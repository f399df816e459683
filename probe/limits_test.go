package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// endless writes text until the other side has had enough, and counts.
func endless(w io.Writer, text string, n *atomic.Int64) {
	for {
		wrote, err := io.WriteString(w, text)
		n.Add(int64(wrote))
		if err != nil {
			return
		}
	}
}

// TestP1_HardLimits holds every probe to its bytes and its time. The peers are
// in memory and so is time: what takes 2 s here takes none.
func TestP1_HardLimits(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\n"
	chunked := ok + "Transfer-Encoding: chunked\r\n\r\n"
	var sent atomic.Int64
	flood := func(start, repeated string) func(net.Conn) {
		return reading(func(w io.Writer) {
			go func() { _, _ = io.Copy(io.Discard, w.(io.Reader)) }()
			_, _ = io.WriteString(w, start)
			endless(w, repeated, &sent)
		})
	}
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	drip := func(start string) func(net.Conn) {
		return reading(func(w io.Writer) {
			_, err := io.WriteString(w, start)
			for ; err == nil; _, err = io.WriteString(w, "x") {
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	tests := []struct {
		name  string
		c     Capability
		proxy string
		serve func(net.Conn)
		want  Outcome
		stage Stage
		slow  bool // it takes the whole time limit
	}{
		{"endless headers", HTTP, "http", flood(ok, "A: b\r\n"), HeadTooLarge, StageResponse, false},
		{"endless header", HTTP, "http", flood(ok+"A: ", "b"), HeadTooLarge, StageResponse, false},
		{"endless status", HTTP, "http", flood("HTTP/1.1 200 ", "OK"), HeadTooLarge, StageResponse, false},
		{"endless 1xx", HTTP, "http", flood("", "HTTP/1.1 100 Continue\r\n\r\n"), HeadTooLarge, StageResponse, false},
		{"endless CONNECT headers", TLS, "http", flood(ok, "A: b\r\n"), HeadTooLarge, StageHandshake, false},
		{"endless CONNECT 1xx", TLS, "http", flood("", "HTTP/1.1 103 x\r\n\r\n"), HeadTooLarge, StageHandshake, false},
		{"endless body", HTTP, "http", flood(ok+"\r\n", "hello"), BodyTooLarge, StageResponse, false},
		{"endless chunks", HTTP, "http", flood(chunked, "5\r\nhello\r\n"), BodyTooLarge, StageResponse, false},
		{"endless chunk extension", HTTP, "http", flood(chunked+"5;", "x"), BodyTooLarge, StageResponse, false},
		{"endless trailers", HTTP, "http", flood(chunked+"0\r\n", "A: b\r\n"), HeadTooLarge, StageResponse, false},
		{"bytes of no protocol", HTTP, "http", flood("", "\x00"), Garbage, StageResponse, false},
		{"no TLS after CONNECT", TLS, "http", flood(ok+"\r\n", "<html>"), TLSFailed, StageTLS, false},
		{"half closed", HTTP, "http", saying(ok + "Content-Length: 5\r\n\r\nhe"), Closed, StageResponse, false},
		{"silent http", HTTP, "http", silent, Timeout, StageResponse, true},
		{"silent CONNECT", TLS, "http", silent, Timeout, StageHandshake, true},
		{"silent socks4a", HTTP, "socks4a", silent, Timeout, StageHandshake, true},
		{"silent socks5", HTTP, "socks5", silent, Timeout, StageHandshake, true},
		{"silent https", HTTP, "https", silent, Timeout, StageHandshake, true},
		{"https that speaks plain", HTTP, "https", func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, ok+"\r\n")
		}, ProxyTLS, StageHandshake, false},
		{"https that hangs up", HTTP, "https", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 4096)) }, Closed, StageHandshake, false},
		{"silent after CONNECT", TLS, "http", reading(func(w io.Writer) {
			_, _ = io.WriteString(w, ok+"\r\n")
			_, _ = io.Copy(io.Discard, w.(io.Reader))
		}), Timeout, StageTLS, true},
		{"does not even read", HTTP, "http", nil, Timeout, StageRequest, true},
		{"drips a body", HTTP, "http", drip(ok + "\r\n"), Timeout, StageResponse, true},
		{"drips headers", HTTP, "http", drip(ok + "A: "), Timeout, StageResponse, true},
		{"drips 1xx", HTTP, "http", drip("HTTP/1.1 100 "), Timeout, StageResponse, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent.Store(0)
				p := pipeProber(test.serve)
				began := time.Now()
				r := one(p, t.Context(), mustProxy(t, test.proxy+"://198.51.100.1:80"), nil, []put{{pageJudge(t), test.c}})
				wantCheck(t, r.Last(), test.want, test.stage, "")
				took := time.Since(began)
				if test.slow && took != testTimeout || !test.slow && took != 0 {
					t.Errorf("took %v", took)
				}
				if took != r.Latency {
					t.Errorf("took %v, says %v", took, r.Latency)
				}
				if n := sent.Load(); n > maxHead+maxBody+8<<10 {
					t.Errorf("read %d bytes", n)
				}
				time.Sleep(testTimeout) // of no real time: the peers notice that the probe has gone
			})
		})
	}
}

// TestP1_DialCountsToo: one limit holds from the dial on, not one for each stage.
func TestP1_DialCountsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Timeout: testTimeout, Dial: func(ctx context.Context, _ proxyurl.Allow, _ string) (net.Conn, error) {
			time.Sleep(testTimeout / 2)
			client, server := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, server) }()
			return client, nil
		}})
		r := one(p, t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{ownJudge(t), HTTP}})
		wantCheck(t, r.Last(), Timeout, StageResponse, "i/o timeout")
		if r.Latency != testTimeout || r.Last().Connect != testTimeout/2 {
			t.Errorf("connected after %v, ended after %v", r.Last().Connect, r.Latency)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Timeout: testTimeout, Dial: func(ctx context.Context, _ proxyurl.Allow, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}})
		r := one(p, t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{ownJudge(t), HTTP}})
		wantCheck(t, r.Last(), DialTimeout, StageDial, "")
		if r.Latency != testTimeout {
			t.Errorf("took %v", r.Latency)
		}
	})
}

// TestH4_CancellationIsLocal: a probe that is cancelled ends at once, wherever it
// is, and blames nobody.
func TestH4_CancellationIsLocal(t *testing.T) {
	for _, scheme := range []string{"http", "socks5"} {
		for _, c := range Capabilities() {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				p := pipeProber(func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
				began := time.Now()
				time.AfterFunc(testTimeout/2, func() { cancel(errors.New("shutting down")) })
				r := one(p, ctx, mustProxy(t, scheme+"://198.51.100.1:80"), nil, []put{{ownJudge(t), c}})
				if r.Outcome != Cancelled || r.Last().Detail != "shutting down" || time.Since(began) != testTimeout/2 {
					t.Errorf("%s, %s: %s (%s) after %v", scheme, c, r.Outcome, r.Last().Detail, time.Since(began))
				}
			})
		}
	}
}

// TestReset: a real RST, which no pipe can send.
func TestReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		var b [1]byte
		_, _ = conn.Read(b[:])
		_ = conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}()
	r := one(New(Options{}), t.Context(), mustProxy(t, "http://"+l.Addr().String()), loopback(), []put{{ownJudge(t), HTTP}})
	wantCheck(t, r.Last(), Reset, StageResponse, "connection reset by peer")
}

// TestP3_InterceptionIsSeen: a tunnel that ends in somebody else's certificate is
// no proof but an attack; so is one that is valid, for another name.
func TestP3_InterceptionIsSeen(t *testing.T) {
	s := httptest.NewTLSServer(&judge.Handler{})
	defer s.Close()
	tunnel := func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		server := tls.Server(conn, s.TLS)
		defer server.Close()
		answerAsJudge(server)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	for _, test := range []struct {
		name, host string
		roots      *x509.CertPool
		want       Outcome
	}{
		{"the judge's own", "example.com", roots, OK}, // httptest's certificate is for example.com
		{"nobody we trust", "example.com", x509.NewCertPool(), TLSIntercepted},
		{"another name", "judge.example.org", roots, TLSIntercepted},
	} {
		j := Judge{Name: "mine", HTTPS: mustURL(t, "https://"+test.host+"/"), RootCAs: test.roots}
		r := one(pipeProber(tunnel), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{j, TLS}})
		if r.Outcome != test.want {
			t.Errorf("%s: %s (%s), want %s", test.name, r.Outcome, r.Last().Detail, test.want)
		}
		if test.want != OK && (r.Last().Stage != StageTLS || !strings.Contains(r.Last().Detail, "certificate")) {
			t.Errorf("%s: at %s: %s", test.name, r.Last().Stage, r.Last().Detail)
		}
	}
}
