package lab

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// checks has, for each behaviour, a plain client that shows it.
func checks() map[Behaviour]func(*testing.T, *world, Proxy) {
	return map[Behaviour]func(*testing.T, *world, Proxy){
		"http":          goodHTTP,
		"http-password": passwordHTTP,
		"claimed-https": goodHTTP,
		"flaky":         goodHTTP,
		"socks4": func(t *testing.T, w *world, p Proxy) {
			goodSocks4(false)(t, w, p)
			to := netip.MustParseAddrPort(hostport(t, w.plain.URL))
			conn := dial(t, p)
			conn.Write(binary.BigEndian.AppendUint16([]byte{4, 1}, to.Port()))
			io.WriteString(conn, "\x00\x00\x00\x01\x00localhost\x00")
			var reply [8]byte
			if _, err := io.ReadFull(conn, reply[:]); err != nil || reply != [8]byte{0, 91} {
				t.Errorf("asked for a name: reply %v, %v; want a refusal", reply, err)
			}
		},
		"socks4a": func(t *testing.T, w *world, p Proxy) {
			goodSocks4(true)(t, w, p)
			goodSocks4(false)(t, w, p)
		},
		"socks5": func(t *testing.T, w *world, p Proxy) {
			goodSocks5(t, w, p)
			mappedSocks5(t, w, p)
		},
		"socks5-password": passwordSocks5,
		"transparent": func(t *testing.T, w *world, p Proxy) {
			c := w.client(t, p)
			if seen := w.wantRight(t, c, w.plain.URL); seen != "for=127.0.0.1 via=1.1 lab auth= agent=Go-http-client/1.1" {
				t.Errorf("the destination saw %q", seen)
			}
			w.wantRight(t, c, w.secure.URL)
		},
		"connect-only": func(t *testing.T, w *world, p Proxy) {
			c := w.client(t, p)
			wantStatus(t, c, w.plain.URL, 405)
			w.wantRight(t, c, w.secure.URL)
		},
		"http-only": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			wantConnectStatus(t, w, p, 405)
		},
		"http-407": func(t *testing.T, w *world, p Proxy) {
			resp, err := w.client(t, p).Get(w.plain.URL)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("Proxy-Authenticate"); resp.StatusCode != 407 || got != `Basic realm="lab"` {
				t.Errorf("status %d, Proxy-Authenticate %q", resp.StatusCode, got)
			}
			wantConnectStatus(t, w, p, 407)
		},
		"socks5-wrong-password": func(t *testing.T, w *world, p Proxy) {
			if _, _, _, err := get(w.client(t, p), w.plain.URL); err == nil || !strings.Contains(err.Error(), "username/password authentication failed") {
				t.Errorf("error %v", err)
			}
		},
		"socks5-refuses": func(t *testing.T, w *world, p Proxy) {
			if _, _, _, err := get(w.client(t, p), w.plain.URL); err == nil || !strings.Contains(err.Error(), "connection not allowed by ruleset") {
				t.Errorf("error %v", err)
			}
		},
		"refuses": func(t *testing.T, _ *world, p Proxy) {
			if _, err := net.Dial("tcp", p.URL.Endpoint.HostPort()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("dial: %v", err)
			}
		},
		"silent": func(t *testing.T, w *world, p Proxy) {
			conn := w.ask(t, p)
			conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if n, err := conn.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
				t.Errorf("read %d bytes, %v; want silence", n, err)
			}
		},
		"slow": func(t *testing.T, w *world, p Proxy) {
			for _, target := range []string{w.plain.URL, w.secure.URL} {
				began := time.Now()
				w.wantRight(t, w.client(t, p), target)
				if took := time.Since(began); took < w.slow {
					t.Errorf("answered after %v, want %v", took, w.slow)
				}
			}
		},
		"drip": func(t *testing.T, w *world, p Proxy) {
			began := time.Now()
			w.wantRight(t, w.client(t, p), w.plain.URL)
			if took, least := time.Since(began), 100*w.slow/20; took < least {
				t.Errorf("the answer took %v, want at least %v", took, least)
			}
			wantConnectStatus(t, w, p, 405)
		},
		"closes": func(t *testing.T, w *world, p Proxy) {
			if n, err := w.ask(t, p).Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("read %d bytes, %v; want the end", n, err)
			}
		},
		"half-reset": func(t *testing.T, w *world, p Proxy) {
			text, err := io.ReadAll(w.ask(t, p))
			if !errors.Is(err, syscall.ECONNRESET) || !strings.HasPrefix(string(text), "HTTP/1.1 200 OK\r\n") || strings.Contains(string(text), "/a/page") {
				t.Errorf("read %q, %v; want half an answer and a reset", text, err)
			}
		},
		"half-close": func(t *testing.T, w *world, p Proxy) {
			conn := w.ask(t, p)
			status, body, err := readAnswer(t, conn)
			if status != 200 || err != io.ErrUnexpectedEOF || !strings.HasPrefix("you asked for /a/page", body) {
				t.Errorf("status %d, body %q, %v; want a cut body", status, body, err)
			}
			// More than fits into the kernel's buffers: somebody reads it.
			if _, err := conn.Write(make([]byte, 16<<20)); err != nil {
				t.Errorf("the other direction: %v, want it open", err)
			}
		},
		"garbage": func(t *testing.T, w *world, p Proxy) {
			text, err := io.ReadAll(w.ask(t, p))
			if err != nil || string(text) != garbage {
				t.Errorf("read %q, %v", text, err)
			}
		},
		"captive": func(t *testing.T, w *world, p Proxy) {
			for _, conn := range []net.Conn{w.ask(t, p), w.askConnect(t, p, hostport(t, w.secure.URL))} {
				if status, body, err := readAnswer(t, conn); status != 200 || err != nil || !strings.Contains(body, "Please log in") {
					t.Errorf("status %d, body %q, %v", status, body, err)
				}
			}
		},
		"status-500": func(t *testing.T, w *world, p Proxy) {
			wantStatus(t, w.client(t, p), w.plain.URL, 500)
			wantConnectStatus(t, w, p, 500)
		},
		"redirect": func(t *testing.T, w *world, p Proxy) {
			resp, err := w.client(t, p).Get(w.plain.URL)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if to := resp.Header.Get("Location"); resp.StatusCode != 302 || !strings.HasPrefix(to, "http://169.254.169.254/") {
				t.Errorf("status %d, location %q", resp.StatusCode, to)
			}
		},
		"header-flood":   endless(headStart, headerLine),
		"endless-1xx":    endless("", interim),
		"endless-body":   endless(bodyStart, "x"),
		"endless-chunks": endless(chunkStart, chunk),
		"endless-trailers": func(t *testing.T, w *world, p Proxy) {
			r := bufio.NewReader(w.ask(t, p))
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			body := make([]byte, len("you asked for /a/page"))
			if _, err := io.ReadFull(resp.Body, body); err != nil || string(body) != "you asked for /a/page" {
				t.Fatalf("body %q, %v", body, err)
			}
			if _, err := io.CopyN(io.Discard, r, 1<<20); err != nil {
				t.Errorf("a megabyte of trailers: %v", err)
			}
		},
		"gzip-bomb": func(t *testing.T, w *world, p Proxy) {
			resp, err := w.client(t, p).Get(w.plain.URL) // net/http unpacks
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if n, err := io.Copy(io.Discard, resp.Body); n != 16<<20 || err != nil {
				t.Errorf("unpacked to %d bytes, %v", n, err)
			}
		},
		"connect-flood": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			wantFlood(t, w.askConnect(t, p, hostport(t, w.secure.URL)), "HTTP/1.1 200 Connection established\r\n", headerLine)
		},
		"mitm": intercepted,
	}
}

