package daemon

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// fakeBackend has the pools and members that a test gives it.
type fakeBackend struct {
	names      []string           // default: web
	members_   []alloc.Allocation // what allocate gives, repeated
	retry      time.Duration
	err        error // what every method returns
	inAllocate func(context.Context) error
	asked      proxyurl.Endpoint // by why
	inFetch    func(context.Context) error
}

func (f *fakeBackend) poolNames() []string {
	if f.names == nil {
		return []string{"web"}
	}
	return f.names
}

func (f *fakeBackend) known(pool string) error {
	for _, name := range f.poolNames() {
		if name == pool {
			return f.err
		}
	}
	return errUnknownPool
}

func (f *fakeBackend) allocate(ctx context.Context, pool string, n int) ([]alloc.Allocation, error) {
	if f.inAllocate != nil {
		if err := f.inAllocate(ctx); err != nil {
			return nil, err
		}
	}
	if err := f.known(pool); err != nil || len(f.members_) == 0 {
		return nil, err
	}
	var list []alloc.Allocation
	for i := range n {
		list = append(list, f.members_[i%len(f.members_)])
	}
	return list, nil
}

// halfWay is a store that goes away between the first and the second script of a large request.
type halfWay struct{ fakeBackend }

func (h *halfWay) allocate(ctx context.Context, pool string, n int) ([]alloc.Allocation, error) {
	list, _ := h.fakeBackend.allocate(ctx, pool, n/2)
	return list, alloc.ErrUnavailable
}

