package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// full listens on loopback, and its queue is full: who connects gets no answer.
func full(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*syscall.SockaddrInet4).Port))
	for range 32 {
		conn, err := net.DialTimeout("tcp", at.String(), 200*time.Millisecond)
		if err != nil {
			return at
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Skip("a queue of this machine is never full")
	return at
}

func TestConnect(t *testing.T) {
	s := httptest.NewServer(forward(&judge.Handler{}))
	defer s.Close()
	open := netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://"))
	conn, err := connectTo(t.Context(), loopback(), open, time.Now().Add(time.Minute), true)
	if err != nil {
		t.Fatal(err)
	}
	if got := remoteAddr(conn); got != open.Addr() || conn.RemoteAddr().String() != open.String() {
		t.Errorf("connected to %v", got)
	}
	if _, err := conn.Write([]byte("GET http://a/?nonce=00112233445566778899aabbccddeeff HTTP/1.0\r\n\r\n")); err != nil {
		t.Error(err)
	}
	if n, err := conn.Read(make([]byte, 9)); n != 9 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	// The deadline holds for what is done with the connection, too.
	if err := conn.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Error(err)
	}
	_, err = conn.Read(make([]byte, 9))
	if got := classify(err, StageResponse, noTLS); got != Timeout || detail(err) != "i/o timeout" {
		t.Errorf("after the deadline: %s, %s", got, detail(err))
	}
	conn.Close()

	var forbidden *proxyurl.ForbiddenError
	if _, err := connectTo(t.Context(), nil, open, time.Now().Add(time.Minute), false); !errors.As(err, &forbidden) {
		t.Errorf("loopback is not opened: %v", err)
	}
	mapped := netip.AddrPortFrom(netip.AddrFrom16(open.Addr().As16()), open.Port())
	if _, err := connectTo(t.Context(), nil, mapped, time.Now().Add(time.Minute), false); !errors.As(err, &forbidden) {
		t.Errorf("loopback as IPv6 is not opened: %v", err)
	}
	s.Close()
	_, err = connectTo(t.Context(), loopback(), open, time.Now().Add(time.Minute), false)
	if got := classify(err, StageDial, noTLS); got != Refused || detail(err) != "connect: connection refused" {
		t.Errorf("a closed port: %s, %s", got, detail(err))
	}
}

// TestConnectEnds: at its deadline, and with its context.
func TestConnectEnds(t *testing.T) {
	at := full(t)
	began := time.Now()
	_, err := connectTo(t.Context(), loopback(), at, began.Add(300*time.Millisecond), false)
	if got := classify(err, StageDial, noTLS); got != DialTimeout || time.Since(began) < 300*time.Millisecond {
		t.Errorf("%s after %v: %v", got, time.Since(began), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("stopping")) })
	e := mustProxy(t, "http://"+at.String())
	r := one(New(Options{Timeout: time.Minute}), ctx, e, loopback(), []put{{ownJudge(t), HTTP}})
	if wantCheck(t, r.Last(), Cancelled, StageDial, "stopping"); time.Since(began) > 30*time.Second {
		t.Errorf("cancelled after %v", time.Since(began))
	}
	r = one(New(Options{Timeout: time.Minute, ConnectTimeout: 50 * time.Millisecond}), t.Context(), e, loopback(), []put{{ownJudge(t), HTTP}})
	wantCheck(t, r.Last(), DialTimeout, StageDial, "i/o timeout")
}

// TestH4_NoDescriptorIsLocal: a socket that could not be made says nothing of a proxy.
func TestH4_NoDescriptorIsLocal(t *testing.T) {
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort("127.0.0.1:9")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Skip(err)
	}
	_, err := connectTo(t.Context(), loopback(), at, time.Now().Add(time.Minute), false)
	if restored := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); restored != nil {
		t.Fatal(restored)
	}
	if got := classify(err, StageDial, noTLS); got != LocalDescriptors {
		t.Errorf("%s: %v", got, err)
	}
}

