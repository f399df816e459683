package lab

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"evenpool/probe/judge"
)

// moreChecks has those of behaviours that are about headers, judges, TLS to the
// proxy, IPv6, and single steps of a conversation.
func moreChecks() map[Behaviour]func(*testing.T, *world, Proxy) {
	judged := func(key judge.Key, look func(*testing.T, judge.Answer)) func(*testing.T, *world, Proxy) {
		return func(t *testing.T, w *world, p Proxy) {
			for _, form := range []string{"", "&form=page"} {
				look(t, w.judged(t, p, key, form))
			}
			c := w.client(t, p)
			w.wantRight(t, c, w.plain.URL) // what is no question is left alone
			w.wantRight(t, c, w.secure.URL)
		}
	}
	return map[Behaviour]func(*testing.T, *world, Proxy){
		"https":          goodHTTP,
		"https-password": passwordHTTP,
		"https-claimed-http": func(t *testing.T, w *world, p Proxy) {
			goodHTTP(t, w, p)
			if text, err := io.ReadAll(w.askPlainly(t, p)); string(text) != tlsAlert || err != nil {
				t.Errorf("in plain: %q, %v; want a TLS alert", text, err)
			}
		},
		"https-unknown-authority": func(t *testing.T, w *world, p Proxy) {
			wantCertificateError[x509.UnknownAuthorityError](t, w, p)
		},
		"https-wrong-name": func(t *testing.T, w *world, p Proxy) { wantCertificateError[x509.HostnameError](t, w, p) },
		"https-expired": func(t *testing.T, w *world, p Proxy) {
			if err := wantCertificateError[x509.CertificateInvalidError](t, w, p); err.Reason != x509.Expired {
				t.Errorf("%v", err)
			}
		},
		"socks4-user":       asUser(90, "lab", false),
		"socks4a-user":      asUser(90, "lab", true),
		"socks4-wrong-user": asUser(93, "somebody", false),
		"socks4-answers-socks5": func(t *testing.T, w *world, p Proxy) {
			conn := dial(t, p)
			io.WriteString(conn, "\x04\x01\x00\x50\x7f\x00\x00\x01\x00")
			if text, err := io.ReadAll(conn); string(text) != "\x05\x00" || err != nil {
				t.Errorf("answers %q, %v", text, err)
			}
		},
		"socks5-address": func(t *testing.T, w *world, p Proxy) {
			mappedSocks5(t, w, p)
			c := w.client(t, p)
			w.wantRight(t, c, w.plain.URL)
			if _, _, _, err := get(c, byName(w.plain.URL)); err == nil || !strings.Contains(err.Error(), "address type not supported") {
				t.Errorf("asked for a name: %v", err)
			}
		},
		"socks5-name": func(t *testing.T, w *world, p Proxy) {
			c := w.client(t, p)
			w.wantRight(t, c, byName(w.plain.URL))
			if _, _, _, err := get(c, w.plain.URL); err == nil || !strings.Contains(err.Error(), "address type not supported") {
				t.Errorf("asked for an address: %v", err)
			}
		},
		"socks5-ipv6": goodSocks5,
		"socks5-grants-closes": func(t *testing.T, w *world, p Proxy) {
			conn := dial(t, p)
			io.WriteString(conn, "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50GET / HTTP/1.1\r\n\r\n")
			if text, err := io.ReadAll(conn); string(text) != "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00" || err != nil {
				t.Errorf("answers %q, %v; want a grant and the end", text, err)
			}
		},
		"slow-first-byte": func(t *testing.T, w *world, p Proxy) {
			began := time.Now()
			w.wantRight(t, w.client(t, p), w.plain.URL)
			if took := time.Since(began); took < w.slow/20 {
				t.Errorf("answered after %v, want %v", took, w.slow/20)
			}
		},
		"rotating": func(t *testing.T, w *world, p Proxy) {
			var seen []string
			for range 5 {
				seen = append(seen, w.judged(t, p, nil, "").Address)
			}
			if len(p.Exits) != 4 || strings.Join(seen[:4], " ") != fmt.Sprintf("%v %v %v %v", p.Exits[0], p.Exits[1], p.Exits[2], p.Exits[3]) || seen[4] != seen[0] {
				t.Errorf("seen from %v, exits %v", seen, p.Exits)
			}
		},
		"anonymous":             adds("Via", "1.1 lab"),
		"distorting":            adds("X-Forwarded-For", "1.2.3.4"),
		"transparent-odd":       adds("X-Lab-Caller", "user@[127.0.0.1]:lab"),
		"transparent-forwarded": adds("Forwarded", `for="127.0.0.1:`),
		"transparent-ipv6":      adds("X-Forwarded-For", "::1"),
		"http-ipv6":             goodHTTP,
		"ipv6-exit": func(t *testing.T, w *world, p Proxy) {
			goodHTTP(t, w, p)
			s := &session{lab: w.Lab, proxy: w.byName[p.Name]}
			ln, err := net.Listen("tcp6", "[::1]:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			for _, host := range []string{"localhost", "::1"} {
				conn, err := s.dial(t.Context(), net.JoinHostPort(host, fmt.Sprint(ln.Addr().(*net.TCPAddr).Port)))
				if err != nil {
					t.Fatal(err)
				}
				if got := conn.LocalAddr().(*net.TCPAddr).AddrPort().Addr(); got != loopback6 || got != p.Exits[1] {
					t.Errorf("%s is reached from %v", host, got)
				}
				w.untrack(conn)
			}
		},
		"http-407-bare": func(t *testing.T, w *world, p Proxy) {
			for _, conn := range []net.Conn{w.ask(t, p), w.askConnect(t, p, hostport(t, w.secure.URL))} {
				if text, err := io.ReadAll(conn); !strings.HasPrefix(string(text), "HTTP/1.1 407 \r\n") || strings.Contains(string(text), "Authenticate") || err != nil {
					t.Errorf("%q, %v", text, err)
				}
			}
		},
		"connect-407": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			wantConnectStatus(t, w, p, 407)
		},
		"judge-only": func(t *testing.T, w *world, p Proxy) {
			c := w.client(t, p)
			w.wantRight(t, c, w.plain.URL)
			w.wantRight(t, c, byName(w.plain.URL))
			w.wantRight(t, c, w.secure.URL)
			wantStatus(t, c, strings.Replace(w.plain.URL, "127.0.0.1", "127.0.0.2", 1), 403)
			if status, _, err := readAnswer(t, w.askConnect(t, p, "127.0.0.2:443")); status != 403 || err != nil {
				t.Errorf("CONNECT to another host: %d, %v", status, err)
			}
		},
		"resets": func(t *testing.T, w *world, p Proxy) {
			if n, err := w.ask(t, p).Read(make([]byte, 1)); n != 0 || !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("read %d bytes, %v; want a reset", n, err)
			}
		},
		"fast-fails": func(t *testing.T, w *world, p Proxy) {
			wantStatus(t, w.client(t, p), w.plain.URL, 502)
			wantConnectStatus(t, w, p, 502)
		},
		"first-only": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			for range 2 {
				if n, err := w.ask(t, p).Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("read %d bytes, %v; want the end", n, err)
				}
			}
		},
		"connect-silent": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			wantSilence(t, w.askConnect(t, p, hostport(t, w.secure.URL)))
		},
		"tls-silent": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			wantSilence(t, w.tunnel(t, p))
		},
		"connect-closes": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			conn := w.tunnel(t, p)
			io.WriteString(conn, "hello")
			if text, err := io.ReadAll(conn); len(text) > 0 || err != nil {
				t.Errorf("%q, %v; want the end", text, err)
			}
		},
		"connect-garbage": func(t *testing.T, w *world, p Proxy) {
			w.wantRight(t, w.client(t, p), w.plain.URL)
			conn := w.tunnel(t, p)
			io.WriteString(conn, "hello")
			if text, err := io.ReadAll(conn); string(text) != "220 lab.example.org ESMTP\r\n" || err != nil {
				t.Errorf("%q, %v", text, err)
			}
		},
		"honeypot": func(t *testing.T, w *world, p Proxy) {
			c := w.client(t, p)
			c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // the careless one
			for _, target := range []string{"http://192.0.2.1/x", "https://192.0.2.1/x", "https://example.org/x"} {
				if status, body, _, err := get(c, target); status != 200 || !strings.Contains(body, "It works!") || err != nil {
					t.Errorf("%s: %d %q, %v", target, status, body, err)
				}
			}
		},
		"forges-unsigned": judged(testKey, func(t *testing.T, a judge.Answer) {
			if err := a.Verify(testKey); !errors.Is(err, judge.ErrUnsigned) || !strings.HasPrefix(a.Address, "127.64.") {
				t.Errorf("%+v: %v", a, err)
			}
		}),
		"forges-signed": judged(testKey, func(t *testing.T, a judge.Answer) {
			if err := a.Verify(testKey); !errors.Is(err, judge.ErrForged) || a.Headers["X-Forwarded-For"] != nil {
				t.Errorf("%+v: %v", a, err)
			}
		}),
		"edits-answer": judged(testKey, func(t *testing.T, a judge.Answer) {
			if err := a.Verify(testKey); !errors.Is(err, judge.ErrForged) || a.Headers["X-Forwarded-For"] != nil || a.Headers["Via"] != nil {
				t.Errorf("%+v: %v", a, err)
			}
			a.Headers["X-Forwarded-For"], a.Headers["Via"] = []string{"127.0.0.1"}, []string{"1.1 lab"}
			if err := a.Verify(testKey); err != nil {
				t.Errorf("with what it has taken out: %v", err)
			}
		}),
		"replays": func(t *testing.T, w *world, p Proxy) {
			first := w.judged(t, p, testKey, "&form=page")
			for range 2 {
				a := w.judged(t, p, testKey, "&form=page")
				if err := a.Verify(testKey); err != nil || a.Nonce == question || a.TimeMS != first.TimeMS {
					t.Errorf("%+v: %v", a, err)
				}
			}
			w.wantRight(t, w.client(t, p), w.plain.URL)
		},
		"injects-script": altersPages(injected + "</body>"),
		"blocks-ads":     altersPages(""),
	}
}

