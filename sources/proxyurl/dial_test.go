package proxyurl

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// testResolver answers the n-th question, from 1, whatever the name.
type testResolver struct {
	answer func(ctx context.Context, n int) ([]netip.Addr, error)
	asked  atomic.Int32
}

func (r *testResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	return r.answer(ctx, int(r.asked.Add(1)))
}

func always(texts ...string) *testResolver {
	return &testResolver{answer: func(context.Context, int) ([]netip.Addr, error) {
		var addrs []netip.Addr
		for _, text := range texts {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}}
}

// listen accepts connections on an address, counts them and closes each at once.
func listen(t *testing.T, addr string) (port string, hits *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	hits = new(atomic.Int32)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			hits.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, hits
}

func prefixes(texts ...string) (allow Allow) {
	for _, text := range texts {
		allow = append(allow, netip.MustParsePrefix(text))
	}
	return allow
}

func TestL1_DialerRefusesWhatIsNotPublic(t *testing.T) {
	port, hits := listen(t, "127.0.0.1:0")
	for _, c := range []struct {
		host   string
		dialer *Dialer
	}{
		{"127.0.0.1", &Dialer{}},
		{"::ffff:127.0.0.1", &Dialer{}},
		{"::1", &Dialer{}},
		{"::1%lo", &Dialer{Allow: prefixes("::1/128")}},
		{"::ffff:127.0.0.1%lo", &Dialer{Allow: prefixes("127.0.0.0/8")}},
		{"proxy.example.org", &Dialer{Resolver: always("127.0.0.1")}},
		{"proxy.example.org", &Dialer{Resolver: always("::ffff:127.0.0.1")}},
		{"proxy.example.org", &Dialer{Resolver: always("169.254.169.254")}},
		// One forbidden answer among good ones is a trick, not a spare.
		{"proxy.example.org", &Dialer{Resolver: always("127.0.0.1", "10.0.0.1"), Allow: prefixes("127.0.0.1/32")}},
		{"proxy.example.org", &Dialer{Resolver: always("127.0.0.2"), Allow: prefixes("127.0.0.1/32")}},
	} {
		conn, err := c.dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(c.host, port))
		var forbidden *ForbiddenError
		if !errors.As(err, &forbidden) {
			t.Errorf("dial %s: %v, %v, want a ForbiddenError", c.host, conn, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

// A resolver that gives a good address to whoever checks and a bad one to whoever
// dials: the name is resolved once, and the checked address is dialled.
func TestL1_DialerIsNotRebound(t *testing.T) {
	port, good := listen(t, "127.0.0.2:0")
	badListener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Skipf("the other address's port is taken: %v", err)
	}
	defer badListener.Close()
	resolver := &testResolver{answer: func(_ context.Context, n int) ([]netip.Addr, error) {
		if n == 1 {
			return []netip.Addr{netip.MustParseAddr("127.0.0.2")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}}
	d := &Dialer{Resolver: resolver, Allow: prefixes("127.0.0.2/32")}
	conn, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got, want := conn.RemoteAddr().String(), "127.0.0.2:"+port; got != want {
		t.Errorf("connected to %s, want %s", got, want)
	}
	if asked := resolver.asked.Load(); asked != 1 {
		t.Errorf("the name was resolved %d times, want once", asked)
	}
	// The next dial is a new question, and its answer is refused.
	var forbidden *ForbiddenError
	if _, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:"+port); !errors.As(err, &forbidden) {
		t.Errorf("second dial: %v, want a ForbiddenError", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || good.Load() != 1 {
		t.Errorf("read %v, %d connections, want the end and one", err, good.Load())
	}
}

// The last look is at the address that connect(2) gets.
func TestL1_DialerLooksAgainWhenItConnects(t *testing.T) {
	d := &Dialer{Allow: prefixes("127.0.0.0/8")}
	var forbidden *ForbiddenError
	for _, address := range []string{"10.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "[::ffff:10.0.0.1]:80"} {
		if err := d.control("tcp", address, nil); !errors.As(err, &forbidden) {
			t.Errorf("control(%s) = %v, want a ForbiddenError", address, err)
		}
	}
	if err := d.control("tcp4", "127.0.0.1:80", nil); err != nil {
		t.Errorf("control of an opened address: %v", err)
	}
	if err := d.control("tcp", "nonsense", nil); err == nil {
		t.Error("control of nonsense: no error")
	}
	port, hits := listen(t, "127.0.0.1:0")
	if _, err := new(Dialer).dialAddr(t.Context(), "127.0.0.1:"+port, 1); !errors.As(err, &forbidden) || hits.Load() != 0 {
		t.Errorf("an address that was not checked: %v, %d connections, want a ForbiddenError and none", err, hits.Load())
	}
}

func TestL1_DialerDoesNotFollowARedirectInside(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the inside was asked")
	}))
	defer inside.Close()
	outside := &httptest.Server{Config: &http.Server{Handler: http.RedirectHandler(inside.URL, http.StatusFound)}}
	var err error
	if outside.Listener, err = net.Listen("tcp", "127.0.0.2:0"); err != nil {
		t.Fatal(err)
	}
	outside.Start()
	defer outside.Close()

	d := &Dialer{Allow: prefixes("127.0.0.2/32")}
	transport := &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get(outside.URL)
	if err == nil {
		response.Body.Close()
	}
	var forbidden *ForbiddenError
	if !errors.As(err, &forbidden) || forbidden.Reason != "loopback" {
		t.Errorf("got %v, want a ForbiddenError for loopback", err)
	}
}

func TestDialerTriesTheNextAddress(t *testing.T) {
	port, hits := listen(t, "127.0.0.3:0")
	d := &Dialer{Resolver: always("127.0.0.2", "127.0.0.3"), Allow: prefixes("127.0.0.0/8")}
	conn, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || hits.Load() != 1 {
		t.Errorf("read %v, %d connections, want the end and one", err, hits.Load())
	}

	// Of many addresses only the first few are tried.
	d.Resolver = always("127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.3")
	if conn, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:"+port); err == nil {
		conn.Close()
		t.Error("the fourth address was tried, want three at most")
	}
}

func TestDialerEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &testResolver{answer: func(ctx context.Context, _ int) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		start := time.Now()
		_, err := (&Dialer{Resolver: silent, Timeout: time.Second}).DialContext(t.Context(), "tcp", "proxy.example.org:80")
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("%v after %s, want the deadline's error after 1s", err, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		if _, err := (&Dialer{Resolver: silent}).DialContext(ctx, "tcp", "proxy.example.org:80"); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the cancellation's error", err)
		}
	})
}