// TestAdmit: a name's addresses are asked about, with the probe's context; an address
// in the list is not.
func TestAdmit(t *testing.T) {
	proxy := through(t, nil)
	type key struct{}
	var asked []string
	p := New(Options{Resolver: toAddr("127.0.0.1"), Admit: func(ctx context.Context, addr netip.Addr) error {
		asked = append(asked, ctx.Value(key{}).(string)+" "+addr.String())
		return nil
	}})
	ctx := context.WithValue(t.Context(), key{}, "mine")
	for _, host := range []string{"127.0.0.1", "proxy.example.org"} {
		e, err := proxyurl.NewEndpoint(host, proxy.Endpoint.Port(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if r := one(p, ctx, proxyurl.URL{Scheme: proxyurl.HTTP, Endpoint: e}, loopback(), []put{{ownJudge(t), HTTP}}); r.Outcome != OK {
			t.Errorf("%s: %s (%s)", host, r.Outcome, r.Last().Detail)
		}
	}
	if len(asked) != 1 || asked[0] != "mine 127.0.0.1" {
		t.Errorf("asked %v", asked)
	}
}

// TestControlSeesAllOfUs: a judge with addresses of both families is asked by both,
// and one that is well is enough.
func TestControlSeesAllOfUs(t *testing.T) {
	var h judge.Handler
	tagged := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Before", "the judge") // as a server before it would
		h.ServeHTTP(w, r)
	})
	four := httptest.NewServer(tagged)
	defer four.Close()
	j := ownJudge(t)
	j.HTTP.Host = "judge.example.org:" + mustURL(t, four.URL).Port()
	j.Allow = proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	p := New(Options{Resolver: localhost{}})
	check, seen := p.Control(t.Context(), j, HTTP)
	if check.Outcome != OK || len(seen.Own) != 1 || seen.Own[0] != netip.MustParseAddr("127.0.0.1") || len(seen.Headers["mine"]) == 0 {
		t.Errorf("by IPv4 alone: %+v, %+v", check, seen)
	}
	l, err := net.Listen("tcp", "[::1]:"+mustURL(t, four.URL).Port())
	if err != nil {
		t.Skip(err)
	}
	six := &http.Server{Handler: tagged}
	defer six.Close()
	go func() { _ = six.Serve(l) }()
	h = judge.Handler{}
	check, seen = p.Control(t.Context(), j, HTTP)
	if check.Outcome != OK || len(seen.Own) != 2 || h.Hits() != 2 {
		t.Errorf("by both: %+v, %+v, %d questions", check, seen, h.Hits())
	}
	four.Close()
	six.Close()
	if check, seen = p.Control(t.Context(), j, HTTP); check.Outcome != JudgeUnreachable || len(seen.Own) != 0 {
		t.Errorf("by none: %+v, %+v", check, seen)
	}
	if check, _ := p.Control(t.Context(), j, "something"); check.Outcome != JudgeUnreachable && check.Outcome != Unknown {
		t.Errorf("what it cannot show: %+v", check)
	}
	if check := p.ControlTarget(t.Context(), Target{Name: "shop", URL: j.HTTP, Allow: j.Allow}); check.Outcome != JudgeUnreachable || check.Target != "shop" {
		t.Errorf("target: %+v", check)
	}
}

// localhost resolves every name to this host's two addresses.
type localhost struct{}

func (localhost) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return addrs("127.0.0.1", "::1"), nil
}

// connectTo connects to an address until the deadline.
func connectTo(ctx context.Context, allow proxyurl.Allow, at netip.AddrPort, deadline time.Time, quick bool) (net.Conn, error) {
	s, err := openTo(allow, at, quick)
	if err == nil {
		err = s.connected(ctx, func() time.Time { return deadline }, func() bool { return false })
	}
	return s, err
}