// Half of a request that was carried out used to be answered as if nothing had been.
func TestR1_HalfOfARequestIsNoUnavailableStore(t *testing.T) {
	w := ask(t, &halfWay{fakeBackend{members_: []alloc.Allocation{{Member: "http://a:1", Count: 1}}}}, "POST", "/v1/allocate?n=1000")
	want := `{"error":{"code":"outcome_unknown","message":"outcome unknown: 500 of 1000 were allocated, then: store unavailable"}}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 502 || got != want {
		t.Errorf("%d %s, want 502 %s", w.Code, got, want)
	}
}

func (f *fakeBackend) emptyRetry(string) time.Duration { return f.retry }

func (f *fakeBackend) status(context.Context) (api.Status, error) {
	return api.Status{Version: "test", Pools: []api.Pool{{Name: "web"}}}, f.err
}

func (f *fakeBackend) pool(_ context.Context, pool string) (api.Pool, error) {
	return api.Pool{Name: pool}, f.known(pool)
}

func (f *fakeBackend) members(_ context.Context, pool string) ([]api.Member, error) {
	return nil, f.known(pool)
}

func (f *fakeBackend) report(_ context.Context, pool string, _ proxyurl.URL, outcome, _ string) (api.Reported, error) {
	return api.Reported{Member: true, ProbeDue: outcome != api.ReportOK}, f.known(pool)
}

func (f *fakeBackend) why(_ context.Context, pool string, proxy proxyurl.Endpoint) (api.Why, error) {
	f.asked = proxy
	return api.Why{Proxy: proxy.Redacted(), State: api.StateUnknown}, f.known(pool)
}

func (f *fakeBackend) probeNow(_ context.Context, pool string) error { return f.known(pool) }

func (f *fakeBackend) sourceStates(context.Context) ([]api.Source, error) {
	return []api.Source{{Name: "lists", URL: "https://example.org/?a&b", State: api.SourceGood, Candidates: 7}, {Name: "own", State: api.SourceNew}}, f.err
}

func (f *fakeBackend) fetchNow(ctx context.Context, name string) error {
	if name != "lists" {
		return errUnknownSource
	}
	if f.inFetch != nil {
		return f.inFetch(ctx)
	}
	return f.err
}

// testLog writes the log where a failing test shows it.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

// ask has one request answered without a socket.
func ask(t *testing.T, b backend, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	newRoutes(b, testLog(t)).ServeHTTP(w, r)
	return w
}

// listsJSON is what fakeBackend says of its first source.
const listsJSON = `{"name":"lists","url":"https://example.org/?a&b","state":"good","stale":false,"candidates":7,"new":0,"duplicates":0,"rejects":{},"refused":{},"samples":[]}`

func TestRoutesAnswer(t *testing.T) {
	two := []alloc.Allocation{{Member: "http://203.0.113.7:8080", Count: 18}, {Member: "socks5://u:p@203.0.113.9:1080", Count: 19}}
	for _, tc := range []struct {
		name, method, target, accept string
		backend                      fakeBackend
		status                       int // default 200
		body                         string
	}{
		{name: "one", method: "POST", target: "/v1/pools/web/allocate", backend: fakeBackend{members_: two},
			body: `{"proxy":"http://203.0.113.7:8080","count":18}`},
		{name: "the only pool needs no name", method: "POST", target: "/v1/allocate", backend: fakeBackend{members_: two},
			body: `{"proxy":"http://203.0.113.7:8080","count":18}`},
		{name: "with a budget", method: "POST", target: "/v1/allocate?timeout_ms=10000", backend: fakeBackend{members_: two},
			body: `{"proxy":"http://203.0.113.7:8080","count":18}`},
		{name: "three of two", method: "POST", target: "/v1/pools/web/allocate?n=3", backend: fakeBackend{members_: two},
			body: `{"proxies":[{"proxy":"http://203.0.113.7:8080","count":18},{"proxy":"socks5://u:p@203.0.113.9:1080","count":19},{"proxy":"http://203.0.113.7:8080","count":18}]}`},
		{name: "a list of one", method: "POST", target: "/v1/pools/web/allocate?n=1", backend: fakeBackend{members_: two},
			body: `{"proxies":[{"proxy":"http://203.0.113.7:8080","count":18}]}`},
		{name: "as text", method: "POST", target: "/v1/pools/web/allocate", accept: "text/plain", backend: fakeBackend{members_: two},
			body: "http://203.0.113.7:8080"},
		{name: "two as text", method: "POST", target: "/v1/pools/web/allocate?n=2", accept: "text/plain", backend: fakeBackend{members_: two},
			body: "http://203.0.113.7:8080\nsocks5://u:p@203.0.113.9:1080"},
		{name: "a member that somebody else wrote, as text", method: "POST", target: "/v1/pools/web/allocate", accept: "text/plain",
			backend: fakeBackend{members_: []alloc.Allocation{{Member: "http://a\nhttp://b\x1b[2J"}}}, body: `http://a\x0ahttp://b\x1b[2J`},
		{name: "empty", method: "POST", target: "/v1/pools/web/allocate", backend: fakeBackend{retry: 30 * time.Second},
			body: `{"proxy":null,"retry_after_ms":30000}`},
		{name: "an empty list", method: "POST", target: "/v1/pools/web/allocate?n=2", backend: fakeBackend{retry: 30 * time.Second},
			body: `{"proxies":[],"retry_after_ms":30000}`},
		{name: "empty as text", method: "POST", target: "/v1/pools/web/allocate?n=2", accept: "text/plain", status: 204},
		{name: "status", method: "GET", target: "/v1/status",
			body: `{"version":"test","uptime_ms":0,"store":{"kind":"","reachable":false},"pools":[{"name":"web","members":0,"candidates":0,"due":0,"counts":null,"last_cycle":null,"guard":{"state":""},"judges":[],"sources":[]}]}`},
		{name: "pool", method: "GET", target: "/v1/pools/web",
			body: `{"name":"web","members":0,"candidates":0,"due":0,"counts":null,"last_cycle":null,"guard":{"state":""},"judges":[],"sources":[]}`},
		{name: "members", method: "GET", target: "/v1/pools/web/members", body: `{"members":[]}`},
		{name: "why by URL", method: "GET", target: "/v1/pools/web/proxies?url=http://u:p@203.0.113.7:8080/",
			body: `{"proxy":"u:***@203.0.113.7:8080","state":"unknown","schemes":[],"sources":[],"passes":0,"fails":0,"rules":[],"exits":[],"targets":[],"rounds":[],"results":[],"text":""}`},
		{name: "why by endpoint", method: "GET", target: "/v1/pools/web/proxies?url=203.0.113.7:8080",
			body: `{"proxy":"203.0.113.7:8080","state":"unknown","schemes":[],"sources":[],"passes":0,"fails":0,"rules":[],"exits":[],"targets":[],"rounds":[],"results":[],"text":""}`},
		{name: "a report", method: "POST", target: "/v1/pools/web/reports?proxy=http://u:p@203.0.113.7:8080&outcome=blocked&target=www.example.org",
			body: `{"member":true,"probe_due":true}`},
		{name: "probe now", method: "POST", target: "/v1/pools/web/probe", status: 202, body: `{"pool":"web"}`},
		{name: "sources", method: "GET", target: "/v1/sources", body: `{"sources":[` + listsJSON + `,` + strings.NewReplacer(`lists`, `own`, `https://example.org/?a&b`, ``, `good`, `new`, `7`, `0`).Replace(listsJSON) + `]}`},
		{name: "fetch now", method: "POST", target: "/v1/sources/lists/fetch", body: listsJSON},
		{name: "fetch now, and it takes longer than the budget", method: "POST", target: "/v1/sources/lists/fetch?timeout_ms=20", status: 202, body: listsJSON,
			backend: fakeBackend{inFetch: func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ask(t, &tc.backend, tc.method, tc.target, "Accept", tc.accept)
			want, kind := tc.body+"\n", "application/json"
			switch {
			case tc.status == 204:
				want, kind = "", ""
			case tc.accept == "text/plain":
				kind = "text/plain; charset=utf-8"
			}
			if w.Code != cmp.Or(tc.status, 200) || w.Body.String() != want || w.Header().Get("Content-Type") != kind {
				t.Errorf("%d %q\n%s\nwant %d %q\n%s", w.Code, w.Header().Get("Content-Type"), w.Body, cmp.Or(tc.status, 200), kind, want)
			}
		})
	}
}

