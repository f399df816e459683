package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerTimeout = 2 * time.Second  // from the first byte, or the connection, to the end of the headers
	idleTimeout   = 60 * time.Second // between two requests of a connection
	stopTimeout   = 5 * time.Second  // for answers in flight when the daemon stops
)

// serveSocket answers on the listener, at most maxConns connections at a time,
// until ctx ends. Then it closes the listener, gives answers in flight 5 seconds,
// cuts what is left, and returns nil when no handler runs any more. An error
// means that the listener broke.
func serveSocket(ctx context.Context, ln net.Listener, maxConns int, handler http.Handler, log *slog.Logger) error {
	// Requests outlive ctx: they are answered while the daemon stops.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var running gate
	server := &http.Server{
		Handler:           running.guard(handler),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		// net/http adds 4,096 bytes to what is said here, and 0 means 1 MiB: this
		// bounds the headers at 4 KiB.
		MaxHeaderBytes: 1,
		// No ReadTimeout: it would also end the context of a request that is being
		// answered. Bodies have their own (limitBody), writes too (limitConn).
		BaseContext: func(net.Listener) context.Context { return context.WithValue(requests, serving{}, requests) },
		ConnContext: withConn,
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	limited := &limitListener{Listener: ln, log: log, max: int64(maxConns), spare: spareConns}
	ln = limited
	stopFront, cutFront := func(context.Context) {}, func() {}
	if rt, ok := handler.(*routes); ok {
		f := newFront(requests, limited, rt)
		ln, stopFront, cutFront = f, f.stop, f.cut
	}
	go func() { served <- server.Serve(ln) }()

	var broken error
	select {
	case <-ctx.Done():
		stop, done := context.WithTimeout(requests, stopTimeout)
		defer done()
		fronts := make(chan struct{})
		go func() { defer close(fronts); stopFront(stop) }()
		err := server.Shutdown(stop)
		<-fronts
		if stop.Err() != nil || err != nil {
			log.Warn("socket stopped with requests unanswered", "after", stopTimeout)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			broken = err
		}
	case broken = <-served:
	}
	cancel()
	_ = server.Close()
	cutFront()
	running.close()
	if broken != nil {
		return fmt.Errorf("socket: %w", broken)
	}
	return nil
}

// gate knows when the last handler has returned; net/http does not tell.
type gate struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// guard lets requests through until the gate is closed.
func (g *gate) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			panic(http.ErrAbortHandler)
		}
		defer g.running.Done()
		next.ServeHTTP(w, r)
	})
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.running.Add(1)
	}
	return !g.closed
}

// close lets no more requests in and waits for the handlers that run.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
