package sources

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Slow servers cost the source's timeout.
func TestBadInput_SlowServers(t *testing.T) {
	drip := func(start, drop string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for text := start; ; text = drop {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
				select {
				case <-tick.C:
				case <-t.Context().Done():
					return
				}
			}
		}
	}
	for name, bad := range map[string]http.HandlerFunc{
		"a body in drops":              drip("HTTP/1.1 200 OK\r\n\r\n1.2.3.4:8080\n", "1"),
		"a packed body in drops":       drip("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"+pack(t, "gzip", ""), pack(t, "gzip", "")),
		"headers in drops":             drip("HTTP/1.1 200 OK\r\n", "X: y\r\n"),
		"silence":                      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"silence behind the headers":   drip("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", ""),
		"silence behind a part":        drip("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"+listOf(90), ""),
		"a redirect that does not end": drip("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", ""),
	} {
		t.Run(name, func(t *testing.T) {
			src := source(serve(t, &turning{bad: bad}))
			opts := Options{Dir: t.TempDir(), Timeout: 300 * time.Millisecond}
			once(t, opts, src)
			stays(t, opts, src, "not done within 300ms")
		})
	}
}

// A server that accepts and says nothing, not even in TLS.
func TestBadInput_ASilentSocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the kernel accepts for it
	for _, scheme := range []string{"http", "https"} {
		start := time.Now()
		src := source(scheme + "://" + l.Addr().String())
		src.Timeout = 200 * time.Millisecond
		_, err := NewFetcher(Options{Dir: t.TempDir()}).Fetch(t.Context(), src)
		if err == nil || !strings.Contains(err.Error(), "not done within 200ms") || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %s", scheme, err, time.Since(start))
		}
	}
}

// A server that is taken over has no certificate of its name.
func TestBadInput_AWrongCertificate(t *testing.T) {
	var wrong atomic.Bool
	other := selfSigned(t, "example.com")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, listOf(100)) }))
	s.Config.ErrorLog = quiet()
	s.TLS = &tls.Config{}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	right := s.TLS.Certificates[0]
	s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if wrong.Load() {
			return &tls.Config{Certificates: []tls.Certificate{other}}, nil
		}
		return &tls.Config{Certificates: []tls.Certificate{right}}, nil
	}
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	src := source("https://example.com:" + port + "/")
	opts := Options{Dir: t.TempDir(), RootCAs: roots, Resolver: loopback{}, RetryWait: time.Hour, Timeout: 10 * time.Second}
	once(t, opts, src)
	wrong.Store(true)
	stays(t, opts, src, "certificate signed by unknown authority")
}

func selfSigned(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