// question is the nonce of the tests.
const question = "00112233445566778899aabbccddeeff"

var testKey = judge.Key(strings.Repeat("k", 32))

// judged asks a judge with the key through a proxy.
func (w *world) judged(t *testing.T, p Proxy, key judge.Key, form string) (a judge.Answer) {
	t.Helper()
	w.judge.Store(&judge.Handler{Key: key})
	_, body, _, err := get(w.client(t, p), w.plain.URL+"/judge?nonce="+question+form)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(body)
	if form != "" {
		if text, err = judge.CutPage(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return a
}

// adds wants a header to begin with a text, and all else right.
func adds(name, value string) func(*testing.T, *world, Proxy) {
	return func(t *testing.T, w *world, p Proxy) {
		c := w.client(t, p)
		w.wantRight(t, c, w.plain.URL)
		w.wantRight(t, c, w.secure.URL)
		a := w.judged(t, p, testKey, "")
		if got := a.Headers[name]; len(got) != 1 || !strings.HasPrefix(got[0], value) {
			t.Errorf("the judge saw %s: %q, want %q", name, got, value)
		}
		if err := a.Verify(testKey); err != nil || a.Address != p.Exits[0].String() {
			t.Errorf("seen at %s: %v", a.Address, err)
		}
	}
}

// altersPages wants HTML to come back altered, with a text in it, and all else
// as it was.
func altersPages(with string) func(*testing.T, *world, Proxy) {
	return func(t *testing.T, w *world, p Proxy) {
		c := w.client(t, p)
		w.wantRight(t, c, w.plain.URL)
		w.wantRight(t, c, w.secure.URL)
		if err := w.judged(t, p, testKey, "").Verify(testKey); err != nil {
			t.Errorf("JSON: %v", err)
		}
		_, body, _, err := get(c, w.plain.URL+"/judge?form=page&nonce="+question)
		if _, cut := judge.CutPage([]byte(body)); err != nil || !errors.Is(cut, judge.ErrPageAltered) || !strings.Contains(body, with) {
			t.Errorf("%v, %v in %s", err, cut, body)
		}
	}
}

func byName(target string) string { return strings.Replace(target, "127.0.0.1", "localhost", 1) }

// askPlainly asks a proxy that speaks TLS as if it did not.
func (w *world) askPlainly(t *testing.T, p Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.URL.Endpoint.HostPort())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET %s/a/page HTTP/1.1\r\nHost: lab\r\n\r\n", w.plain.URL)
	return conn
}

func wantCertificateError[E error](t *testing.T, w *world, p Proxy) (want E) {
	t.Helper()
	if _, _, _, err := get(w.client(t, p), w.plain.URL); !errors.As(err, &want) {
		t.Errorf("%v, want %T", err, want)
	}
	return want
}

// asUser wants a reply of SOCKS 4 for a user, and the other one for nobody.
func asUser(want byte, user string, named bool) func(*testing.T, *world, Proxy) {
	return func(t *testing.T, w *world, p Proxy) {
		if p.URL.Endpoint.User() != user {
			t.Errorf("the list has %q", p.URL.Endpoint.User())
		}
		to := netip.MustParseAddrPort(hostport(t, w.plain.URL))
		for user, want := range map[string]byte{user: want, "": 93} {
			conn := dial(t, p)
			request := binary.BigEndian.AppendUint16([]byte{4, 1}, to.Port())
			if named {
				request = append(request, "\x00\x00\x00\x01"+user+"\x00localhost\x00"...)
			} else {
				request = append(append(request, to.Addr().AsSlice()...), user+"\x00"...)
			}
			conn.Write(request)
			var reply [8]byte
			if _, err := io.ReadFull(conn, reply[:]); err != nil || reply != [8]byte{0, want} {
				t.Fatalf("as %q: reply %v, %v; want %d", user, reply, err, want)
			}
			if want != 90 {
				continue
			}
			fmt.Fprint(conn, "GET /a/page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if status, body, err := readAnswer(t, conn); status != 200 || body != "you asked for /a/page" || err != nil {
				t.Errorf("status %d, body %q, %v", status, body, err)
			}
		}
	}
}

// tunnel asks for a tunnel to the secure destination, and gets it.
func (w *world) tunnel(t *testing.T, p Proxy) net.Conn {
	t.Helper()
	conn := w.askConnect(t, p, hostport(t, w.secure.URL))
	if head, err := bufio.NewReader(io.LimitReader(conn, int64(len(established)))).ReadString(0); head != established {
		t.Fatalf("CONNECT: %q, %v", head, err)
	}
	return conn
}

func wantSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !isTimeout(err) {
		t.Errorf("read %d bytes, %v; want silence", n, err)
	}
}
