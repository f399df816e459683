package lab

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"evenpool/probe/judge"
)

// world is a lab with a destination beside it, which answers with the path it
// was asked for.
type world struct {
	*Lab
	plain, secure *httptest.Server
	judge         atomic.Pointer[judge.Handler] // answers below /judge
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	world := new(world)
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/judge" {
			world.judge.Load().ServeHTTP(w, r)
			return
		}
		w.Header().Set("X-Seen", fmt.Sprintf("for=%s via=%s auth=%s agent=%s",
			r.Header.Get("X-Forwarded-For"), r.Header.Get("Via"), r.Header.Get("Proxy-Authorization"), r.Header.Get("User-Agent")))
		fmt.Fprintf(w, "you asked for %s", r.URL.Path)
	})
	world.plain, world.secure = httptest.NewServer(echo), httptest.NewUnstartedServer(echo)
	world.secure.Config.ErrorLog = log.New(io.Discard, "", 0) // cut handshakes are what it is there for
	world.secure.StartTLS()
	t.Cleanup(world.plain.Close)
	t.Cleanup(world.secure.Close)
	world.Lab = start(t, o)
	return world
}

func start(t *testing.T, o Options) *Lab {
	t.Helper()
	l, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (w *world) proxy(t *testing.T, name string) Proxy {
	t.Helper()
	for _, p := range w.Proxies() {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("the lab has no proxy %q", name)
	return Proxy{}
}

// client is a plain net/http client that goes through a proxy of HTTP or SOCKS 5.
func (w *world) client(t *testing.T, p Proxy) *http.Client {
	t.Helper()
	via := &url.URL{Scheme: string(p.URL.Scheme), Host: p.URL.Endpoint.HostPort()}
	if p.URL.Endpoint.HasUser() {
		via.User = url.UserPassword(p.URL.Endpoint.User(), p.URL.Endpoint.Password())
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.secure.Certificate())
	roots.AppendCertsFromPEM(w.CA())
	transport := &http.Transport{
		Proxy:           http.ProxyURL(via),
		TLSClientConfig: &tls.Config{RootCAs: roots},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// get asks and returns status, body and what the destination saw.
func get(c *http.Client, target string) (status int, body, seen string, err error) {
	resp, err := c.Get(target)
	if err != nil {
		return 0, "", "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(text), resp.Header.Get("X-Seen"), err
}

// wantRight asks for a page through a proxy and wants the destination's answer.
func (w *world) wantRight(t *testing.T, c *http.Client, target string) (seen string) {
	t.Helper()
	status, body, seen, err := get(c, target+"/a/page")
	if err != nil || status != 200 || body != "you asked for /a/page" {
		t.Fatalf("get %s: status %d, body %q, error %v", target, status, body, err)
	}
	return seen
}

// each is one of each behaviour.
func each(t *testing.T) []Spec {
	t.Helper()
	population, err := Mix("each", 0)
	if err != nil {
		t.Fatal(err)
	}
	return population
}

// dial opens a bare connection to a proxy.
func dial(t *testing.T, p Proxy) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", p.URL.Endpoint.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn.(*net.TCPConn)
}

// open is dial, with TLS to the proxy where the proxy speaks it.
func (w *world) open(t *testing.T, p Proxy) net.Conn {
	t.Helper()
	conn := dial(t, p)
	if p.URL.Scheme != "https" {
		return conn
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.CA())
	return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: p.URL.Endpoint.Host()})
}

// ask sends a plain request over a bare connection.
func (w *world) ask(t *testing.T, p Proxy) net.Conn {
	t.Helper()
	conn := w.open(t, p)
	fmt.Fprintf(conn, "GET %s/a/page HTTP/1.1\r\nHost: lab\r\n\r\n", w.plain.URL)
	return conn
}

func (w *world) askConnect(t *testing.T, p Proxy, target string) net.Conn {
	t.Helper()
	conn := w.open(t, p)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: lab\r\n\r\n", target)
	return conn
}

func hostport(t *testing.T, target string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func (l *Lab) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns) + int(l.quiet.Load())
}

// readAnswer reads an HTTP answer off a bare connection.
func readAnswer(t *testing.T, conn net.Conn) (status int, body string, err error) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}
