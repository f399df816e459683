package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
)

// serveForTest serves a backend on a socket until the test ends.
func serveForTest(t *testing.T, b backend, maxConns int) (path string) {
	t.Helper()
	return serveHandlerForTest(t, newRoutes(b, testLog(t)), maxConns)
}

func serveHandlerForTest(t *testing.T, h http.Handler, maxConns int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "e.sock")
	ln, err := listen(path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveSocket(ctx, ln, maxConns, h, testLog(t)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return path
}

// pipeListener gives connections in memory, for tests in a bubble of time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// inBubble runs a test in a bubble of time. It makes its handler in there,
// serves it over pipes with start, and may stop the server before the end; stop
// waits for it.
func inBubble(t *testing.T, test func(t *testing.T, start func(http.Handler) (l *pipeListener, stop func()))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, func(h http.Handler) (*pipeListener, func()) {
			l := newPipeListener()
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- serveSocket(ctx, l, defaultMaxConns, h, testLog(t)) }()
			stop := sync.OnceFunc(func() {
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			t.Cleanup(stop)
			return l, stop
		})
	})
}

func TestU4_SlowClientsEnd(t *testing.T) {
	const request = "GET /v1/status HTTP/1.1\r\nHost: evenpool\r\n"
	// drip writes a byte each 100 ms until the connection is gone.
	drip := func(conn net.Conn) {
		for {
			if _, err := conn.Write([]byte("a")); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // in the bubble
		}
	}
	for _, tc := range []struct {
		name   string
		client func(conn net.Conn)
		after  time.Duration
	}{
		{"silent from the start", func(net.Conn) {}, headerTimeout},
		{"half of the headers", func(conn net.Conn) { io.WriteString(conn, request) }, headerTimeout},
		{"headers in drops", func(conn net.Conn) { io.WriteString(conn, request+"X: "); drip(conn) }, headerTimeout},
		{"silent after an answer", func(conn net.Conn) { io.WriteString(conn, request+"\r\n") }, idleTimeout},
		{"body in drops", func(conn net.Conn) {
			io.WriteString(conn, "POST /v1/allocate HTTP/1.1\r\nHost: e\r\nContent-Length: 4000\r\n\r\n")
			drip(conn)
		}, bodyTimeout},
		{"body in drops to a path that is not there", func(conn net.Conn) {
			io.WriteString(conn, "POST /v1/nothing HTTP/1.1\r\nHost: e\r\nContent-Length: 4000\r\n\r\n")
			drip(conn)
		}, bodyTimeout},
		{"body in drops with the wrong method", func(conn net.Conn) {
			io.WriteString(conn, "PUT /v1/status HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n")
			drip(conn)
		}, bodyTimeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
				l, _ := start(newRoutes(&fakeBackend{}, testLog(t)))
				conn := l.dial()
				begin := time.Now()
				ended := make(chan struct{})
				go func() { tc.client(conn); close(ended) }()
				_, _ = io.Copy(io.Discard, conn)
				// net/http lets its last answer arrive, which takes up to half a second.
				if took := time.Since(begin); took < tc.after || took > tc.after+600*time.Millisecond {
					t.Errorf("ended after %s, want %s", took, tc.after)
				}
				conn.Close()
				<-ended
			})
		})
	}
}

func TestU4_ClientThatDoesNotReadEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		ended := make(chan time.Time, 1)
		l, _ := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := w.Write(make([]byte, 10*writeSize)); err == nil {
				t.Error("all was written")
			}
			ended <- time.Now()
		}))
		conn := l.dial()
		defer conn.Close()
		begin := time.Now()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: e\r\n\r\n")
		if took := (<-ended).Sub(begin); took != writeTimeout {
			t.Errorf("ended after %s", took)
		}
	})
}

func TestU4_SlowReaderGetsALongAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		l, _ := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 10*writeSize)) }))
		conn := l.dial()
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: e\r\n\r\n")
		buf := make([]byte, writeSize)
		for total := 0; total < 10*writeSize; {
			time.Sleep(writeTimeout * 3 / 4) // in the bubble; each write has its own time
			n, err := io.ReadFull(conn, buf)
			if total += n; err != nil && total < 10*writeSize {
				t.Fatalf("after %d bytes: %v", total, err)
			}
		}
	})
}

func TestU4_HeadersAreBounded(t *testing.T) {
	path := serveForTest(t, &fakeBackend{}, defaultMaxConns)
	for size, want := range map[int]int{4000: 200, 4200: 431, 100_000: 431} {
		conn := dialForTest(t, path)
		head := "GET /v1/status HTTP/1.1\r\nHost: e\r\nX: "
		go fmt.Fprintf(conn, "%s%s\r\n\r\n", head, strings.Repeat("x", size-len(head)-4))
		if status, _ := readAnswer(t, bufio.NewReader(conn)); status != want {
			t.Errorf("%d bytes of headers: %d, want %d", size, status, want)
		}
	}
}