// TestBehaviours shows that every proxy does what its row says, without the
// prober.
func TestBehaviours(t *testing.T) {
	w := newWorld(t, Options{Slow: 60 * time.Millisecond, Population: each(t)})
	for _, left := range w.Left() {
		t.Logf("not tried: %s", left)
	}
	all := checks()
	maps.Copy(all, moreChecks())
	for _, p := range w.Proxies() {
		t.Run(p.Name, func(t *testing.T) {
			check := all[p.Behaviour]
			if check == nil {
				t.Fatal("nothing shows what this behaviour does")
			}
			check(t, w, p)
		})
	}
}

func goodHTTP(t *testing.T, w *world, p Proxy) {
	c := w.client(t, p)
	if seen := w.wantRight(t, c, w.plain.URL); seen != "for= via= auth= agent=Go-http-client/1.1" {
		t.Errorf("the destination saw %q", seen)
	}
	w.wantRight(t, c, w.secure.URL)
	w.wantRight(t, c, strings.Replace(w.plain.URL, "127.0.0.1", "localhost", 1))
	// A client without a User-Agent reaches the destination without one.
	conn := w.ask(t, p)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if seen := resp.Header.Get("X-Seen"); seen != "for= via= auth= agent=" {
		t.Errorf("the destination saw %q", seen)
	}
}

func passwordHTTP(t *testing.T, w *world, p Proxy) {
	goodHTTPClient := w.client(t, p)
	if seen := w.wantRight(t, goodHTTPClient, w.plain.URL); seen != "for= via= auth= agent=Go-http-client/1.1" {
		t.Errorf("the destination saw %q", seen)
	}
	w.wantRight(t, goodHTTPClient, w.secure.URL)
	if status, _, err := readAnswer(t, w.ask(t, p)); status != 407 || err != nil {
		t.Errorf("without the password: status %d, %v", status, err)
	}
}

func goodSocks5(t *testing.T, w *world, p Proxy) {
	c := w.client(t, p)
	w.wantRight(t, c, w.plain.URL)
	w.wantRight(t, c, w.secure.URL)
	w.wantRight(t, c, strings.Replace(w.plain.URL, "127.0.0.1", "localhost", 1))
}

