package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"evenpool/sources/proxyurl"

	"go.uber.org/goleak"
)

func TestListHasWhatIsClaimed(t *testing.T) {
	l := start(t, Options{Population: []Spec{{"claimed-https", 1}, {"socks5-password", 1}}})
	p := l.Proxies()
	want := fmt.Sprintf("https://%s\nsocks5://lab:s3cret%%3A%%40%%2F@%s\n", p[0].URL.Endpoint, p[1].URL.Endpoint.HostPort())
	if got := l.ListText(); got != want {
		t.Errorf("list:\n%swant:\n%s", got, want)
	}
	if got := p[0].URL.Scheme; got != proxyurl.HTTP {
		t.Errorf("claimed-https is spoken as %s, want http", got)
	}
	for line := range strings.Lines(l.ListText()) {
		if _, err := proxyurl.ParseURL(strings.TrimSpace(line)); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
	}
}

func TestFailAndRecover(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"flaky", 1}, {"http", 1}}})
	flaky := w.proxy(t, "flaky")
	client := w.client(t, flaky)
	w.wantRight(t, client, w.plain.URL)

	tunnel := w.askConnect(t, flaky, hostport(t, w.plain.URL))
	if _, err := io.ReadFull(tunnel, make([]byte, len(established))); err != nil {
		t.Fatal(err)
	}
	if err := w.SetFailing("flaky", true); err != nil {
		t.Fatal(err)
	}
	if _, err := tunnel.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open tunnel of a proxy that fails: %v, want a reset", err)
	}
	if _, _, _, err := get(client, w.plain.URL); err == nil {
		t.Error("a failing proxy answers")
	}
	if !w.proxy(t, "flaky").Failing {
		t.Error("a failing proxy is not shown as failing")
	}
	w.wantRight(t, w.client(t, w.proxy(t, "http")), w.plain.URL) // others are not touched

	if err := w.SetFailing("flaky", false); err != nil {
		t.Fatal(err)
	}
	w.wantRight(t, client, w.plain.URL)
	if err := w.SetFailing("nobody\x1b", true); !errors.Is(err, ErrUnknown) || err.Error() != `no such proxy in the lab: "nobody\\x1b"` {
		t.Errorf("unknown name: %v", err)
	}
}

func TestNeverOutsideLoopback(t *testing.T) {
	l := start(t, Options{Population: []Spec{{"http", 1}}})
	s := &session{lab: l, proxy: l.proxies[0]}
	for _, target := range []string{
		"192.0.2.1:80", "203.0.113.7:443", "169.254.169.254:80", "10.0.0.1:80", "0.0.0.0:80", "126.255.255.255:80", "128.0.0.0:80",
		"[::1]:80", "[::]:80", "[2001:db8::1]:80", "[::ffff:10.0.0.1]:80", "[fe80::1%lo]:80",
		"example.org:80", "localhost.example.org:80", "127.1:80", "0x7f000001:80", ":80",
	} {
		if conn, err := s.dial(t.Context(), target); !errors.Is(err, errOutside) {
			t.Errorf("dial %s: %v, %v; want a refusal", target, conn, err)
		}
	}
}

func TestRefusesOutsideInEveryProtocol(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"http", 1}, {"socks4", 1}, {"socks4a", 1}, {"socks5", 1}, {"mitm", 1}}})
	for _, test := range []struct{ name, proxy, say, want string }{
		{"GET", "http", "GET http://192.0.2.1/ HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
		{"CONNECT", "http", "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
		{"intercepted CONNECT", "mitm", "CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 403 "},
		{"socks4", "socks4", "\x04\x01\x00\x50\xc0\x00\x02\x01\x00", "\x00\x5b"},
		{"socks4 and a name", "socks4", "\x04\x01\x00\x50\x00\x00\x00\x01\x00localhost\x00", "\x00\x5b"},
		{"socks4a", "socks4a", "\x04\x01\x00\x50\x00\x00\x00\x01\x00example.org\x00", "\x00\x5b"},
		{"socks4a and an address", "socks4a", "\x04\x01\x00\x50\xc0\x00\x02\x01\x00", "\x00\x5b"},
		{"socks5 and an address", "socks5", "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", "\x05\x00\x05\x02"},
		{"socks5 and IPv6", "socks5", "\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x50", "\x05\x00\x05\x02"},
		{"socks5 and a name", "socks5", "\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x00\x50", "\x05\x00\x05\x02"},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn := dial(t, w.proxy(t, test.proxy))
			io.WriteString(conn, test.say)
			got := make([]byte, len(test.want))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != test.want {
				t.Errorf("answer %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	defer goleak.VerifyNone(t)
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"an address outside", Options{Addr: "0.0.0.0"}, `lab address "0.0.0.0": want an address within 127.0.0.0/8`},
		{"no address", Options{Addr: "localhost"}, `lab address "localhost": want an address within 127.0.0.0/8`},
		{"unknown behaviour", Options{Population: []Spec{{"htpp", 1}}}, `lab behaviour "htpp": unknown`},
		{"none of one", Options{Population: []Spec{{"http", 0}}}, "lab behaviour http: count 0: want at least 1"},
		{"too many", Options{Population: []Spec{{"http", 1}, {"slow", maxPopulation}}}, "lab behaviour slow: count 1000000: want at most 1000000 proxies in all"},
		{"ports beyond the last", Options{BasePort: 65535}, fmt.Sprintf("lab base port 65535: want 1 to %d, for %d ports", 65536-len(everyday()), len(everyday()))},
		{"port taken", Options{BasePort: port, Population: []Spec{{"http", 1}}},
			fmt.Sprintf("lab proxy http: listen tcp4 127.0.0.1:%d: bind: address already in use", port)},
		{"port taken, for one that refuses", Options{BasePort: port, Population: []Spec{{"refuses", 1}}},
			fmt.Sprintf("lab proxy refuses: bind port %d: address already in use", port)},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := Start(t.Context(), test.o)
			if err == nil {
				l.Close()
				t.Fatal("no error")
			}
			if err.Error() != test.want {
				t.Errorf("error %q\nwant  %q", err, test.want)
			}
		})
	}
}

