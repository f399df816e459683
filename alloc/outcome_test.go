package alloc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// replyOnce answers the first script with an error line and carries out those after it.
func replyOnce(line string) func(*peerConn, int64) {
	return func(c *peerConn, n int64) {
		if n == 1 {
			c.say("-" + line + "\r\n")
			return
		}
		c.run()
	}
}

func replyAlways(line string) func(*peerConn, int64) {
	return func(c *peerConn, _ int64) { c.say("-" + line + "\r\n") }
}

func run(c *peerConn, _ int64) { c.run() }

// block waits until the connection ends.
func block(c *peerConn) {
	for {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return
		}
	}
}

func refuse(first int64) func(int64) error {
	return func(n int64) error {
		if n <= first {
			return syscall.ECONNREFUSED
		}
		return nil
	}
}

const always = 1 << 40

// TestR1_OnceOrUnknown: an allocation happens once or is reported as unknown; only what provably did
// not run is sent again. go-redis by default ran it twice after a lost reply and reported success.
func TestR1_OnceOrUnknown(t *testing.T) {
	budget := time.Second
	tests := []struct {
		name  string
		peer  peer
		err   error         // nil: it succeeds
		runs  int64         // how often it was carried out
		sends int64         // how often it was sent; -1: as often as the budget allows
		took  time.Duration // at least; for those that fail, at most the budget
	}{
		{name: "nothing wrong", peer: peer{answer: run}, runs: 1, sends: 1},

		{name: "dial refused once", peer: peer{dial: refuse(1), answer: run}, runs: 1, sends: 1},
		{name: "dial refused always", peer: peer{dial: refuse(always), answer: run}, err: ErrUnavailable},
		{name: "max clients once", peer: peer{answer: run, greet: fullOnce(1)}, runs: 1, sends: 1},
		{name: "max clients always", peer: peer{answer: run, greet: fullOnce(always)}, err: ErrUnavailable},
		{name: "EOF while greeting", peer: peer{answer: run, greet: func(c *peerConn, _ string) { c.Close() }}, err: ErrUnavailable},
		{name: "silent while greeting", peer: peer{answer: run, greet: func(c *peerConn, _ string) { block(c) }}, err: ErrUnavailable, took: budget},
		{name: "wrong password", peer: peer{answer: run, greet: func(c *peerConn, _ string) { c.say("-NOAUTH Authentication required.\r\n") }}, err: ErrUnavailable},

		{name: "LOADING once", peer: peer{answer: replyOnce("LOADING Redis is loading the dataset in memory")}, runs: 1, sends: 2},
		{name: "LOADING always", peer: peer{answer: replyAlways("LOADING Redis is loading the dataset in memory")}, err: ErrUnavailable, sends: -1, took: budget},
		{name: "READONLY", peer: peer{answer: replyOnce("READONLY You can't write against a read only replica.")}, runs: 1, sends: 2},
		{name: "READONLY within a script, Redis 7", peer: peer{answer: replyOnce("READONLY You can't write against a read only replica. script: 01ab, on @user_script:9.")}, runs: 1, sends: 2},
		{name: "READONLY within a script, Redis 6", peer: peer{answer: replyOnce("ERR Error running script (call to f_01ab): @user_script:9: @user_script: 9: -READONLY You can't write against a read only replica.")}, runs: 1, sends: 2},
		{name: "MASTERDOWN", peer: peer{answer: replyOnce("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")}, runs: 1, sends: 2},
		{name: "CLUSTERDOWN", peer: peer{answer: replyOnce("CLUSTERDOWN The cluster is down")}, runs: 1, sends: 2},
		{name: "TRYAGAIN", peer: peer{answer: replyOnce("TRYAGAIN Multiple keys request during rehashing of slot")}, runs: 1, sends: 2},
		{name: "BUSY", peer: peer{answer: replyOnce("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")}, runs: 1, sends: 2},
		{name: "MOVED", peer: peer{answer: replyOnce("MOVED 3999 192.0.2.2:6379")}, runs: 1, sends: 2},
		{name: "ASK", peer: peer{answer: replyOnce("ASK 3999 192.0.2.2:6379")}, runs: 1, sends: 2},
		{name: "NOSCRIPT by hash", peer: peer{answer: replyOnce("NOSCRIPT No matching script. Please use EVAL.")}, runs: 1, sends: 2},
		{name: "NOSCRIPT always", peer: peer{answer: replyAlways("NOSCRIPT No matching script. Please use EVAL.")}, err: ErrUnavailable, sends: -1, took: budget},

		{name: "OOM", peer: peer{answer: replyAlways("OOM command not allowed when used memory > 'maxmemory'. script: 01ab, on @user_script:9.")}, err: ErrUnavailable, sends: 1},
		{name: "MISCONF", peer: peer{answer: replyAlways("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.")}, err: ErrUnavailable, sends: 1},
		{name: "NOREPLICAS", peer: peer{answer: replyAlways("NOREPLICAS Not enough good replicas to write.")}, err: ErrUnavailable, sends: 1},

		{name: "refused by the script: lost", peer: peer{answer: replyAlways("POOLLOST the pool has neither members nor meta")}, err: ErrPoolLost, sends: 1},
		{name: "refused by the script: type", peer: peer{answer: replyAlways("WRONGTYPE Operation against a key holding the wrong kind of value script: 01ab, on @user_script:3.")}, err: ErrWrongType, sends: 1},
		{name: "refused by the script: type, Redis 6", peer: peer{answer: replyAlways("ERR Error running script (call to f_01ab): @user_script:3: WRONGTYPE Operation against a key holding the wrong kind of value")}, err: ErrWrongType, sends: 1},
		{name: "refused by the script: schema", peer: peer{answer: replyAlways("SCHEMA the pool has schema version 2, not 1")}, err: ErrSchema, sends: 1},

		{name: "EOF after it ran", peer: peer{answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); c.Close() }}, err: ErrOutcomeUnknown, runs: 1, sends: 1},
		{name: "EOF before it ran", peer: peer{answer: func(c *peerConn, _ int64) { c.Close() }}, err: ErrOutcomeUnknown, sends: 1},
		{name: "reset after it ran", peer: peer{
			answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); c.Close() },
			wrap:   func(c net.Conn) net.Conn { return onRead{c, &net.OpError{Op: "read", Err: syscall.ECONNRESET}} },
		}, err: ErrOutcomeUnknown, runs: 1, sends: 1},
		{name: "half a reply, then EOF", peer: peer{answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); c.say("*2\r\n$10\r\nhttp"); c.Close() }}, err: ErrOutcomeUnknown, runs: 1, sends: 1},
		{name: "half a reply, then silence", peer: peer{answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); c.say("*2\r\n$10\r\nhttp"); block(c) }}, err: ErrOutcomeUnknown, runs: 1, sends: 1, took: budget},
		{name: "garbage for a reply", peer: peer{answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); c.say("HTTP/1.1 400 Bad Request\r\n\r\n") }}, err: ErrOutcomeUnknown, runs: 1, sends: 1},
		{name: "timeout after it ran", peer: peer{answer: func(c *peerConn, _ int64) { c.peer.runs.Add(1); block(c) }}, err: ErrOutcomeUnknown, runs: 1, sends: 1, took: budget},
	}
	for i := range tests {
		test := &tests[i]
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := test.peer.store(t, 0)
				ctx, cancel := context.WithTimeout(t.Context(), budget)
				defer cancel()
				began := time.Now()
				got, err := store.Pool("web").Allocate(ctx, 1)
				took := time.Since(began)

				if !errors.Is(err, test.err) {
					t.Errorf("error %v, want %v", err, test.err)
				}
				for _, other := range []error{ErrUnavailable, ErrOutcomeUnknown, ErrPoolLost, ErrWrongType, ErrSchema} {
					if errors.Is(err, other) && other != test.err {
						t.Errorf("error %v is also %v", err, other)
					}
				}
				if want := "[{http://a:1 7}]"; test.err == nil && fmt.Sprint(got) != want {
					t.Errorf("allocated %v, want %s", got, want)
				}
				if runs := test.peer.runs.Load(); runs != test.runs {
					t.Errorf("carried out %d times, want %d", runs, test.runs)
				}
				if sends := test.peer.sends.Load(); sends != test.sends && test.sends >= 0 {
					t.Errorf("sent %d times, want %d", sends, test.sends)
				}
				// R2: within the budget; and what cannot succeed does not use it up.
				if took > budget || took < test.took || (test.took == 0 && took > budget/5) {
					t.Errorf("took %v, want at least %v and at most %v", took, test.took, budget)
				}
			})
		})
	}
}

