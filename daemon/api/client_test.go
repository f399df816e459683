package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// serve answers on a Unix socket until the test ends.
func serve(t *testing.T, h http.HandlerFunc) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "e.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return path
}

// raw accepts connections and gives each to handle, which owns it.
func raw(t *testing.T, handle func(net.Conn)) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "e.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			handle(conn)
		}
	}()
	return path
}

func TestClientRequests(t *testing.T) {
	var got string
	client := Client{Socket: serve(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("timeout_ms") != "1000" {
			t.Errorf("%s without the default budget", r.URL)
		}
		query.Del("timeout_ms")
		got = strings.TrimSuffix(r.Method+" "+r.URL.EscapedPath()+"?"+query.Encode(), "?")
		fmt.Fprint(w, `{"pools":[{"name":"only"}]}`)
	})}
	defer client.Close()
	ctx := t.Context()
	for want, call := range map[string]func() error{
		"POST /v1/allocate":             func() error { _, err := client.Allocate(ctx, ""); return err },
		"POST /v1/pools/web/allocate":   func() error { _, err := client.Allocate(ctx, "web"); return err },
		"POST /v1/pools/a%2Fb/allocate": func() error { _, err := client.Allocate(ctx, "a/b"); return err },
		"POST /v1/allocate?n=3":         func() error { _, err := client.AllocateMany(ctx, "", 3); return err },
		"GET /v1/status":                func() error { _, err := client.Status(ctx); return err },
		"GET /v1/pools/web":             func() error { _, err := client.Pool(ctx, "web"); return err },
		"GET /v1/pools/only":            func() error { _, err := client.Pool(ctx, ""); return err },
		"GET /v1/pools/only/members":    func() error { _, err := client.Members(ctx, ""); return err },
		"GET /v1/sources":               func() error { _, err := client.Sources(ctx); return err },
		"POST /v1/sources/a%2Fb/fetch":  func() error { _, err := client.FetchSource(ctx, "a/b"); return err },
		"POST /v1/pools/only/probe":     func() error { return client.ProbeNow(ctx, "") },
		"GET /v1/pools/web/proxies?url=http%3A%2F%2Fu%3Ap%40203.0.113.7%3A80": func() error {
			_, err := client.Why(ctx, "web", "http://u:p@203.0.113.7:80")
			return err
		},
	} {
		if err := call(); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// A fetch that takes longer than a request may is waited for by looking again.
func TestClientWaitsForALongFetch(t *testing.T) {
	looks := 0
	client := Client{Socket: serve(t, func(w http.ResponseWriter, r *http.Request) {
		const before = `{"name":"a/b","state":"good","tried_at":"2024-05-06T07:08:09Z"}`
		switch looks++; {
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, before)
		case looks < 4:
			fmt.Fprintf(w, `{"sources":[%s]}`, before)
		default:
			fmt.Fprint(w, `{"sources":[{"name":"other"},{"name":"a/b","state":"stale","tried_at":"2024-05-06T07:08:59Z"}]}`)
		}
	})}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := client.FetchSource(ctx, "a/b")
	if err != nil || got.State != SourceStale || looks != 4 {
		t.Errorf("%+v, %v after %d requests", got, err, looks)
	}
	looks = -1000
	ctx, cancel = context.WithTimeout(t.Context(), 600*time.Millisecond)
	defer cancel()
	got, err = client.FetchSource(ctx, "a/b")
	e := (*Error)(nil)
	if !errors.As(err, &e) || e.Code != CodeBusy || e.Message != "the fetch of a/b is still under way, and goes on" || got.State != SourceGood {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestClientReadsAllocations(t *testing.T) {
	body := ""
	client := Client{Socket: serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, body) })}
	defer client.Close()
	body = `{"proxy":"http://203.0.113.7:8080","count":18,"a_later_field":true}`
	if one, err := client.Allocate(t.Context(), ""); err != nil || one.Proxy == nil || *one.Proxy != "http://203.0.113.7:8080" || one.Count != 18 {
		t.Errorf("%+v, %v", one, err)
	}
	body = `{"proxy":null,"retry_after_ms":30000}`
	if one, err := client.Allocate(t.Context(), ""); err != nil || one.Proxy != nil || one.RetryAfterMS != 30000 {
		t.Errorf("%+v, %v", one, err)
	}
	body = `{"proxies":[{"proxy":"http://203.0.113.7:8080","count":4503599627370496}]}`
	if many, err := client.AllocateMany(t.Context(), "", 1); err != nil || len(many.Proxies) != 1 || many.Proxies[0].Count != 1<<52 {
		t.Errorf("%+v, %v", many, err)
	}
}