func TestDialerRefusesWhatItDoesNotUnderstand(t *testing.T) {
	d := &Dialer{Resolver: always()}
	var dns *net.DNSError
	if _, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:80"); !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("a name without addresses: %v, want a DNSError", err)
	}
	if _, err := d.DialContext(t.Context(), "udp", "8.8.8.8:53"); err == nil {
		t.Error("udp was dialled")
	}
	if _, err := d.DialContext(t.Context(), "tcp", "1.2.3.4\x1b"); err == nil ||
		err.Error() != `dial 1.2.3.4\x1b: not of the form host:port` {
		t.Errorf("no port: %v", err)
	}
}

// The resolver's slice may be one that it hands to everybody.
func TestLookupDoesNotWriteToTheResolversAnswer(t *testing.T) {
	answer := []netip.Addr{netip.MustParseAddr("::ffff:8.8.8.8")}
	r := &testResolver{answer: func(context.Context, int) ([]netip.Addr, error) { return answer, nil }}
	got, err := (&Dialer{Resolver: r}).Lookup(t.Context(), "proxy.example.org")
	if err != nil || len(got) != 1 || got[0] != netip.MustParseAddr("8.8.8.8") {
		t.Errorf("got %v, %v", got, err)
	}
	if !answer[0].Is4In6() {
		t.Error("the resolver's own slice was changed")
	}
}

// Of a name's addresses those that are not admitted are left out, and nothing is
// dialled where all are.
func TestDialerDialsWhatIsAdmitted(t *testing.T) {
	port, hits := listen(t, "127.0.0.2:0")
	refused := errors.New("not now")
	var asked []netip.Addr
	d := &Dialer{Allow: prefixes("127.0.0.0/8"), Resolver: always("127.0.0.1", "127.0.0.2"), Admit: func(addr netip.Addr) error {
		if asked = append(asked, addr); addr == netip.MustParseAddr("127.0.0.2") {
			return nil
		}
		return refused
	}}
	conn, err := d.DialContext(t.Context(), "tcp", "proxy.example.org:"+port)
	if err != nil || len(asked) != 2 {
		t.Fatalf("%v, asked about %v", err, asked)
	}
	conn.Close()
	d.Admit = func(netip.Addr) error { return refused }
	before := hits.Load()
	if _, err := d.DialContext(t.Context(), "tcp", "127.0.0.2:"+port); !errors.Is(err, refused) || hits.Load() != before {
		t.Errorf("none is admitted: %v, %d connections", err, hits.Load()-before)
	}
}