// fullOnce greets the first connections as a server does that has too many, and hangs up. go-redis
// takes the error for an old server's and goes on to send the script.
func fullOnce(first int64) func(*peerConn, string) {
	return func(c *peerConn, command string) {
		if c.peer.dials.Load() > first {
			greet(c, command)
			return
		}
		c.say("-ERR max number of clients reached\r\n")
		c.Close()
	}
}

// TestR1_Cancelled: cancelled before the script is written, it did not run; after that, the reply is
// awaited until the deadline, since going away early would only make the outcome unknown.
func TestR1_Cancelled(t *testing.T) {
	t.Run("before it is sent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer{answer: run}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := p.store(t, 0).Pool("web").Allocate(ctx, 1)
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.Canceled) || p.sends.Load() != 0 {
				t.Errorf("error %v after %d sends, want unavailable, cancelled, and none", err, p.sends.Load())
			}
		})
	})
	for _, replies := range []bool{true, false} {
		t.Run(fmt.Sprintf("after it is sent, and it replies: %v", replies), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				p := peer{answer: func(c *peerConn, _ int64) {
					cancel()
					if !replies {
						c.peer.runs.Add(1)
						block(c)
					}
					time.Sleep(100 * time.Millisecond)
					c.run()
				}}
				got, err := p.store(t, 0).Pool("web").Allocate(ctx, 1)
				if p.runs.Load() != 1 {
					t.Errorf("carried out %d times, want once", p.runs.Load())
				}
				if replies && (err != nil || len(got) != 1) {
					t.Errorf("got %v, %v, want the allocation", got, err)
				}
				if !replies && !errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("error %v, want unknown", err)
				}
			})
		})
	}
}