func TestRoutesError(t *testing.T) {
	const post, get = "POST", "GET"
	rows := map[api.Code]int{}
	for _, tc := range []struct {
		name, method, target string
		backend              fakeBackend
		status               int
		code                 api.Code
		message              string
		retryMS              int64
	}{
		{name: "n is 0", method: post, target: "/v1/allocate?n=0", status: 400, code: api.CodeBadRequest, message: "n=0: expected a whole number from 1 to 1000"},
		{name: "n is negative", method: post, target: "/v1/allocate?n=-1", status: 400, code: api.CodeBadRequest, message: "n=-1: expected a whole number from 1 to 1000"},
		{name: "n is huge", method: post, target: "/v1/allocate?n=1000000000", status: 400, code: api.CodeBadRequest, message: "n=1000000000: expected a whole number from 1 to 1000"},
		{name: "n is a text", method: post, target: "/v1/allocate?n=ten", status: 400, code: api.CodeBadRequest, message: "n=ten: expected a whole number from 1 to 1000"},
		{name: "n is empty", method: post, target: "/v1/allocate?n=", status: 400, code: api.CodeBadRequest, message: "n=: expected a whole number from 1 to 1000"},
		{name: "n is hostile", method: post, target: "/v1/allocate?n=%1b[2J%e2%80%ae", status: 400, code: api.CodeBadRequest, message: `n=\x1b[2J\u202e: expected a whole number from 1 to 1000`},
		{name: "n twice", method: post, target: "/v1/allocate?n=1&n=2", status: 400, code: api.CodeBadRequest, message: "n is given 2 times"},
		{name: "budget of 0", method: post, target: "/v1/allocate?timeout_ms=0", status: 400, code: api.CodeBadRequest, message: "timeout_ms=0: expected a whole number from 1 to 10000"},
		{name: "budget too long", method: post, target: "/v1/allocate?timeout_ms=10001", status: 400, code: api.CodeBadRequest, message: "timeout_ms=10001: expected a whole number from 1 to 10000"},
		{name: "unknown parameter", method: post, target: "/v1/allocate?count=2", status: 400, code: api.CodeBadRequest, message: `unknown parameter "count"; this path takes n, timeout_ms`},
		{name: "unknown parameter of a GET", method: get, target: "/v1/status?n=2", status: 400, code: api.CodeBadRequest, message: `unknown parameter "n"; this path takes timeout_ms`},
		{name: "unreadable query", method: post, target: "/v1/allocate?n=%zz", status: 400, code: api.CodeBadRequest, message: `query "n=%zz" is not readable`},
		{name: "several pools and no name", method: post, target: "/v1/allocate", backend: fakeBackend{names: []string{"web", "slow"}},
			status: 400, code: api.CodeBadRequest, message: "there are 2 pools, so name one of them: POST /v1/pools/{pool}/allocate with web, slow"},
		{name: "why without a proxy", method: get, target: "/v1/pools/web/proxies", status: 400, code: api.CodeBadRequest, message: "which proxy? add ?url=SCHEME://HOST:PORT or ?url=HOST:PORT, percent-encoded"},
		{name: "why of no proxy", method: get, target: "/v1/pools/web/proxies?url=http://u:p@a", status: 400, code: api.CodeBadRequest,
			message: `url: unparseable: "u:***@a"; expected SCHEME://[USER:PASSWORD@]HOST:PORT or the same without SCHEME://, percent-encoded as a whole`},
		{name: "a report of nothing", method: post, target: "/v1/pools/web/reports", status: 400, code: api.CodeBadRequest,
			message: "of which proxy? add ?proxy=URL&outcome=OUTCOME, percent-encoded"},
		{name: "a report of no proxy", method: post, target: "/v1/pools/web/reports?proxy=203.0.113.7:8080&outcome=ok", status: 400, code: api.CodeBadRequest,
			message: `proxy: unparseable: "203.0.113.7:8080"; expected the URL as it was allocated, percent-encoded as a whole`},
		{name: "a report of no outcome", method: post, target: "/v1/pools/web/reports?proxy=http://203.0.113.7:8080&outcome=dead", status: 400, code: api.CodeBadRequest,
			message: "outcome=dead: expected one of ok, failed, blocked"},
		{name: "a report of ok with a target", method: post, target: "/v1/pools/web/reports?proxy=http://203.0.113.7:8080&outcome=ok&target=a", status: 400, code: api.CodeBadRequest,
			message: "target is for outcome=blocked, by which target the proxy is blocked; leave it out"},
		{name: "a report with a hostile target", method: post, target: "/v1/pools/web/reports?proxy=http://203.0.113.7:8080&outcome=blocked&target=%1b[2J", status: 400, code: api.CodeBadRequest,
			message: `target: "\x1b[2J" is no target; write a host's name or a word, 1 to 64 of letters, digits, '.', '_' and '-'`},
		{name: "a report for an unknown pool", method: post, target: "/v1/pools/nope/reports?proxy=http://203.0.113.7:8080&outcome=ok", status: 404, code: api.CodeUnknownPool,
			message: "no pool nope; configured: web"},
		{name: "allocate with GET", method: get, target: "/v1/pools/web/allocate", status: 405, code: api.CodeBadRequest, message: "GET is not for this path; use POST"},
		{name: "status with POST", method: post, target: "/v1/status", status: 405, code: api.CodeBadRequest, message: "POST is not for this path; use GET, HEAD"},
		{name: "no such path", method: get, target: "/v2/status", status: 404, code: api.CodeNotFound, message: "no such path: /v2/status; all begin with /v1/"},
		{name: "a path that is not clean", method: post, target: "/v1//allocate", status: 404, code: api.CodeNotFound, message: "no such path: /v1//allocate; all begin with /v1/"},
		{name: "unknown pool", method: post, target: "/v1/pools/nope/allocate", status: 404, code: api.CodeUnknownPool, message: "no pool nope; configured: web"},
		{name: "unknown pool, hostile", method: get, target: "/v1/pools/%1b%5B2J/members", status: 404, code: api.CodeUnknownPool, message: `no pool \x1b[2J; configured: web`},
		{name: "store away", method: post, target: "/v1/allocate", backend: fakeBackend{err: fmt.Errorf("allocate: %w", alloc.ErrUnavailable)},
			status: 503, code: api.CodeUnavailable, message: "allocate: store unavailable", retryMS: 1000},
		{name: "pool lost", method: post, target: "/v1/allocate", backend: fakeBackend{err: fmt.Errorf("allocate: %w", alloc.ErrPoolLost)},
			status: 503, code: api.CodePoolLost, message: "allocate: pool lost", retryMS: 5000},
		{name: "reply lost", method: post, target: "/v1/allocate", backend: fakeBackend{err: fmt.Errorf("allocate: %w", alloc.ErrOutcomeUnknown)},
			status: 502, code: api.CodeOutcomeUnknown, message: "allocate: outcome unknown"},
		{name: "budget spent while allocating", method: post, target: "/v1/allocate", backend: fakeBackend{err: context.DeadlineExceeded},
			status: 502, code: api.CodeOutcomeUnknown, message: "context deadline exceeded"},
		{name: "budget spent while reading", method: get, target: "/v1/pools/web", backend: fakeBackend{err: context.DeadlineExceeded},
			status: 503, code: api.CodeUnavailable, message: "context deadline exceeded", retryMS: 1000},
		{name: "reply to a read lost", method: get, target: "/v1/pools/web/members", backend: fakeBackend{err: alloc.ErrOutcomeUnknown},
			status: 503, code: api.CodeUnavailable, message: "outcome unknown", retryMS: 1000},
		{name: "a cycle runs already", method: post, target: "/v1/pools/web/probe", backend: fakeBackend{err: fmt.Errorf("%w: a cycle of web is running", errBusy)},
			status: 503, code: api.CodeBusy, message: "busy: a cycle of web is running", retryMS: 1000},
		{name: "a fetch is under way", method: post, target: "/v1/sources/lists/fetch", backend: fakeBackend{err: fmt.Errorf("%w: a fetch of lists is under way", errBusy)},
			status: 503, code: api.CodeBusy, message: "busy: a fetch of lists is under way", retryMS: 1000},
		{name: "unknown source", method: post, target: "/v1/sources/list/fetch", status: 404, code: api.CodeNotFound, message: "no source list; configured: lists, own"},
		{name: "fetch with GET", method: get, target: "/v1/sources/lists/fetch", status: 405, code: api.CodeBadRequest, message: "GET is not for this path; use POST"},
		{name: "forbidden", method: post, target: "/v1/pools/web/probe", backend: fakeBackend{err: &api.Error{Code: api.CodeForbidden, Message: "not you"}},
			status: 403, code: api.CodeForbidden, message: "not you"},
		{name: "too many", method: post, target: "/v1/allocate", backend: fakeBackend{err: &api.Error{Code: api.CodeTooMany, Message: "slow down", RetryAfter: 1500 * time.Millisecond}},
			status: 429, code: api.CodeTooMany, message: "slow down", retryMS: 1500},
		{name: "a bug", method: post, target: "/v1/allocate", backend: fakeBackend{err: io.ErrUnexpectedEOF},
			status: 500, code: api.CodeInternal, message: "internal error; the daemon's log says more"},
		{name: "a panic", method: post, target: "/v1/allocate", backend: fakeBackend{inAllocate: func(context.Context) error { panic("no map") }},
			status: 500, code: api.CodeInternal, message: "internal error; the daemon's log says more"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := ask(t, &tc.backend, tc.method, tc.target, "Accept", "text/plain")
			var e api.Error
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
				t.Fatalf("%d %s: %v", w.Code, w.Body, err)
			}
			rows[e.Code]++
			if w.Code != tc.status || e.Code != tc.code || e.RetryAfter.Milliseconds() != tc.retryMS {
				t.Errorf("%d %s %s, want %d %s %d ms", w.Code, e.Code, e.RetryAfter, tc.status, tc.code, tc.retryMS)
			}
			if tc.message != "" && e.Message != tc.message {
				t.Errorf("message %q\nwant    %q", e.Message, tc.message)
			}
			if retry := w.Header().Get("Retry-After"); (retry != "") != (tc.retryMS > 0) {
				t.Errorf("Retry-After %q for %d ms", retry, tc.retryMS)
			}
			if tc.status == 405 && !strings.HasSuffix(e.Message, "use "+w.Header().Get("Allow")) {
				t.Errorf("Allow: %s", w.Header().Get("Allow"))
			}
		})
	}
	for _, code := range api.Codes() {
		if rows[code] == 0 {
			t.Errorf("no row for %s", code)
		}
	}
}

