package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// frontConn is a connection of the front. Its methods are for one goroutine.
type frontConn struct {
	*limitConn
	f      *front
	buf    []byte    // what was read and not answered
	readBy time.Time // the read deadline that is set
	headBy time.Time // when a head has to be there whose beginning is; zero while there is none
	pool   string    // the last one that was asked for
	out    []byte    // written anew for each answer
}

// serve answers plain requests until the connection ends, or something else is asked: pass.
func (c *frontConn) serve() (pass bool) {
	c.headBy = time.Now().Add(headerTimeout)
	for {
		h, n, state := readHead(c.buf)
		switch {
		case state == headOther:
			_ = c.SetReadDeadline(time.Time{})
			return true
		case state == headPlain:
			last := !c.answer(h)
			c.buf = c.buf[:copy(c.buf, c.buf[n:])]
			c.headBy = time.Time{}
			if last {
				return false
			}
		default:
			switch err := c.read(); {
			case errors.Is(err, io.EOF) && len(c.buf) > 0:
				return true // net/http says what is wrong with half a request
			case err != nil:
				return false
			}
		}
	}
}

// read adds to buf what comes next.
func (c *frontConn) read() error {
	for {
		if err := c.setReadDeadline(); err != nil {
			return err
		}
		if len(c.buf) == cap(c.buf) {
			c.buf = append(c.buf, 0)[:len(c.buf)] // grows
		}
		n, err := c.Read(c.buf[len(c.buf):cap(c.buf)])
		if n > 0 {
			c.buf = c.buf[:len(c.buf)+n]
			return nil
		}
		// A daemon that stops interrupts all; who has begun to ask may end it.
		if !errors.Is(err, os.ErrDeadlineExceeded) || !c.f.stopping.Load() || len(c.buf) == 0 || !time.Now().Before(c.headBy) {
			return err
		}
		c.readBy = time.Time{}
	}
}

// setReadDeadline says until when to wait for the next bytes, if at all. An idle connection ends up to a
// second late: to set it anew for each request is a good part of what one costs.
func (c *frontConn) setReadDeadline() error {
	if len(c.buf) > 0 && c.headBy.IsZero() {
		c.headBy = time.Now().Add(headerTimeout)
	}
	by := c.headBy
	if by.IsZero() {
		now := time.Now()
		if by = c.readBy; by.Before(now.Add(idleTimeout)) {
			by = now.Add(idleTimeout + time.Second)
		}
	}
	if by != c.readBy {
		c.readBy = by
		if err := c.SetReadDeadline(by); err != nil {
			return err
		}
	}
	// After it was set: front.stop sets the one and then the other.
	if len(c.buf) == 0 && c.f.stopping.Load() {
		return net.ErrClosed
	}
	return nil
}

// answer answers a request; false: it was the last one of the connection.
func (c *frontConn) answer(h head) bool {
	if string(h.pool) != c.pool {
		c.pool = string(h.pool)
	}
	a := c.answerOf(h)
	last := c.f.stopping.Load()
	c.out = c.f.append(c.out[:0], a, last)
	_, err := c.Write(c.out)
	return err == nil && !last
}

func (c *frontConn) answerOf(h head) (a answer) {
	rt := c.f.rt
	q := func() asked { return asked{method: http.MethodPost, path: string(h.path), pool: c.pool} }
	defer func() {
		if p := recover(); p != nil {
			a = rt.panicked(q(), p)
		}
	}()
	ctx, cancel := context.WithTimeout(c.f.requests, h.budget-answerTime(h.budget))
	defer cancel()
	pool, err := rt.poolOf(call{pool: c.pool})
	if err != nil {
		return rt.failed(ctx, q(), err)
	}
	rep, err := rt.allocateSome(ctx, pool, h.n, h.many, h.text)
	if err != nil {
		return rt.failed(ctx, q(), err)
	}
	return rt.answer(ctx, q(), rep)
}

// dateText is the Date header of a second.
type dateText struct {
	second int64
	text   string
}

// append writes an answer as routes.send has net/http write it.
func (f *front) append(b []byte, a answer, last bool) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(a.status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(a.status)...)
	b = append(b, "\r\nCache-Control: no-store\r\n"...)
	if a.kind != "" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(a.body)), 10)
		b = append(b, "\r\nContent-Type: "...)
		b = append(b, a.kind...)
		b = append(b, "\r\n"...)
	}
	if a.retryAfter > 0 {
		b = append(b, "Retry-After: "...)
		b = strconv.AppendInt(b, a.retryAfter, 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "Date: "...)
	b = append(b, f.now()...)
	if last {
		b = append(b, "\r\nConnection: close"...)
	}
	b = append(b, "\r\n\r\n"...)
	return append(b, a.body...)
}

func (f *front) now() string {
	now := time.Now()
	d := f.date.Load()
	if d == nil || d.second != now.Unix() {
		d = &dateText{now.Unix(), now.UTC().Format(http.TimeFormat)}
		f.date.Store(d)
	}
	return d.text
}
