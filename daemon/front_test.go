package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
)

// onlyNetHTTP hides that a handler is the routes, so that there is no front.
func onlyNetHTTP(h http.Handler) http.Handler { return http.HandlerFunc(h.ServeHTTP) }

var dates = regexp.MustCompile(`Date: [^\r]*`)

// exchange sends bytes, closes its half, and gives all that comes back.
func exchange(t *testing.T, h http.Handler, sent string) string {
	t.Helper()
	conn := dialForTest(t, serveHandlerForTest(t, h, 10))
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.UnixConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return dates.ReplaceAllString(string(got), "Date: then")
}

// Whatever is sent, the front and net/http answer the same bytes.
func TestFrontAnswersAsNetHTTP(t *testing.T) {
	post := func(target string, headers ...string) string {
		return "POST " + target + " HTTP/1.1\r\nHost: e\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
	}
	full := fakeBackend{members_: []alloc.Allocation{{Member: "http://203.0.113.7:8080", Count: 18}, {Member: "http://203.0.113.8:8080", Count: 19}}}
	empty := fakeBackend{retry: 30 * time.Second}
	failing := func(err error) fakeBackend { return fakeBackend{err: err} }
	panics := fakeBackend{inAllocate: func(context.Context) error { panic("on purpose") }}
	slow := fakeBackend{inAllocate: func(ctx context.Context) error { <-ctx.Done(); return alloc.ErrUnavailable }}
	one := post("/v1/allocate")
	for name, tc := range map[string]struct {
		backend fakeBackend
		sent    string
	}{
		"one":                      {full, one},
		"by name":                  {full, post("/v1/pools/web/allocate")},
		"three":                    {full, post("/v1/pools/web/allocate?n=3&timeout_ms=500")},
		"text":                     {full, post("/v1/allocate?n=2", "Accept: text/plain")},
		"text by weight":           {full, post("/v1/allocate", "Accept: application/json;q=0.1, text/plain;q=0.9")},
		"as curl asks":             {full, post("/v1/allocate", "User-Agent: curl/7.88.1", "Accept: */*")},
		"pipelined":                {full, one + post("/v1/allocate?n=2") + "GET /v1/status HTTP/1.1\r\nHost: e\r\n\r\n" + one},
		"an empty pool":            {empty, one},
		"an empty pool, many":      {empty, post("/v1/allocate?n=2")},
		"an empty pool, text":      {empty, post("/v1/allocate", "Accept: text/plain") + one},
		"unknown pool":             {full, post("/v1/pools/nope/allocate")},
		"two pools":                {fakeBackend{names: []string{"a", "b"}}, one},
		"unavailable":              {failing(alloc.ErrUnavailable), one + one},
		"lost":                     {failing(alloc.ErrPoolLost), one},
		"busy":                     {failing(alloc.ErrBusy), one},
		"unknown outcome":          {failing(alloc.ErrOutcomeUnknown), one},
		"our own mistake":          {failing(io.ErrShortBuffer), one},
		"a panic":                  {panics, one + one},
		"the budget is over":       {slow, post("/v1/allocate?timeout_ms=20")},
		"n of 0":                   {full, post("/v1/allocate?n=0")},
		"n of 10^9":                {full, post("/v1/allocate?n=1000000000")},
		"n of 1001":                {full, post("/v1/allocate?n=1001")},
		"n of -1":                  {full, post("/v1/allocate?n=-1")},
		"n of text":                {full, post("/v1/allocate?n=x")},
		"n twice":                  {full, post("/v1/allocate?n=1&n=2")},
		"n without a value":        {full, post("/v1/allocate?n")},
		"a semicolon":              {full, post("/v1/allocate?n=1;timeout_ms=3")},
		"unknown parameter":        {full, post("/v1/allocate?count=2")},
		"percent":                  {full, post("/v1/pools/%77eb/allocate")},
		"dots":                     {full, post("/v1/pools/../allocate")},
		"a slash behind":           {full, post("/v1/allocate/")},
		"get":                      {full, strings.Replace(one, "POST", "GET", 1)},
		"HTTP/1.0":                 {full, strings.Replace(one, "HTTP/1.1", "HTTP/1.0", 1)},
		"close":                    {full, post("/v1/allocate", "Connection: close") + one},
		"a body":                   {full, post("/v1/allocate", "Content-Length: 2") + "{}" + one},
		"a wrong body":             {full, post("/v1/allocate", "Content-Length: 3") + "n=3"},
		"chunked":                  {full, post("/v1/allocate", "Transfer-Encoding: chunked") + "0\r\n\r\n" + one},
		"length and chunked":       {full, post("/v1/allocate", "Content-Length: 0", "Transfer-Encoding: chunked") + "0\r\n\r\n"},
		"expect":                   {full, post("/v1/allocate", "Expect: 100-continue", "Content-Length: 2") + "{}"},
		"no host":                  {full, "POST /v1/allocate HTTP/1.1\r\n\r\n"},
		"two hosts":                {full, post("/v1/allocate", "Host: f")},
		"folded header":            {full, post("/v1/allocate", "Accept: */*", " x")},
		"blank before the colon":   {full, post("/v1/allocate", "Accept : */*")},
		"bare newlines":            {full, "POST /v1/allocate HTTP/1.1\nHost: e\n\n"},
		"an empty line in front":   {full, "\r\n" + one},
		"half a request":           {full, "POST /v1/allocate HTTP/1.1\r\nHo"},
		"a whole and half":         {full, one + "POST /v1/all"},
		"large header":             {full, post("/v1/allocate", "User-Agent: "+strings.Repeat("x", 5000))},
		"endless path":             {full, "POST /v1/pools/" + strings.Repeat("x", 9000)},
		"nothing":                  {full, ""},
		"noise":                    {full, "\x00\x01\x02\r\n\r\n"},
		"HTTP/2":                   {full, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		"control byte in a header": {full, post("/v1/allocate", "User-Agent: a\x01")},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := tc.backend, tc.backend
			got := exchange(t, newRoutes(&a, testLog(t)), tc.sent)
			if want := exchange(t, onlyNetHTTP(newRoutes(&b, testLog(t))), tc.sent); got != want {
				t.Errorf("the front answers\n%q\nand net/http\n%q", got, want)
			}
		})
	}
}

