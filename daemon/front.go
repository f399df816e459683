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
	*limitListener
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
func newFront(requests context.Context, ln *limitListener, rt *routes) *front {
	f := &front{limitListener: ln, rt: rt, requests: requests, conns: map[*frontConn]struct{}{},
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
		conn, err := f.limitListener.Accept()
		if err != nil {
			select {
			case f.errs <- err:
				continue
			case <-f.closed:
				return
			}
		}
		f.serving.Go(func() { f.serve(conn.(*limitConn)) })
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

// stop ends the connections, at once where nothing is asked and otherwise behind the answer, and waits for
// that until ctx ends. The listener is for net/http to close, which takes one that ends before for broken.
func (f *front) stop(ctx context.Context) {
	f.stopping.Store(true)
	f.each(func(c *frontConn) { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	ended := make(chan struct{})
	go func() { f.serving.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// cut ends what is left when the listener is closed and the requests' context has ended, and waits for it.
func (f *front) cut() {
	f.stopping.Store(true)
	f.each(func(c *frontConn) { _ = c.Close() })
	f.serving.Wait()
}

func (f *front) each(do func(*frontConn)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		do(c)
	}
}

// serve serves a connection to its end, or until net/http takes it.
func (f *front) serve(conn *limitConn) {
	c := &frontConn{limitConn: conn, f: f, buf: make([]byte, 0, 512)}
	f.mu.Lock()
	f.conns[c] = struct{}{}
	f.mu.Unlock()
	pass := c.refused || c.serve()
	f.mu.Lock()
	delete(f.conns, c)
	f.mu.Unlock()
	if pass {
		select {
		case f.passed <- &passedConn{limitConn: conn, rest: c.buf, headBy: c.headBy}:
			return
		case <-f.closed:
		}
	}
	_ = conn.Close()
}

// passedConn is a connection for net/http, from which some was read already.
type passedConn struct {
	*limitConn
	rest   []byte
	headBy time.Time // when the head of its first request has to be there; zero: it is net/http's to say
}

func (c *passedConn) Read(p []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.limitConn.Read(p)
}

// SetReadDeadline does not give a client more time for its first head than it had.
func (c *passedConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && t.After(c.headBy) && !c.headBy.IsZero() {
		t = c.headBy
	}
	c.headBy = time.Time{}
	return c.limitConn.SetReadDeadline(t)
}