func TestClientBudgetFollowsTheContext(t *testing.T) {
	budget := ""
	client := Client{Socket: serve(t, func(w http.ResponseWriter, r *http.Request) {
		budget = r.URL.Query().Get("timeout_ms")
		fmt.Fprint(w, `{}`)
	})}
	defer client.Close()
	for timeout, within := range map[time.Duration][2]int{
		5 * time.Second:        {4000, 4900}, // a tenth of a second is the answer's
		500 * time.Millisecond: {300, 450},
		time.Hour:              {10000, 10000},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		if _, err := client.Allocate(ctx, ""); err != nil {
			t.Error(err)
		}
		var ms int
		if _, err := fmt.Sscan(budget, &ms); err != nil || ms < within[0] || ms > within[1] {
			t.Errorf("%s: timeout_ms=%s", timeout, budget)
		}
		cancel()
	}
}

// A context without a deadline is no wait without an end.
func TestClientAlwaysHasADeadline(t *testing.T) {
	ctx, cancel, budget := withBudget(context.Background())
	defer cancel()
	deadline, ok := ctx.Deadline()
	if left := time.Until(deadline); !ok || budget != DefaultBudget || left > DefaultBudget+grace || left < DefaultBudget {
		t.Errorf("%t, %s, %s", ok, left, budget)
	}
}

// Whether an allocation can have happened is told apart in every way that an
// answer may fail to come.
func TestR1_ClientSaysWhatIsKnown(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	held := make(chan struct{})
	defer close(held)

	answer := func(status int, body string) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	missing := filepath.Join(dir, "none")
	for _, tc := range []struct {
		name, socket string
		code         Code
		status       int
		message      string
		retry        time.Duration
		is           error
	}{
		{name: "no socket", socket: missing, code: CodeUnavailable, retry: time.Second, is: fs.ErrNotExist,
			message: "no daemon: there is no socket " + missing + "; start evenpool, or name its socket with --socket or $EVENPOOL_SOCKET"},
		{name: "nobody listens", socket: stale, code: CodeUnavailable, retry: time.Second, is: syscall.ECONNREFUSED,
			message: "no daemon: nobody listens on " + stale + "; start evenpool"},
		{name: "silence", socket: raw(t, func(conn net.Conn) { <-held; conn.Close() }), code: CodeOutcomeUnknown, is: context.DeadlineExceeded},
		{name: "closed", socket: raw(t, func(conn net.Conn) { conn.Close() }), code: CodeOutcomeUnknown},
		{name: "closed after the request", socket: raw(t, func(conn net.Conn) { conn.Read(make([]byte, 4096)); conn.Close() }), code: CodeOutcomeUnknown},
		{name: "half an answer", socket: raw(t, func(conn net.Conn) {
			conn.Read(make([]byte, 4096))
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"proxy\":")
			conn.Close()
		}), code: CodeOutcomeUnknown},
		{name: "not JSON", socket: answer(200, "<html>"), code: CodeOutcomeUnknown},
		{name: "an error of the daemon", socket: answer(503, `{"error":{"code":"pool_lost","message":"lost","retry_after_ms":2500}}`),
			code: CodePoolLost, status: 503, message: "lost", retry: 2500 * time.Millisecond},
		{name: "a code of a later version", socket: answer(429, `{"error":{"code":"tired","message":"later"}}`),
			code: "tired", status: 429, message: "later"},
		{name: "another's error", socket: answer(500, "\x1b[2Joops"), code: CodeInternal, status: 500,
			message: `HTTP status 500, and no error of evenpool's: "\x1b[2Joops"`},
		{name: "another's 503", socket: answer(503, ""), code: CodeUnavailable, status: 503, retry: time.Second,
			message: `HTTP status 503, and no error of evenpool's: ""`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := Client{Socket: tc.socket}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := client.Allocate(ctx, "web")
			e := (*Error)(nil)
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			if e.Code != tc.code || e.Status != tc.status || e.RetryAfter != tc.retry {
				t.Errorf("%+v", e)
			}
			if tc.message != "" && e.Message != tc.message {
				t.Errorf("%s\nwant %s", e.Message, tc.message)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%v is not %v", err, tc.is)
			}
		})
	}
}

