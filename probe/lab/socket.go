package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// open opens the sockets of a group: one where that is enough. A group without
// a behaviour gets a port that refuses, and no listener.
func (l *Lab) open(ctx context.Context, g *group) ([]net.Listener, uint16, error) {
	if g.serve == nil {
		refusing, port, err := reservePort(g.port, g.addrs)
		if err != nil {
			return nil, 0, err
		}
		l.sockets = append(l.sockets, refusing)
		return nil, port, nil
	}
	if len(g.addrs) > 1 {
		ln, err := listenShared(ctx, g.port)
		if err == nil {
			l.sockets = append(l.sockets, ln)
			return []net.Listener{ln}, portOf(ln), nil
		}
		l.log.Warn("lab takes one socket for each address", "behaviour", g.Behaviour, "error", err)
	}
	var all []net.Listener
	port := uint16(g.port)
	for _, addr := range g.addrs {
		network := "tcp4"
		if addr.Is6() {
			network = "tcp6"
		}
		lc := net.ListenConfig{KeepAlive: -1}
		lc.SetMultipathTCP(false)
		ln, err := lc.Listen(ctx, network, netip.AddrPortFrom(addr, port).String())
		if err != nil {
			return nil, 0, err
		}
		l.sockets = append(l.sockets, ln)
		all = append(all, ln)
		port = portOf(ln) // the port that the first one got serves the others
	}
	return all, port, nil
}

func portOf(ln net.Listener) uint16 { return ln.Addr().(*net.TCPAddr).AddrPort().Port() }

// isWithoutIPv6 says whether ::1 cannot be listened on because there is none.
func isWithoutIPv6(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenShared listens with one socket on all of 127.0.0.0/8. The socket is
// bound to the loopback device before it is bound to an address, so that no
// other host reaches it; where that is not possible it gives an error.
func listenShared(ctx context.Context, port int) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1, Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if outer := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptString(int(fd), syscall.SOL_SOCKET, syscall.SO_BINDTODEVICE, "lo")
		}); outer != nil {
			return outer
		}
		return err
	}}
	lc.SetMultipathTCP(false)
	return lc.Listen(ctx, "tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(port)))
}

// reserved is a port that is bound and not listened on: it refuses every
// connection, and nobody else can take it meanwhile, not even a client that
// dials it and would otherwise get it as its own port and reach itself.
type reserved struct{ fd int }

func reservePort(port int, addrs []netip.Addr) (*reserved, uint16, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("socket: %w", err)
	}
	r := &reserved{fd}
	want := syscall.SockaddrInet4{Port: port}
	if len(addrs) == 1 {
		want.Addr = addrs[0].As4()
	}
	if err := syscall.Bind(fd, &want); err != nil {
		r.Close()
		return nil, 0, fmt.Errorf("bind port %d: %w", port, err)
	}
	got, err := syscall.Getsockname(fd)
	if err != nil {
		r.Close()
		return nil, 0, fmt.Errorf("getsockname: %w", err)
	}
	return r, uint16(got.(*syscall.SockaddrInet4).Port), nil
}

// Close frees the port.
func (r *reserved) Close() error { return syscall.Close(r.fd) }