// brokenMux is routes whose way through net/http is cut.
func brokenMux(t *testing.T, b backend) *routes {
	rt := newRoutes(b, testLog(t))
	rt.handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	return rt
}

// What the documented clients send does not take the long way, in whatever pieces it arrives.
func TestFrontAnswersPlainRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		l, _ := start(brokenMux(t, &fakeBackend{members_: []alloc.Allocation{{Member: "http://203.0.113.7:8080", Count: 1}}}))
		conn := l.dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		for name, headers := range map[string]string{
			"curl":   "Host: evenpool\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n",
			"Python": "Host: evenpool\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n",
			"Node":   "Host: localhost\r\nConnection: keep-alive\r\nContent-Length: 0\r\n",
			"Go":     "Host: evenpool\r\nUser-Agent: evenpool\r\nContent-Length: 0\r\nAccept-Encoding: gzip\r\n",
		} {
			for _, c := range []byte("POST /v1/pools/web/allocate?n=2 HTTP/1.1\r\n" + headers + "\r\n") {
				if _, err := conn.Write([]byte{c}); err != nil {
					t.Fatal(name, err)
				}
			}
			if status, body := readAnswer(t, in); status != 200 || strings.Count(body, "203.0.113.7") != 2 {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
	})
}

func TestU4_SlowClientsOfTheFrontEnd(t *testing.T) {
	const plain = "POST /v1/allocate HTTP/1.1\r\nHost: e\r\n"
	for name, tc := range map[string]struct {
		sent  string
		after time.Duration
	}{
		"half a head":             {plain, headerTimeout},
		"half a head that passes": {plain + "X: ", headerTimeout},
		"silent after an answer":  {plain + "\r\n", idleTimeout + time.Second},
		"half a head after it":    {plain + "\r\nPOST", headerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
				l, _ := start(newRoutes(&fakeBackend{}, testLog(t)))
				conn := l.dial()
				defer conn.Close()
				began := time.Now()
				go func() { io.WriteString(conn, tc.sent) }()
				_, _ = io.Copy(io.Discard, conn)
				if took := time.Since(began); took < tc.after || took > tc.after+600*time.Millisecond {
					t.Errorf("ended after %s, want %s", took, tc.after)
				}
			})
		})
	}
}