// mappedSocks5 asks for ::ffff:127.0.0.1, which is loopback.
func mappedSocks5(t *testing.T, w *world, p Proxy) {
	to := netip.MustParseAddrPort(hostport(t, w.plain.URL))
	mapped := netip.AddrFrom16(to.Addr().As16())
	request := append([]byte("\x05\x01\x00\x05\x01\x00\x04"), mapped.AsSlice()...)
	conn := dial(t, p)
	conn.Write(binary.BigEndian.AppendUint16(request, to.Port()))
	var reply [4]byte
	if _, err := io.ReadFull(conn, reply[:]); err != nil || reply != [4]byte{5, 0, 5, 0} {
		t.Errorf("reply %v, %v", reply, err)
	}
}

func passwordSocks5(t *testing.T, w *world, p Proxy) {
	goodSocks5(t, w, p)
	conn := dial(t, p)
	io.WriteString(conn, "\x05\x01\x00")
	if text, err := io.ReadAll(conn); string(text) != "\x05\xff" || err != nil {
		t.Errorf("without the password: %q, %v", text, err)
	}
}

func goodSocks4(named bool) func(*testing.T, *world, Proxy) {
	return func(t *testing.T, w *world, p Proxy) {
		for _, target := range []string{w.plain.URL, w.secure.URL} {
			to := netip.MustParseAddrPort(hostport(t, target))
			conn := dial(t, p)
			request := binary.BigEndian.AppendUint16([]byte{4, 1}, to.Port())
			if named {
				request = append(request, "\x00\x00\x00\x01user\x00localhost\x00"...)
			} else {
				request = append(append(request, to.Addr().AsSlice()...), "user\x00"...)
			}
			conn.Write(request)
			var reply [8]byte
			if _, err := io.ReadFull(conn, reply[:]); err != nil || reply != [8]byte{0, 90} {
				t.Fatalf("reply %v, %v", reply, err)
			}
			var through net.Conn = conn
			if strings.HasPrefix(target, "https:") {
				roots := x509.NewCertPool()
				roots.AddCert(w.secure.Certificate())
				through = tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
			}
			fmt.Fprint(through, "GET /a/page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if status, body, err := readAnswer(t, through); status != 200 || body != "you asked for /a/page" || err != nil {
				t.Errorf("status %d, body %q, %v", status, body, err)
			}
		}
	}
}

// intercepted shows both what a client sees that verifies, and that one that
// does not is read along.
func intercepted(t *testing.T, w *world, p Proxy) {
	c := w.client(t, p)
	w.wantRight(t, c, w.plain.URL)
	var unknown x509.UnknownAuthorityError
	if _, _, _, err := get(c, w.secure.URL); !errors.As(err, &unknown) {
		t.Errorf("a client that verifies: %v, want an unknown authority", err)
	}
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the careless one
	w.wantRight(t, c, w.secure.URL)
}

// endless shows an answer that begins with head and repeats piece for ever, to a
// plain request and to CONNECT.
func endless(head, piece string) func(*testing.T, *world, Proxy) {
	return func(t *testing.T, w *world, p Proxy) {
		wantFlood(t, w.ask(t, p), head, piece)
		wantFlood(t, w.askConnect(t, p, hostport(t, w.secure.URL)), head, piece)
	}
}

func wantFlood(t *testing.T, conn net.Conn, head, piece string) {
	t.Helper()
	begin := make([]byte, len(head)+3*len(piece))
	if _, err := io.ReadFull(conn, begin); err != nil || string(begin) != head+strings.Repeat(piece, 3) {
		t.Errorf("begins with %q, %v", begin, err)
	}
	if _, err := io.CopyN(io.Discard, conn, 1<<20); err != nil {
		t.Errorf("a megabyte of it: %v", err)
	}
	conn.Close()
}

// TestEndlessEnds reads on to where even an endless answer ends.
func TestEndlessEnds(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"endless-body", 1}}})
	n, err := io.Copy(io.Discard, w.ask(t, w.proxy(t, "endless-body")))
	if err != nil || n < floodBytes || n > floodBytes+8<<10 {
		t.Errorf("read %d bytes, %v; want little more than %d", n, err, floodBytes)
	}
}

func wantStatus(t *testing.T, c *http.Client, target string, want int) {
	t.Helper()
	if status, _, _, err := get(c, target); status != want || err != nil {
		t.Errorf("get %s: status %d, %v; want %d", target, status, err, want)
	}
}

func wantConnectStatus(t *testing.T, w *world, p Proxy, want int) {
	t.Helper()
	if status, _, err := readAnswer(t, w.askConnect(t, p, hostport(t, w.secure.URL))); status != want || err != nil {
		t.Errorf("CONNECT: status %d, %v; want %d", status, err, want)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