func TestBasePortGivesFixedPorts(t *testing.T) {
	groups, err := plan([]Spec{{"http", 1}, {"slow", 2}, {"http", 2}, {"refuses", 1}}, netip.MustParseAddr("127.0.0.9"), 4000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range groups {
		got = append(got, fmt.Sprint(g.Behaviour, " ", g.port, " ", g.addrs, " ", g.name(0)))
	}
	want := []string{
		"http 4000 [127.16.0.1 127.16.0.2 127.16.0.3] http-1",
		"slow 4001 [127.16.0.4 127.16.0.5] slow-1",
		"refuses 4002 [127.0.0.9] refuses",
	}
	if !slices.Equal(got, want) {
		t.Errorf("plan:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPopulationSharesASocket(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"http", 1000}, {"refuses", 3}}})
	if len(w.sockets) != 2 {
		t.Errorf("%d sockets for 1,003 proxies of two behaviours, want 2", len(w.sockets))
	}
	if n := len(w.Proxies()); n != 1003 {
		t.Errorf("%d proxies, want 1003", n)
	}
	for _, name := range []string{"http-1", "http-256", "http-1000"} {
		w.wantRight(t, w.client(t, w.proxy(t, name)), w.plain.URL)
	}
	for _, name := range []string{"refuses-1", "refuses-3"} {
		if _, err := net.Dial("tcp", w.proxy(t, name).URL.Endpoint.HostPort()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v, want a refused connection", name, err)
		}
	}
	// An address that belongs to no proxy is none.
	stray := w.proxy(t, "http-1")
	endpoint, err := proxyurl.NewEndpoint("127.0.0.1", stray.URL.Endpoint.Port(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	stray.URL.Endpoint = endpoint
	if _, _, _, err := get(w.client(t, stray), w.plain.URL); err == nil {
		t.Error("an address without a proxy answers")
	}
	// One of many fails alone.
	if err := w.SetFailing("http-7", true); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := get(w.client(t, w.proxy(t, "http-7")), w.plain.URL); err == nil {
		t.Error("http-7 answers, though it was told to fail")
	}
	w.wantRight(t, w.client(t, w.proxy(t, "http-8")), w.plain.URL)
}

// TestP5_AnswersAreNotMixed asks 200 at once, each for a page of its own.
func TestP5_AnswersAreNotMixed(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"http", 50}, {"socks5", 50}}})
	proxies := w.Proxies()
	var wg sync.WaitGroup
	for i := range 200 {
		client := w.client(t, proxies[i%len(proxies)])
		wg.Go(func() {
			targets := []string{w.plain.URL}
			if i%4 == 0 { // TLS takes much longer than all else
				targets = append(targets, w.secure.URL)
			}
			for _, target := range targets {
				_, body, _, err := get(client, fmt.Sprintf("%s/%d", target, i))
				if want := fmt.Sprintf("you asked for /%d", i); err != nil || body != want {
					t.Errorf("answer %q, %v; want %q", body, err, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestConnectionsAreBounded(t *testing.T) {
	w := newWorld(t, Options{MaxConns: 1, Population: []Spec{{"silent", 1}}})
	p := w.proxy(t, "silent")
	first := dial(t, p)
	io.WriteString(first, "anything")
	// The second is accepted behind the first, so it is over the bound. The reset
	// may come before Dial is back.
	second, err := net.Dial("tcp", p.URL.Endpoint.HostPort())
	if err == nil {
		defer second.Close()
		second.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = second.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection over the bound: %v, want a reset", err)
	}
	if n := w.connections(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
}

// TestCloseWaitsForAll closes a lab in the middle of every behaviour.
func TestCloseWaitsForAll(t *testing.T) {
	w := newWorld(t, Options{Population: each(t)})
	for _, p := range w.Proxies() {
		if p.Behaviour == "refuses" {
			continue
		}
		w.ask(t, p)
		w.askConnect(t, p, hostport(t, w.secure.URL))
		dial(t, p)
	}
	for range 2 { // a second Close is no error
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := w.connections(); n != 0 {
			t.Fatalf("%d connections after Close", n)
		}
	}
	for _, p := range w.Proxies() {
		if conn, err := net.Dial("tcp", p.URL.Endpoint.HostPort()); err == nil {
			conn.Close()
			t.Errorf("%s accepts after Close", p.Name)
		}
	}
}

// TestWithoutIPv6: what a machine without ::1 says is told from what else may be
// wrong. An address that no machine has gives the same error.
func TestWithoutIPv6(t *testing.T) {
	if _, err := net.Listen("tcp6", "[2001:db8::1]:0"); !isWithoutIPv6(err) {
		t.Errorf("%v is not taken for a machine without it", err)
	}
	if isWithoutIPv6(syscall.EADDRINUSE) || isWithoutIPv6(nil) {
		t.Error("anything is taken for a machine without it")
	}
}
