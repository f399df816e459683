package alloc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// peer is a Redis of a few lines: it greets as one does and answers scripts as the test says. It
// counts what was sent and what was carried out.
type peer struct {
	dials atomic.Int64 // connections asked for
	sends atomic.Int64 // scripts received
	runs  atomic.Int64 // scripts carried out

	dial   func(n int64) error               // nil: every connection is accepted
	greet  func(c *peerConn, command string) // nil: as Redis does
	answer func(c *peerConn, n int64)        // the n-th script, from 1
	wrap   func(net.Conn) net.Conn           // nil: the client's end as it is

	serving sync.WaitGroup
}

// peerConn is one connection of a peer.
type peerConn struct {
	net.Conn
	peer    *peer
	command []string // the one that is to be answered
}

func (c *peerConn) say(text string) { io.WriteString(c.Conn, text) }

// run carries the script out and answers with one allocation.
func (c *peerConn) run() {
	c.peer.runs.Add(1)
	c.say("*2\r\n$10\r\nhttp://a:1\r\n$1\r\n7\r\n")
}

// store gives a store whose server is the peer.
func (p *peer) store(t *testing.T, poolSize int) *Store {
	t.Helper()
	s := &Store{scripts: newScripts(), now: time.Now}
	client, err := newClient(Options{URL: "redis://192.0.2.1:6379", PoolSize: poolSize}, p.connect)
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	t.Cleanup(func() {
		s.Close()
		p.serving.Wait()
	})
	return s
}

func (p *peer) connect(context.Context, string, string) (net.Conn, error) {
	n := p.dials.Add(1)
	if p.dial != nil {
		if err := p.dial(n); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
	ours, theirs := net.Pipe()
	p.serving.Go(func() {
		defer ours.Close()
		p.serve(&peerConn{Conn: ours, peer: p})
	})
	if p.wrap != nil {
		return p.wrap(theirs), nil
	}
	return theirs, nil
}

// serve answers until the connection ends.
func (p *peer) serve(c *peerConn) {
	in := bufio.NewReader(c)
	for {
		command, err := readPeerCommand(in)
		if err != nil {
			return
		}
		c.command = command
		switch word := strings.ToUpper(command[0]); word {
		case "EVAL", "EVALSHA":
			p.answer(c, p.sends.Add(1))
		default:
			if p.greet != nil {
				p.greet(c, word)
				continue
			}
			greet(c, word)
		}
	}
}

func greet(c *peerConn, command string) {
	if command == "HELLO" {
		c.say("*2\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
		return
	}
	c.say("+PONG\r\n")
}

func readPeerCommand(in *bufio.Reader) ([]string, error) {
	length := func(mark string) (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), mark))
	}
	n, err := length("*")
	if err != nil {
		return nil, err
	}
	words := make([]string, n)
	for i := range words {
		size, err := length("$")
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	if n == 0 {
		return nil, fmt.Errorf("empty command")
	}
	return words, nil
}

// onRead is a connection whose reads give an error once it is broken.
type onRead struct {
	net.Conn
	err error
}

func (c onRead) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == io.EOF {
		err = c.err
	}
	return n, err
}
