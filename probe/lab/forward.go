package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"evenpool/sources/proxyurl"
)

// errOutside is the lab's refusal to leave loopback.
var errOutside = errors.New("the lab reaches 127.0.0.0/8 only")

// dial connects to a destination that a client asked for, "host:port", from an
// exit of the proxy. The only name it knows is localhost; it asks no resolver.
// ::1 is within reach of proxies with an exit there.
func (s *session) dial(ctx context.Context, hostport string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, err
	}
	number, err := proxyurl.ParsePort(port)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		if s.proxy.how.ipv6Exit {
			if conn, err := s.dialAddr(ctx, netip.AddrPortFrom(loopback6, number)); err == nil {
				return conn, nil
			}
		}
		return s.dialAddr(ctx, netip.AddrPortFrom(loopback4, number))
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil, errOutside
	}
	if addr = addr.Unmap(); !loopback.Contains(addr) && (addr != loopback6 || !s.proxy.how.ipv6Exit) {
		return nil, errOutside
	}
	return s.dialAddr(ctx, netip.AddrPortFrom(addr, number))
}

func (s *session) dialAddr(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second, KeepAlive: -1}
	d.SetMultipathTCP(false)
	if exit := s.proxy.exit(); to.Addr().Is4() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(exit, 0))
		d.Control = portLater
	}
	conn, err := d.DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, err
	}
	if !s.lab.track(conn, s.proxy) {
		conn.Close()
		return nil, fmt.Errorf("dial %s: the lab takes no more connections", to.Addr())
	}
	return conn, nil
}

// exit is where the next connection comes from: of several, the one behind the
// last.
func (e *entry) exit() netip.Addr {
	if e.how.rotating {
		return e.Exits[int(e.served.Add(1)-1)%len(e.Exits)]
	}
	return e.Exits[0]
}

// portLater leaves the choice of a port to connect, which knows the destination:
// chosen before, there would be 28,000 for all destinations together.
func portLater(_, _ string, raw syscall.RawConn) error {
	const ipBindAddressNoPort = 24 // IP_BIND_ADDRESS_NO_PORT, ip(7)
	var err error
	if outer := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
	}); outer != nil {
		return outer
	}
	return err
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
