package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Silent proxies are most of what a large lab has, and they do nothing. So they
// get no goroutine, no buffer and no timer each: one thread waits on epoll for
// all of a behaviour's connections, and for their ends only. What a client says
// stays in the kernel.

// silence is listeners whose connections are never answered.
type silence struct {
	lab       *Lab
	at        map[netip.Addr]*entry
	epoll     int
	wake      int // an eventfd: something has changed
	listeners map[int32]bool
	held      map[int32]heldConn
}

type heldConn struct {
	*entry
	since time.Time
}

// hush takes over the sockets of listeners.
func (l *Lab) hush(listeners []net.Listener, at map[netip.Addr]*entry) (s *silence, err error) {
	s = &silence{lab: l, at: at, epoll: -1, wake: -1, listeners: make(map[int32]bool), held: make(map[int32]heldConn)}
	defer func() {
		if err != nil {
			s.close()
			s.closeWake()
		}
	}()
	if s.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if s.wake, err = eventfd(); err != nil {
		return nil, err
	}
	if err := s.watch(s.wake, syscall.EPOLLIN); err != nil {
		return nil, err
	}
	for _, ln := range listeners {
		raw, err := ln.(*net.TCPListener).SyscallConn()
		if err != nil {
			return nil, err
		}
		own := -1 // a descriptor that nobody else closes
		if outer := raw.Control(func(fd uintptr) { own, err = dup(fd) }); outer != nil || err != nil {
			return nil, errors.Join(outer, err)
		}
		s.listeners[int32(own)] = true
		if err := s.watch(own, syscall.EPOLLIN); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *silence) watch(fd int, events uint32) error {
	return syscall.EpollCtl(s.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: events, Fd: int32(fd)})
}

// nudge makes run look at the lab's and its proxies' states.
func (s *silence) nudge() {
	syscall.Write(s.wake, binary.NativeEndian.AppendUint64(nil, 1))
}

// run holds connections until the lab is closed.
func (s *silence) run(ctx context.Context) {
	defer s.close()
	const sweepEvery = connLife / 4
	events := make([]syscall.EpollEvent, 256)
	swept := time.Now()
	for {
		n, err := syscall.EpollWait(s.epoll, events, int(sweepEvery.Milliseconds()))
		if err != nil && err != syscall.EINTR {
			s.lab.log.Warn("lab cannot wait", "error", err)
			return
		}
		changed := false
		for _, event := range events[:max(n, 0)] {
			switch {
			case int(event.Fd) == s.wake:
				var scrap [8]byte
				syscall.Read(s.wake, scrap[:])
				changed = true
			case s.listeners[event.Fd]:
				s.accept(int(event.Fd))
			default: // the client has gone
				s.end(event.Fd, false)
			}
		}
		// Behind the events: what is closed here may be a number of a new
		// connection's in the next accept, and of an old one's in events.
		if changed {
			s.endWhere(func(c heldConn) bool { return c.failing.Load() })
		}
		if ctx.Err() != nil {
			return
		}
		if now := time.Now(); now.Sub(swept) > sweepEvery {
			swept = now
			s.endWhere(func(c heldConn) bool { return now.Sub(c.since) > connLife })
		}
	}
}

// accept takes what is waiting, a few at a time: others wait, too.
func (s *silence) accept(listener int) {
	now := time.Now()
	for range 256 {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		switch err {
		case nil:
		case syscall.EINTR, syscall.ECONNABORTED:
			continue
		case syscall.EAGAIN:
			return
		default: // mostly: too many open files
			s.lab.log.Warn("lab cannot accept", "error", err)
			time.Sleep(20 * time.Millisecond)
			return
		}
		e := s.at[sockAddr(fd)]
		if e == nil || !s.lab.hold(e) {
			resetFD(fd)
			continue
		}
		s.held[int32(fd)] = heldConn{e, now}
		if s.watch(fd, syscall.EPOLLRDHUP) != nil {
			s.end(int32(fd), true)
		}
	}
}

func (s *silence) endWhere(which func(heldConn) bool) {
	for fd, c := range s.held {
		if which(c) {
			s.end(fd, true)
		}
	}
}

func (s *silence) end(fd int32, abruptly bool) {
	if _, ok := s.held[fd]; !ok {
		return
	}
	delete(s.held, fd)
	s.lab.quiet.Add(-1)
	if abruptly {
		resetFD(int(fd))
		return
	}
	syscall.Close(int(fd))
}

func (s *silence) close() {
	s.endWhere(func(heldConn) bool { return true })
	for fd := range s.listeners {
		syscall.Close(int(fd))
	}
	if s.epoll >= 0 {
		syscall.Close(s.epoll)
	}
}

// closeWake comes when nobody nudges any more.
func (s *silence) closeWake() {
	if s.wake >= 0 {
		syscall.Close(s.wake)
	}
}

// hold is track for a connection that is held by a silence.
func (l *Lab) hold(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || e.failing.Load() || len(l.conns)+int(l.quiet.Load()) >= l.maxConns {
		return false
	}
	l.quiet.Add(1)
	return true
}

func dup(fd uintptr) (int, error) {
	const dupCloexec = 1030 // F_DUPFD_CLOEXEC, fcntl(2)
	n, _, errno := syscall.Syscall(syscall.SYS_FCNTL, fd, dupCloexec, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

func eventfd() (int, error) {
	n, _, errno := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// sockAddr is the address that a connection came to.
func sockAddr(fd int) netip.Addr {
	at, err := syscall.Getsockname(fd)
	if at, ok := at.(*syscall.SockaddrInet4); ok && err == nil {
		return netip.AddrFrom4(at.Addr)
	}
	return netip.Addr{}
}

func resetFD(fd int) {
	syscall.SetsockoptLinger(fd, syscall.SOL_SOCKET, syscall.SO_LINGER, &syscall.Linger{Onoff: 1})
	syscall.Close(fd)
}