// TestR2_DeadlineHolds: a call is answered within its budget when Redis reads half a script and no
// more, and when all connections are taken.
func TestR2_DeadlineHolds(t *testing.T) {
	t.Run("stalls in the middle of the script", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer{answer: run, wrap: func(c net.Conn) net.Conn { return &stalling{Conn: c, after: 120} }}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := p.store(t, 0).Pool("web").Allocate(ctx, 1)
			if took := time.Since(began); !errors.Is(err, ErrOutcomeUnknown) || took != time.Second {
				t.Errorf("%v after %v, want unknown after 1s", err, took)
			}
		})
	})
	t.Run("all connections taken", func(t *testing.T) {
		// Not in a bubble: go-redis keeps the timers of those that wait for a
		// connection, and a bubble must not meet another's.
		asked := make(chan struct{}, 2)
		p := peer{answer: func(c *peerConn, _ int64) { asked <- struct{}{}; block(c) }}
		store := p.store(t, 2)
		pool := store.Pool("web")
		const waiting = 1000
		taken, failed := make(chan error, 2), make(chan error, waiting)
		ask := func(pool *Pool, budget time.Duration, failed chan<- error) {
			ctx, cancel := context.WithTimeout(context.Background(), budget)
			defer cancel()
			_, err := pool.Allocate(ctx, 1)
			failed <- err
		}
		for i := range cap(taken) {
			go ask(store.Pool(fmt.Sprintf("other%d", i)), 4*time.Second, taken)
		}
		for range cap(taken) {
			<-asked
		}
		began := time.Now()
		for range waiting {
			go ask(pool, time.Second, failed)
		}
		for range waiting {
			if err := <-failed; !errors.Is(err, ErrUnavailable) {
				t.Errorf("waited for a connection: %v, want unavailable", err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("those that waited were answered after %v, want 1s", took)
		}
		for range cap(taken) {
			if err := <-taken; !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("sent, and no reply: %v, want unknown", err)
			}
		}
		// R10: no more connections than allowed.
		if dials := p.dials.Load(); dials != 2 {
			t.Errorf("%d connections, want 2", dials)
		}
	})
	t.Run("no deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := peer{answer: func(c *peerConn, _ int64) { block(c) }}
			began := time.Now()
			_, err := p.store(t, 0).Pool("web").Allocate(context.Background(), 1)
			if took := time.Since(began); !errors.Is(err, ErrOutcomeUnknown) || took != maxBudget {
				t.Errorf("%v after %v, want unknown after %v", err, took, maxBudget)
			}
		})
	})
}