func TestRoutesGetNeverAllocates(t *testing.T) {
	b := &fakeBackend{
		inAllocate: func(context.Context) error { t.Error("a GET allocated"); return nil },
		inFetch:    func(context.Context) error { t.Error("a GET fetched"); return nil },
	}
	for _, r := range (&routes{backend: b}).list() {
		for _, method := range []string{"GET", "HEAD", "OPTIONS"} {
			ask(t, b, method, strings.NewReplacer("{pool}", "web", "{source}", "lists").Replace(r.path))
		}
	}
}

func TestWantsText(t *testing.T) {
	for accept, want := range map[string]bool{
		"":                                    false,
		"*/*":                                 false,
		"text/plain":                          true,
		"TEXT/plain; charset=utf-8":           true,
		"text/plain, */*":                     true,
		"text/plain;q=0.5, application/json":  false,
		"application/json;q=0.5, text/plain":  true,
		"text/plain, application/json":        false,
		"text/plain;q=0":                      false,
		"text/plain;q=much":                   false,
		"text/html, application/xhtml+xml, *": false,
	} {
		if got := wantsText(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept: %s: %t", accept, got)
		}
	}
}

// A worker with a budget of a second hears within it, whatever the store does.
func TestR2_AnswerComesWithinTheBudget(t *testing.T) {
	for target, budget := range map[string]time.Duration{
		"/v1/allocate":                  time.Second,
		"/v1/allocate?timeout_ms=50":    50 * time.Millisecond,
		"/v1/allocate?timeout_ms=10000": 10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			begin := time.Now()
			w := ask(t, &fakeBackend{inAllocate: silent}, "POST", target)
			if took := time.Since(begin); w.Code != 502 || took >= budget || took < budget*9/10 {
				t.Errorf("%s: %d after %s", target, w.Code, took)
			}
		})
	}
}

func TestBodyOfARequest(t *testing.T) {
	path := serveForTest(t, &fakeBackend{}, defaultMaxConns)
	for _, tc := range []struct {
		name, body string
		status     int
		message    string
	}{
		{"none", "", 200, ""},
		{"an empty object", " {}\n", 200, ""},
		{"parameters", "n=10", 400, "this path takes no body; its parameters go into the query, as in ?n=10"},
		{"at the bound", strings.Repeat(" ", maxBody), 200, ""},
		{"too large", strings.Repeat(" ", maxBody+1), 413, "the body is over 4096 bytes; this path takes none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn := dialForTest(t, path)
			fmt.Fprintf(conn, "POST /v1/allocate HTTP/1.1\r\nHost: evenpool\r\nContent-Length: %d\r\n\r\n%s", len(tc.body), tc.body)
			status, body := readAnswer(t, bufio.NewReader(conn))
			if status != tc.status || !strings.Contains(body, tc.message) {
				t.Errorf("%d %s; want %d %s", status, body, tc.status, tc.message)
			}
		})
	}
}

// dialForTest opens a connection that the test ends.
func dialForTest(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// readAnswer reads one HTTP answer.
func readAnswer(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
