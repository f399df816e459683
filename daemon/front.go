package daemon

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// front is a listener that answers plain requests for allocations itself, and gives what is anything else
// to net/http, which accepts from it. Plain requests are what workers send all day, and net/http takes
// several times the work that one needs. Answers are the same, byte for byte.
type front struct {
	net.Listener
	rt       *routes
	requests context.Context // of all requests; it ends when a stopping daemon waits no longer
	passed   chan net.Conn
	errs     chan error // of the listener
	closed   chan struct{}
	close    func() error

	stopping atomic.Bool
	date     atomic.Pointer[dateText]

	mu      sync.Mutex
	conns   map[*frontConn]struct{}
	serving sync.WaitGroup
}

// newFront begins to accept from ln. Close ends that, and stop the rest.
func newFront(requests context.Context, ln net.Listener, rt *routes) *front {
	f := &front{Listener: ln, rt: rt, requests: requests, conns: map[*frontConn]struct{}{},
		passed: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
	f.close = sync.OnceValue(func() error {
		close(f.closed)
		return ln.Close()
	})
	f.serving.Go(f.acceptAll)
	return f
}

// acceptAll accepts until the listener is closed. What to do about an error is for net/http to say.
func (f *front) acceptAll() {
	for {
		conn, err := f.Listener.Accept()
		if err != nil {
			select {
			case f.errs <- err:
				continue
			case <-f.closed:
				return
			}
		}
		f.serving.Go(func() { f.serve(conn) })
	}
}

// Accept gives net/http the next connection that is its own.
func (f *front) Accept() (net.Conn, error) {
	select {
	case conn := <-f.passed:
		return conn, nil
	case err := <-f.errs:
		return nil, err
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener. Connections go on.
func (f *front) Close() error { return f.close() }

// stop ends the connections: at once where nothing is asked, and otherwise behind the answer. When ctx
// ends, all are cut, and nothing runs any more when it returns. The listener is closed by its owner: net/http
// takes one that ends before a shutdown for broken.
func (f *front) stop(ctx context.Context) {
	f.stopping.Store(true)
	f.each(func(c *frontConn) { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	ended := make(chan struct{})
	go func() { f.serving.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		f.each(func(c *frontConn) { c.cut() })
		<-ended
	}
}

func (f *front) each(do func(*frontConn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		do(c)
	}
}

// serve serves a connection to its end, or until net/http takes it.
func (f *front) serve(conn net.Conn) {
	c := &frontConn{Conn: conn, f: f, buf: make([]byte, 0, 512)}
	c.ctx, c.cancel = context.WithCancel(f.requests)
	defer c.cancel()
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	limited, ok := conn.(*limitConn)
	pass := ok && limited.refused || c.serve()
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	if pass {
		select {
		case f.passed <- &passedConn{Conn: conn, rest: c.buf, headBy: c.headBy}:
			return
		case <-f.closed:
		}
	}
	_ = conn.Close()
}

// passedConn is a connection for net/http, from which some was read already.
type passedConn struct {
	net.Conn
	rest   []byte
	headBy time.Time // when the head of its first request has to be there; zero: it is net/http's to say
}

func (c *passedConn) Read(p []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// SetReadDeadline does not give a client more time for its first head than it had.
func (c *passedConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.After(c.headBy) && !c.headBy.IsZero() {
		t = c.headBy
	}
	c.headBy = time.Time{}
	return c.Conn.SetReadDeadline(t)
}

// CloseWrite is for net/http, which looks for it.
func (c *passedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
