package lab

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"time"

	"evenpool/sources/proxyurl"
)

// startGroup opens the group's sockets, names its proxies and serves them.
func (l *Lab) startGroup(start, serving context.Context, g *group) error {
	listeners, port, err := l.open(start, g)
	if err != nil {
		return err
	}
	at := make(map[netip.Addr]*entry, len(g.addrs))
	for i, addr := range g.addrs {
		endpoint, err := proxyurl.NewEndpoint(addr.String(), port, g.user, g.password)
		if err != nil {
			return err
		}
		e := &entry{Proxy: Proxy{
			Name:      g.name(i),
			Behaviour: g.Behaviour,
			URL:       proxyurl.URL{Scheme: g.spokenScheme(), Endpoint: endpoint},
			Claimed:   g.claimed,
			Exits:     g.exits(addr),
			Truth:     g.truth,
		}, how: g.how}
		at[addr] = e
		l.byName[e.Name] = e
		l.proxies = append(l.proxies, e)
	}
	if g.how.silent {
		quiet, err := l.hush(listeners, at)
		if err != nil {
			return err
		}
		l.silences = append(l.silences, quiet)
		l.running.Go(func() { quiet.run(serving) })
		return nil
	}
	for _, ln := range listeners {
		l.running.Add(1)
		go l.accept(serving, ln, g.serve, at)
	}
	return nil
}

// accept serves the connections of one listener until it is closed.
func (l *Lab) accept(ctx context.Context, ln net.Listener, serve behaviour, at map[netip.Addr]*entry) {
	defer l.running.Done()
	for {
		conn, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // mostly: too many open files
			l.log.Warn("lab cannot accept", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
				continue
			}
		}
		e := at[localAddr(conn)]
		if e == nil || !l.track(conn, e) {
			reset(conn)
			continue
		}
		l.running.Add(1)
		go func() {
			defer l.running.Done()
			defer l.untrack(conn)
			serve(ctx, &session{Conn: conn, lab: l, proxy: e})
		}()
	}
}

// track takes a connection into the lab's care: it is bounded in time, and ended
// when the lab ends or the proxy is told to fail. It says false, and leaves the
// connection alone, when there is no place for it.
func (l *Lab) track(conn net.Conn, e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || e.failing.Load() || len(l.conns)+int(l.quiet.Load()) >= l.maxConns {
		return false
	}
	if conn.SetDeadline(time.Now().Add(connLife)) != nil {
		return false
	}
	l.conns[conn] = e
	return true
}

func (l *Lab) untrack(conn net.Conn) {
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
	conn.Close()
}

// endConns resets the connections of some proxies; who serves them sees an error
// and goes. Those of silent ones end by their failing, or with the lab.
func (l *Lab) endConns(which func(*entry) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		for _, s := range l.silences {
			s.nudge()
		}
	}
	var ending []net.Conn
	for conn, e := range l.conns {
		if which(e) {
			abrupt(conn)
			ending = append(ending, conn)
		}
	}
	// Only now, because the end of one side makes its tunnel close the other.
	for _, conn := range ending {
		conn.Close()
	}
}

// reset closes a connection with RST, where it can.
func reset(conn net.Conn) {
	abrupt(conn)
	conn.Close()
}

// abrupt makes the connection's end a reset, whoever closes it.
func abrupt(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
}

func localAddr(conn net.Conn) netip.Addr {
	if tcp, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// session is one client's connection to one proxy.
type session struct {
	net.Conn // to the client; Read is overridden
	lab      *Lab
	proxy    *entry

	in  *io.LimitedReader
	buf *bufio.Reader // over in; nil until something is read
}

// reader reads what the client sends. It is made when needed: thousands of
// silent proxies do without.
func (s *session) reader() *bufio.Reader {
	if s.buf == nil {
		s.in = &io.LimitedReader{R: s.Conn, N: math.MaxInt64}
		s.buf = bufio.NewReader(s.in)
	}
	return s.buf
}

// Read reads what the client sends, as reader does.
func (s *session) Read(p []byte) (int, error) { return s.reader().Read(p) }

// readRequest reads a request's head of at most maxHead bytes; the body, if
// any, is left to the request.
func (s *session) readRequest() (*http.Request, error) {
	r := s.reader()
	s.in.N = maxHead
	req, err := http.ReadRequest(r)
	s.in.N = math.MaxInt64
	return req, err
}

// wait waits, and says false if the client goes or the connection is ended
// meanwhile.
func (s *session) wait(d time.Duration) bool {
	until := time.Now().Add(d)
	s.Conn.SetReadDeadline(until)
	_, err := s.reader().Peek(s.reader().Buffered() + 1)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		return false
	}
	return s.Conn.SetDeadline(until.Add(connLife)) == nil
}

// hold keeps the connection, reading and not answering, until the client goes or
// the connection's time is over.
func (s *session) hold() {
	var scrap [64]byte
	for {
		if _, err := s.Conn.Read(scrap[:]); err != nil {
			return
		}
	}
}

// drain reads what the client says next, as far as it comes at once.
func (s *session) drain() {
	r := s.reader()
	if _, err := r.Peek(1); err == nil {
		r.Discard(r.Buffered())
	}
}

// flood sends next() until the client goes or floodBytes are sent.
func (s *session) flood(next func() []byte) {
	for sent := 0; sent < floodBytes; {
		n, err := s.Write(next())
		if err != nil {
			return
		}
		sent += n
	}
}