// TestR10_FewConnections: scripts and pipelines together open no more connections than allowed. go-redis
// gives pipelines a pool of their own by default.
func TestR10_FewConnections(t *testing.T) {
	// Not in a bubble: see TestR2_DeadlineHolds.
	p := peer{
		answer: func(c *peerConn, _ int64) { time.Sleep(time.Millisecond); c.run() },
		greet: func(c *peerConn, command string) {
			switch command {
			case "ZCARD", "HLEN", "ZCOUNT":
				time.Sleep(time.Millisecond)
				c.say(":1\r\n")
			default:
				greet(c, command)
			}
		},
	}
	pool := p.store(t, 0).Pool("web")
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = pool.Allocate(t.Context(), 1)
			} else {
				_, _, _, err = pool.Size(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if dials := p.dials.Load(); dials > defaultPoolSize {
		t.Errorf("%d connections, want %d at most", dials, defaultPoolSize)
	}
}

// stalling lets some bytes through and then neither writes nor fails until its deadline.
type stalling struct {
	net.Conn
	after int
}

func (c *stalling) Write(b []byte) (int, error) {
	if len(b) <= c.after {
		c.after -= len(b)
		return c.Conn.Write(b)
	}
	c.Conn.Write(b[:c.after])
	// The peer waits for the rest of this command, and reads no other.
	return c.Conn.Read(make([]byte, 1))
}

// TestR9_BackAfterAway: while Redis refuses connections calls fail at once; soon after its return they
// work, on the same store.
func TestR9_BackAfterAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		p := peer{answer: run, dial: func(int64) error {
			if away.Load() {
				return syscall.ECONNREFUSED
			}
			return nil
		}}
		pool := p.store(t, 0).Pool("web")
		away.Store(true)
		for range 100 {
			began := time.Now()
			_, err := pool.Allocate(t.Context(), 1)
			if took := time.Since(began); !errors.Is(err, ErrUnavailable) || took > 200*time.Millisecond {
				t.Fatalf("%v after %v, want unavailable at once", err, took)
			}
		}
		away.Store(false)
		began := time.Now()
		for {
			if _, err := pool.Allocate(t.Context(), 1); err == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("works again after %v, want 5s at most", took)
		}
	})
}

// TestR1_FatesWithoutAPeer: errors that a peer cannot bring about.
func TestR1_FatesWithoutAPeer(t *testing.T) {
	tests := []struct {
		err  error
		sent bool
		want fate
	}{
		{nil, true, fateNone},
		{redis.ErrPoolTimeout, false, fateBusy},
		{redis.ErrPoolExhausted, false, fateBusy},
		{redis.ErrPoolTimeout, true, fateUnknown},
		{redis.ErrClosed, false, fateNotRun},
		{redis.ErrClosed, true, fateUnknown},
		{errors.New("never heard of"), true, fateUnknown},
		{errors.New("never heard of"), false, fateAway},
		{context.DeadlineExceeded, false, fateNotRun},
		{context.Canceled, true, fateUnknown},
	}
	for _, test := range tests {
		if got := fateOf(test.err, test.sent); got != test.want {
			t.Errorf("fate of %v, sent %v: %s, want %s", test.err, test.sent, got, test.want)
		}
	}
}

// TestReadsAreNeverUnknown: a command that changes nothing can be asked again.
func TestReadsAreNeverUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := peer{answer: run, greet: func(c *peerConn, command string) {
			if command == "ZRANGE" {
				c.Close()
				return
			}
			greet(c, command)
		}}
		_, err := p.store(t, 0).Pool("web").Members(t.Context())
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("error %v, want unavailable", err)
		}
	})
}
