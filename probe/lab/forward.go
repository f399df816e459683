package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"evenpool/sources/proxyurl"
)

// errOutside is the lab's refusal to leave loopback.
var errOutside = errors.New("the lab reaches 127.0.0.0/8 only")

// dial connects to a destination that a client asked for, "host:port". The only
// name it knows is localhost; it asks no resolver.
func (s *session) dial(ctx context.Context, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	number, err := proxyurl.ParsePort(port)
	if err != nil {
		return nil, err
	}
	addr := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if host != "localhost" {
		if addr, err = netip.ParseAddr(host); err != nil {
			return nil, errOutside
		}
	}
	if addr = addr.Unmap(); !loopback.Contains(addr) {
		return nil, errOutside
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	d.SetMultipathTCP(false)
	conn, err := d.DialContext(ctx, "tcp4", netip.AddrPortFrom(addr, number).String())
	if err != nil {
		return nil, err
	}
	if !s.lab.track(conn, s.proxy) {
		conn.Close()
		return nil, fmt.Errorf("dial %s: the lab takes no more connections", addr)
	}
	return conn, nil
}

// relay copies in both directions. A side that has said all is told so to the
// other; an error on either ends both.
func relay(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(b, a)
	}()
	pass(a, b)
	<-done
}

// pass copies with a small buffer: what goes through a lab is small, and there
// may be thousands. (The default would be 32 KiB each, or the kernel's pipes.)
func pass(to, from net.Conn) {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 4<<10))
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		half.CloseWrite()
		return
	}
	to.Close()
	from.Close()
}

// CloseWrite ends what the client is told, and still listens.
func (s *session) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}