func TestU4_ConnectionsBeyondTheLimitAreToldSo(t *testing.T) {
	const limit = 3
	path := serveForTest(t, &fakeBackend{}, limit)
	var conns []net.Conn
	open := func() *bufio.Reader {
		conns = append(conns, dialForTest(t, path))
		return bufio.NewReader(conns[len(conns)-1])
	}
	status := func(r *bufio.Reader) int {
		fmt.Fprint(conns[len(conns)-1], "GET /v1/status HTTP/1.1\r\nHost: e\r\n\r\n")
		code, body := readAnswer(t, r)
		if code == 503 && !strings.Contains(body, `{"error":{"code":"busy","message":"too many connections to this daemon","retry_after_ms":1000}}`) {
			t.Error(body)
		}
		return code
	}
	for i := range limit {
		if code := status(open()); code != 200 {
			t.Fatalf("connection %d: %d", i, code)
		}
	}
	r := open()
	if code := status(r); code != 503 {
		t.Fatalf("beyond the limit: %d", code)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("the connection goes on: %v", err)
	}
	// Who finds the places beyond the limit taken too is not asked what he wants.
	for range spareConns {
		open()
	}
	if code, _ := readAnswer(t, open()); code != 503 {
		t.Errorf("far beyond the limit: %d", code)
	}
	// And when they have gone, there is room again.
	for _, conn := range conns {
		conn.Close()
	}
	client := api.Client{Socket: path}
	defer client.Close()
	for {
		_, err := client.Status(t.Context())
		if err == nil {
			break
		}
		if e := (*api.Error)(nil); !errors.As(err, &e) || !e.Code.Retryable() {
			t.Fatal(err)
		}
	}
}

func TestU7_AnswersInFlightArriveAtStop(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		entered := make(chan struct{})
		b := &fakeBackend{
			members_: []alloc.Allocation{{Member: "http://203.0.113.7:8080", Count: 1}},
			inAllocate: func(context.Context) error {
				close(entered)
				time.Sleep(900 * time.Millisecond) // in the bubble
				return nil
			},
		}
		l, stop := start(newRoutes(b, testLog(t)))
		idle, conn := l.dial(), l.dial()
		defer idle.Close()
		defer conn.Close()
		io.WriteString(idle, "GET /v1/status HTTP/1.1\r\nHost: e\r\n\r\n")
		idleReader := bufio.NewReader(idle)
		readAnswer(t, idleReader)
		io.WriteString(conn, "POST /v1/allocate HTTP/1.1\r\nHost: e\r\n\r\n")
		<-entered
		begin := time.Now()
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		if _, err := idleReader.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("idle connection: %v", err)
		}
		status, body := readAnswer(t, bufio.NewReader(conn))
		if status != 200 || !strings.Contains(body, "203.0.113.7") {
			t.Errorf("%d %s", status, body)
		}
		<-stopped
		if took := time.Since(begin); took > 1500*time.Millisecond {
			t.Errorf("stopped after %s", took)
		}
	})
}

func TestU7_StuckAnswersAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		entered := make(chan struct{})
		var cause error
		l, stop := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(entered)
			<-r.Context().Done()
			time.Sleep(100 * time.Millisecond) // in the bubble; the handler is waited for
			cause = r.Context().Err()
		}))
		conn := l.dial()
		defer conn.Close()
		io.WriteString(conn, "GET / HTTP/1.1\r\nHost: e\r\n\r\n")
		<-entered
		begin := time.Now()
		stop()
		if took := time.Since(begin); took != stopTimeout+100*time.Millisecond || cause == nil {
			t.Errorf("stopped after %s, the handler's context: %v", took, cause)
		}
	})
}

// A listener that breaks ends the daemon, it does not leave it deaf.
func TestServeSocketReportsABrokenListener(t *testing.T) {
	l := newPipeListener()
	l.Close()
	err := serveSocket(t.Context(), l, 1, http.NotFoundHandler(), testLog(t))
	if err == nil || !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

func TestClientAgainstTheRoutes(t *testing.T) {
	b := &fakeBackend{names: []string{"web"}, members_: []alloc.Allocation{{Member: "http://203.0.113.7:8080", Count: 7}}}
	client := api.Client{Socket: serveForTest(t, b, defaultMaxConns)}
	defer client.Close()
	ctx := t.Context()
	one, err := client.Allocate(ctx, "")
	if err != nil || one.Proxy == nil || *one.Proxy != "http://203.0.113.7:8080" || one.Count != 7 {
		t.Errorf("%+v, %v", one, err)
	}
	many, err := client.AllocateMany(ctx, "web", 2)
	if err != nil || len(many.Proxies) != 2 {
		t.Errorf("%+v, %v", many, err)
	}
	if status, err := client.Status(ctx); err != nil || status.Version != "test" {
		t.Errorf("%+v, %v", status, err)
	}
	if pool, err := client.Pool(ctx, ""); err != nil || pool.Name != "web" {
		t.Errorf("%+v, %v", pool, err)
	}
	if _, err := client.Members(ctx, ""); err != nil {
		t.Error(err)
	}
	if why, err := client.Why(ctx, "", "http://u:p%40@203.0.113.7:8080"); err != nil || why.Proxy != "u:***@203.0.113.7:8080" || b.asked.Password() != "p@" {
		t.Errorf("%+v, %v", why, err)
	}
	if err := client.ProbeNow(ctx, ""); err != nil {
		t.Error(err)
	}
	_, err = client.Allocate(ctx, "nope")
	if e := (*api.Error)(nil); !errors.As(err, &e) || e.Code != api.CodeUnknownPool || e.Status != 404 {
		t.Error(err)
	}
}
