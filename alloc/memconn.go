package alloc

import (
	"net"
	"sync"
)

// memConn is the client's end of a connection in memory, with a buffer for what it writes. net.Pipe,
// which is below it, has none: a client that writes a long pipeline before it reads, and a server
// that answers the first command before it reads on, would wait for each other.
type memConn struct {
	net.Conn
	mu    sync.Mutex
	more  sync.Cond // queue has grown, or err is set
	queue []byte
	err   error         // why nothing more can be written
	ended chan struct{} // closed when pump has returned
}

func newMemConn(pipe net.Conn) *memConn {
	c := &memConn{Conn: pipe, ended: make(chan struct{})}
	c.more.L = &c.mu
	go c.pump()
	return c
}

// Write takes all of p and never blocks.
func (c *memConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	c.queue = append(c.queue, p...)
	c.more.Signal()
	return len(p), nil
}

// pump hands on what was written, until the connection is closed.
func (c *memConn) pump() {
	defer close(c.ended)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && c.err == nil {
			c.more.Wait()
		}
		some, err := c.queue, c.err
		c.queue = nil
		c.mu.Unlock()
		if err == nil {
			_, err = c.Conn.Write(some)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *memConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.more.Signal()
}

// Close ends the connection, whatever is not handed on yet is dropped.
func (c *memConn) Close() error {
	c.fail(net.ErrClosed)
	err := c.Conn.Close()
	<-c.ended
	return err
}
