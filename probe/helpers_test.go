package probe

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

const testTimeout = 2 * time.Second

func loopback() proxyurl.Allow { return proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8")} }

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustProxy(t testing.TB, text string) proxyurl.URL {
	t.Helper()
	u, err := proxyurl.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// ownJudge is a judge that nobody dials: peers over net.Pipe play it.
func ownJudge(t testing.TB) Judge {
	return Judge{Name: "mine", HTTP: mustURL(t, "http://judge.example.org/"), HTTPS: mustURL(t, "https://judge.example.org/")}
}

// pipeProber's connections lead to serve, which owns its end; or, if that is nil,
// to nobody.
func pipeProber(serve func(net.Conn)) *Prober {
	return New(Options{Timeout: testTimeout, Dial: func(context.Context, proxyurl.Allow, string) (net.Conn, error) {
		client, server := net.Pipe()
		if serve != nil {
			go func() {
				defer server.Close()
				serve(server)
			}()
		}
		return client, nil
	}})
}

// put is a question to be put.
type put struct {
	judge      Judge
	capability Capability
}

// planOf puts these questions, and no others.
func planOf(asks []put) Plan {
	plan := Plan{min: 1}
	for _, q := range asks {
		a, err := newAsk(q.judge, q.capability)
		if err != nil {
			panic(err)
		}
		plan.first = append(plan.first, a)
	}
	return plan
}

// one is a round by one scheme.
func one(p *Prober, ctx context.Context, proxy proxyurl.URL, allow proxyurl.Allow, asks []put) Result {
	return p.Round(ctx, planOf(asks), Job{Endpoint: proxy.Endpoint, Schemes: []proxyurl.Scheme{proxy.Scheme}, Allow: allow})[0]
}

// failing is a dialer that returns err.
func failing(err error) DialFunc {
	return func(context.Context, proxyurl.Allow, string) (net.Conn, error) { return nil, err }
}

// answerAsJudge reads a request and answers as our own judge would.
func answerAsJudge(conn net.Conn) {
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	req.RemoteAddr = "198.51.100.7:1234"
	rec := httptest.NewRecorder()
	(&judge.Handler{}).ServeHTTP(rec, req)
	_ = rec.Result().Write(conn)
}

// reading runs serve after the request has been read up to its empty line.
func reading(serve func(w io.Writer)) func(net.Conn) {
	return func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			serve(conn)
		}
	}
}

// saying answers every request with text.
func saying(text string) func(net.Conn) {
	return reading(func(w io.Writer) { _, _ = io.WriteString(w, text) })
}

// goodResponse is the whole answer of a page judge that expects "hello".
const goodResponse = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

func pageJudge(t testing.TB) Judge {
	j := ownJudge(t)
	j.Name, j.Expect = "page", &Expect{Status: 200, Contains: "hello"}
	return j
}

func wantCheck(t testing.TB, got Check, o Outcome, s Stage, detail string) {
	t.Helper()
	if got.Outcome != o || got.Stage != s || !strings.Contains(got.Detail, detail) {
		t.Errorf("got %s at %q (%s), want %s at %q (%s)", got.Outcome, got.Stage, got.Detail, o, s, detail)
	}
}
