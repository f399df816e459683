package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"evenpool/sources/proxyurl"
)

// A connection of package net costs a context with a timer, a goroutine that waits
// for that context, four system calls that say what is known already, and a deep
// stack. Most candidates are dead, so that this is most of what a probe costs. This
// one is made by hand, for an address that was looked at.

// socket is a connection over TCP.
type socket struct {
	*os.File
	remote netip.AddrPort
}

func (s socket) LocalAddr() net.Addr  { return &net.TCPAddr{} } // nobody asks
func (s socket) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(s.remote) }

// openTo begins to connect to an address. quick: what is written goes out at once, also
// behind what the peer has not acknowledged.
func openTo(allow proxyurl.Allow, at netip.AddrPort, quick bool) (socket, error) {
	if err := allow.Check(at.Addr()); err != nil {
		return socket{}, err
	}
	fd, err := openSocket(at, quick)
	if err != nil {
		return socket{}, dialFault(err)
	}
	return socket{os.NewFile(uintptr(fd), ""), at}, nil
}

// connected waits until the connection stands, the deadline passes and is not moved on,
// or ctx ends; it is closed with an error.
func (s socket) connected(ctx context.Context, deadline func() time.Time, longer func() bool) error {
	stop := context.AfterFunc(ctx, func() { s.Close() })
	err := s.await(deadline())
	for errors.Is(err, os.ErrDeadlineExceeded) && longer() {
		err = s.await(deadline())
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.Close()
	}
	return err
}

// openSocket is openTo without package os.
func openSocket(at netip.AddrPort, quick bool) (fd int, err error) {
	family := syscall.AF_INET6
	var to syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	if addr := at.Addr().Unmap(); addr.Is4() {
		family, to = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: addr.As4()}
	}
	fd, err = syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if quick {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1))
	}
	if err == nil {
		if err = syscall.Connect(fd, to); err == syscall.EINPROGRESS || err == syscall.EINTR {
			err = nil
		}
		err = os.NewSyscallError("connect", err)
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// await waits until the connection stands.
func (s socket) await(deadline time.Time) error {
	if err := s.SetDeadline(deadline); err != nil {
		return dialFault(err)
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return dialFault(err)
	}
	var failed error
	err = raw.Write(func(fd uintptr) (done bool) {
		code, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
		if err != nil {
			failed = os.NewSyscallError("getsockopt", err)
			return true
		}
		switch errno := syscall.Errno(code); errno {
		case syscall.EINPROGRESS, syscall.EALREADY, syscall.EINTR:
			return false
		case 0, syscall.EISCONN:
			// The poller may wake us for nothing (golang.org/issue/14548).
			_, err := syscall.Getpeername(int(fd))
			return err == nil
		default:
			failed = os.NewSyscallError("connect", errno)
			return true
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return dialFault(err)
	}
	return nil
}

// dialFault is an error in the form that package net gives it.
func dialFault(err error) error {
	if path, ok := err.(*os.PathError); ok {
		err = path.Err
	}
	return &net.OpError{Op: "dial", Net: "tcp", Err: err}
}
