package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"evenpool/daemon/api"
)

// What clients of the socket may cost.
const (
	// defaultMaxConns is how many connections are served at a time; those beyond
	// are answered that the daemon is busy.
	defaultMaxConns = 4096
	// spareConns is how many of those beyond are answered in the order of HTTP,
	// that is after their request has been read. Who comes after them gets the
	// same answer at once and unread, since reading takes a place as well.
	spareConns = 128

	writeTimeout = 2 * time.Second // of each write, not of a whole answer
	writeSize    = 64 << 10        // of what counts as one write
)

// limitListener bounds the connections that are open at one time.
type limitListener struct {
	net.Listener
	log        *slog.Logger
	max, spare int64

	open atomic.Int64
	full atomic.Bool // for one log line per change
}

// Accept gives the next connection that is to be served or refused in order.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		// Limits per user have their place here: the peer is known by SO_PEERCRED.
		n := l.open.Add(1)
		if n > l.max && l.full.CompareAndSwap(false, true) {
			l.log.Warn("socket has too many connections, answering busy", "limit", l.max)
		}
		if n > l.max+l.spare {
			refuse(conn)
			l.release()
			continue
		}
		return &limitConn{Conn: conn, refused: n > l.max, release: sync.OnceFunc(l.release)}, nil
	}
}

// release gives a place back.
func (l *limitListener) release() {
	n := l.open.Add(-1)
	// With some distance, so that a pool of clients at the limit is one line.
	if n <= l.max*9/10 && l.full.CompareAndSwap(true, false) {
		l.log.Info("socket has room for connections again", "open", n)
	}
}

// refuse answers a connection without reading from it. The answer fits into the
// empty buffer of a new socket, so nobody waits.
func refuse(conn net.Conn) {
	defer conn.Close()
	body, err := encode(tooManyConns())
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"+
		"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func tooManyConns() *api.Error {
	return &api.Error{Code: api.CodeBusy, Message: "too many connections to this daemon", RetryAfter: busyRetry}
}

// limitConn is a connection whose writes end.
type limitConn struct {
	net.Conn
	refused bool // beyond the limit: every request on it is answered busy
	release func()
}

// Write gives each piece its own time: a client that reads slowly gets a long
// answer, one that does not read is dropped.
func (c *limitConn) Write(p []byte) (n int, err error) {
	for {
		piece := p[n:min(n+writeSize, len(p))]
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// CloseWrite lets net/http end a connection so that the last answer arrives.
func (c *limitConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close ends the connection and gives its place back.
func (c *limitConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// connKey finds the connection in the context of its requests.
type connKey struct{}

// withConn is http.Server's ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if passed, ok := conn.(*passedConn); ok {
		conn = passed.limitConn
	}
	return context.WithValue(ctx, connKey{}, conn)
}

// overLimit says whether a request came over a connection beyond the limit.
func overLimit(ctx context.Context) bool {
	conn, ok := ctx.Value(connKey{}).(*limitConn)
	return ok && conn.refused
}