func TestU4_ClientOfTheFrontThatDoesNotReadEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		l, _ := start(newRoutes(&fakeBackend{}, testLog(t)))
		conn := l.dial()
		defer conn.Close()
		began := time.Now()
		io.WriteString(conn, "POST /v1/allocate HTTP/1.1\r\nHost: e\r\n\r\n")
		for time.Since(began) < time.Minute {
			if _, err := conn.Write([]byte("P")); err != nil {
				break
			}
		}
		if took := time.Since(began); took != writeTimeout {
			t.Errorf("ended after %s", took)
		}
	})
}

// At a stop, idle connections end, what was begun may be ended, and the answer says that it is the last.
func TestU7_FrontStops(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		l, stop := start(brokenMux(t, &fakeBackend{}))
		idle, begun := l.dial(), l.dial()
		defer idle.Close()
		defer begun.Close()
		const first, second = "POST /v1/allocate HTTP/1.1\r\n", "Host: e\r\n\r\n"
		in := bufio.NewReader(begun)
		io.WriteString(begun, first+second)
		readAnswer(t, in)
		io.WriteString(begun, first)
		began := time.Now()
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		if n, err := idle.Read(make([]byte, 1)); n > 0 || time.Since(began) > 0 {
			t.Errorf("an idle connection lasted %s: %v", time.Since(began), err)
		}
		time.Sleep(time.Second) // in the bubble
		io.WriteString(begun, second)
		rest, _ := io.ReadAll(in)
		if !bytes.HasPrefix(rest, []byte("HTTP/1.1 200 OK\r\n")) || !bytes.Contains(rest, []byte("\r\nConnection: close\r\n")) {
			t.Errorf("%q", rest)
		}
		<-stopped
		if took := time.Since(began); took != time.Second {
			t.Errorf("stopped after %s", took)
		}
	})
}

// An allocation that hangs is given up when the daemon waits no longer.
func TestU7_StuckAllocationsAreCut(t *testing.T) {
	inBubble(t, func(t *testing.T, start func(http.Handler) (*pipeListener, func())) {
		entered := make(chan struct{})
		l, stop := start(newRoutes(&fakeBackend{inAllocate: func(ctx context.Context) error {
			close(entered)
			<-ctx.Done()
			return alloc.ErrUnavailable
		}}, testLog(t)))
		conn := l.dial()
		defer conn.Close()
		io.WriteString(conn, "POST /v1/allocate?timeout_ms=10000 HTTP/1.1\r\nHost: e\r\n\r\n")
		<-entered
		began := time.Now()
		stop()
		if took := time.Since(began); took != stopTimeout {
			t.Errorf("stopped after %s", took)
		}
	})
}

// What readHead calls plain means the same to net/http, and each beginning of it may still become it.
func FuzzReadHead(f *testing.F) {
	for _, s := range []string{
		"POST /v1/allocate HTTP/1.1\r\nHost: e\r\n\r\n",
		"POST /v1/pools/web/allocate?n=3&timeout_ms=70 HTTP/1.1\r\nHost: e\r\nAccept: text/plain\r\nContent-Length: 0\r\n\r\nPOST",
		"POST /v1/allocate HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /v1/allocate HTTP/1.1\r\nHost: e\r\n X: y\r\n\r\n",
		"POST /v1/allocate HTTP/1.1\nHost: e\n\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, state := readHead(b)
		if state != headPlain {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b[:n])))
		if err != nil {
			t.Fatalf("%q: %v", b[:n], err)
		}
		q, err := parseQuery(r.URL.RawQuery, []string{"n"})
		if err != nil {
			t.Fatal(err)
		}
		count := 1
		if q.has("n") {
			count, err = q.whole("n", 1, api.MaxAllocate)
		}
		budget, budgetErr := q.budget()
		if err != nil || budgetErr != nil || r.ContentLength != 0 || len(r.TransferEncoding) > 0 || r.Close || r.Method != "POST" {
			t.Fatalf("%q: %v, %v, %+v", b[:n], err, budgetErr, r)
		}
		path := "/v1/allocate"
		if len(h.pool) > 0 {
			path = fmt.Sprintf("/v1/pools/%s/allocate", h.pool)
		}
		got := fmt.Sprint(string(h.path), h.n, h.many, h.budget, h.text)
		want := fmt.Sprint(path, count, q.has("n"), budget, wantsText(r.Header))
		if got != want || r.URL.Path != path {
			t.Fatalf("%q: %s, net/http has it as %s", b[:n], got, want)
		}
		for i := range n {
			if _, _, state := readHead(b[:i]); state != headPartial {
				t.Fatalf("%q is %d", b[:i], state)
			}
		}
	})
}