// A read that is not answered has changed nothing.
func TestClientReadWithoutAnswerIsUnavailable(t *testing.T) {
	client := Client{Socket: raw(t, func(conn net.Conn) { conn.Close() })}
	_, err := client.Pool(t.Context(), "web")
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != CodeUnavailable || !e.Code.Retryable() {
		t.Error(err)
	}
}

func TestClientKeepsItsConnection(t *testing.T) {
	var conns atomic.Int32
	path := filepath.Join(t.TempDir(), "e.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				conns.Add(1)
			}
		},
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	defer func() { server.Close(); <-done }()
	client := Client{Socket: path}
	defer client.Close()
	for range 5 {
		if _, err := client.Allocate(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

func TestClientNeedsAPoolsName(t *testing.T) {
	client := Client{Socket: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pools":[{"name":"web"},{"name":"slow"}]}`)
	})}
	defer client.Close()
	_, err := client.Members(t.Context(), "")
	if err == nil || err.Error() != "there are 2 pools, so name one of them: web, slow (bad_request)" {
		t.Error(err)
	}
}

func TestFindSocket(t *testing.T) {
	if _, err := os.Stat(SystemSocket); err == nil {
		t.Skipf("a daemon runs here: %s exists", SystemSocket)
	}
	dir := t.TempDir()
	t.Setenv("EVENPOOL_SOCKET", "")
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if path := FindSocket(); path != SystemSocket {
		t.Errorf("with none: %s", path)
	}
	user := filepath.Join(dir, "evenpool", "evenpool.sock")
	if err := os.MkdirAll(filepath.Dir(user), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(user, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path := FindSocket(); path != user {
		t.Errorf("with a user's daemon: %s", path)
	}
	t.Setenv("EVENPOOL_SOCKET", "/elsewhere")
	if path := FindSocket(); path != "/elsewhere" {
		t.Errorf("with the variable: %s", path)
	}
	t.Setenv("EVENPOOL_SOCKET", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	if path := FindSocket(); path != SystemSocket {
		t.Errorf("without a runtime directory: %s", path)
	}
}

func TestWireForm(t *testing.T) {
	proxy := "http://203.0.113.7:8080"
	count := int64(0)
	at := time.Date(2024, 5, 6, 7, 8, 9, 120e6, time.UTC)
	for want, v := range map[string]any{
		`{"proxy":"http://203.0.113.7:8080","count":18}`: AllocateOne{Proxy: &proxy, Count: 18},
		`{"proxy":null,"retry_after_ms":30000}`:          AllocateOne{RetryAfterMS: 30000},
		`{"proxies":[]}`:                                 AllocateMany{},
		`{"members":[]}`:                                 Members{},
		`{"error":{"code":"busy","message":"later","retry_after_ms":1500}}`:        &Error{Code: CodeBusy, Message: "later", RetryAfter: 1500 * time.Millisecond, Status: 503},
		`{"error":{"code":"not_found","message":"no"}}`:                            &Error{Code: CodeNotFound, Message: "no"},
		`{"proxy":"203.0.113.7:8080","count":1,"since":"2024-05-06T07:08:09.12Z"}`: Member{Proxy: "203.0.113.7:8080", Count: 1, Since: at},
		`{"name":"l","url":"u","state":"","stale":false,"candidates":0,"new":0,"duplicates":0,"rejects":{},"refused":{"never-proxy-port":2},"samples":[]}`: Source{
			Name: "l", URL: "u", Refused: Counts{"never-proxy-port": 2}},
		`{"proxy":"","state":"member","count":0,"schemes":[],"sources":[],"passes":0,"fails":0,"rules":[],"exits":[],"targets":[],"rounds":[],"results":[],"text":""}`: Why{
			State: StateMember, Count: &count},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

func TestCodes(t *testing.T) {
	want := map[Code]int{CodeBadRequest: 400, CodeForbidden: 403, CodeUnknownPool: 404, CodeNotFound: 404, CodeTooMany: 429,
		CodeInternal: 500, CodeOutcomeUnknown: 502, CodeUnavailable: 503, CodePoolLost: 503, CodeBusy: 503}
	for _, code := range Codes() {
		if code.Status() != want[code] {
			t.Errorf("%s: %d", code, code.Status())
		}
		if code.Retryable() != (code.Status() == 429 || code.Status() == 503) {
			t.Errorf("%s: retryable %t", code, code.Retryable())
		}
		delete(want, code)
	}
	if len(want) > 0 {
		t.Errorf("not in the list: %v", want)
	}
}
