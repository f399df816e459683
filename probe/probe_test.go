package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"unicode"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// forward is the smallest http proxy: it brings absolute-form requests to any
// host to the judge's handler.
func forward(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.IsAbs() {
			http.Error(w, "not a proxy request", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func serverProxy(t *testing.T, h http.Handler) proxyurl.URL {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return mustProxy(t, s.URL)
}

// TestP5_AResultBelongsToItsProxy asks 500 proxies at once; every second one
// answers with the answer that was meant for the one before it.
func TestP5_AResultBelongsToItsProxy(t *testing.T) {
	const n = 500
	var (
		mu      sync.Mutex
		earlier []byte
		own     = judge.Handler{Key: testKey}
	)
	honest := serverProxy(t, forward(&own))
	replay := serverProxy(t, forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		own.ServeHTTP(rec, r)
		mu.Lock()
		body := earlier
		earlier = rec.Body.Bytes()
		mu.Unlock()
		if body == nil {
			body = askJudge(&own, httptest.NewRequest("GET", "http://judge.example.org/?nonce=00000000000000000000000000000000&form=page", nil))
		}
		_, _ = w.Write(body)
	})))
	p := New(Options{})
	j := signingJudge(t)
	var wg sync.WaitGroup
	results := make([]Result, n)
	for i := range n {
		wg.Go(func() {
			proxy := honest
			if i%2 == 1 {
				proxy = replay
			}
			results[i] = one(p, t.Context(), proxy, loopback(), []put{{j, HTTP}})
		})
	}
	wg.Wait()
	for i, r := range results {
		want, proxy := OK, honest
		if i%2 == 1 {
			want, proxy = Replayed, replay
		}
		if r.Outcome != want || r.Proxy != proxy {
			t.Fatalf("proxy %d (%s): %s (%s), want %s", i, r.Proxy, r.Outcome, r.Last().Detail, want)
		}
	}
}

// TestP6_NeverAroundTheProxy: through a closed port a probe fails, whatever the
// environment says of proxies, and the judge, which can be reached directly, is
// not asked.
func TestP6_NeverAroundTheProxy(t *testing.T) {
	t.Setenv("NO_PROXY", "*")
	var h judge.Handler
	plain := httptest.NewServer(&h)
	defer plain.Close()
	secure := httptest.NewTLSServer(&h)
	defer secure.Close()
	j := Judge{Name: "mine", HTTP: mustURL(t, plain.URL), HTTPS: mustURL(t, secure.URL), Allow: loopback()}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	p := New(Options{})
	for _, scheme := range Schemes() {
		for _, c := range Capabilities() {
			r := one(p, t.Context(), mustProxy(t, string(scheme)+"://"+closed), loopback(), []put{{j, c}})
			if r.Outcome != Refused {
				t.Errorf("%s, %s: %s (%s), want %s", scheme, c, r.Outcome, r.Last().Detail, Refused)
			}
		}
	}
	if h.Hits() != 0 {
		t.Errorf("the judge was asked %d times without a proxy", h.Hits())
	}
	if check, _ := p.Control(t.Context(), j, HTTP); check.Outcome != OK || check.Exit != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("control: %+v", check)
	}
	if h.Hits() != 1 {
		t.Errorf("the control's hit was not counted: %d", h.Hits())
	}
}

// TestP7_DetailIsEscaped: a proxy's words are shown, but not obeyed.
func TestP7_DetailIsEscaped(t *testing.T) {
	evil := "\x1b]0;x\x07\x9b2J\u202e\r\nok " + strings.Repeat("\x00", 300)
	for name, serve := range map[string]func(net.Conn){
		"garbage": saying(evil),
		"page":    saying("HTTP/1.1 200 OK\r\n\r\n" + evil),
		"header":  saying("HTTP/1.1 200 OK\r\n" + evil + "\r\n\r\n"),
		"length":  saying("HTTP/1.1 200 OK\r\nContent-Length: \u202e1\r\n\r\n"),
	} {
		r := one(pipeProber(serve), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{ownJudge(t), HTTP}})
		got := r.Last().Detail
		unsafe := strings.ContainsFunc(got, func(c rune) bool { return !unicode.IsPrint(c) })
		if got == "" || unsafe || len(got) > maxDetail+len("...") {
			t.Errorf("%s: %q", name, got)
		}
	}
	// The error of a dialler is a text from outside too.
	p := New(Options{Dial: failing(errors.New("a\x1b[31mb"))})
	r := one(p, t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{ownJudge(t), HTTP}})
	if got := r.Last().Detail; got != `a\x1b[31mb` {
		t.Errorf("dialler: %q", got)
	}
}

func TestAnswers(t *testing.T) {
	own := []put{{ownJudge(t), HTTP}}
	page := []put{{pageJudge(t), HTTP}}
	changed := func(change func(string) string) func(net.Conn) {
		return func(conn net.Conn) {
			req, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return
			}
			rec := httptest.NewRecorder()
			(&judge.Handler{}).ServeHTTP(rec, req)
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n%s", change(rec.Body.String()))
		}
	}
	captive := func(conn net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n<html>blocked: %s", req.RequestURI)
		}
	}
	tests := []struct {
		name   string
		serve  func(net.Conn)
		asks   []put
		want   Outcome
		detail string
	}{
		{"own judge", answerAsJudge, own, OK, ""},
		{"script injected", changed(func(s string) string { return s + "<script>" }), own, Tampered, "a judge's page, altered by somebody"},
		{"script before", changed(func(s string) string { return "<script>" + s }), own, Tampered, "a judge's page, altered by somebody, from byte 1 on"},
		{"answer cut short", changed(func(s string) string { return s[:len(s)-1] }), own, WrongContent, "a judge's page, cut short"},
		{"other nonce", saying("HTTP/1.1 200 OK\r\n\r\n" + string(judge.Page(judge.Answer{Version: judge.Version, Nonce: "00"}))), own, NonceMissing, "an answer to another question"},
		{"captive page", saying("HTTP/1.1 200 OK\r\n\r\n<html>log in"), own, WrongContent, `not the judge's page but "<html>log in"`},
		{"captive page with the URL in it", captive, own, WrongContent, "not the judge's page"},
		{"other JSON", saying("HTTP/1.1 200 OK\r\n\r\n{}"), own, WrongContent, "not the judge's page"},
		{"redirect", saying("HTTP/1.1 302 x\r\nLocation: http://169.254.169.254/\r\n\r\n"), own, WrongStatus, "status 302 in place of 200"},
		{"407", saying("HTTP/1.1 407 x\r\n\r\n"), own, AuthRequired, "status 407"},
		{"page", saying(goodResponse), page, OK, ""},
		{"page of other content", saying("HTTP/1.1 200 OK\r\n\r\nbye"), page, WrongContent, `the expected text is not in "bye"`},
		{"page of other status", saying("HTTP/1.1 404 x\r\n\r\nhello"), page, WrongStatus, "status 404 in place of 200"},
		{"nothing asked", answerAsJudge, nil, Unknown, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := one(pipeProber(test.serve), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, test.asks)
			if r.Outcome != test.want || !strings.Contains(r.Last().Detail, test.detail) {
				t.Errorf("got %s (%s), want %s (%s)", r.Outcome, r.Last().Detail, test.want, test.detail)
			}
		})
	}
}

// TestCompressionIsNotUndone: what claims to be compressed is taken as it is.
func TestCompressionIsNotUndone(t *testing.T) {
	bomb := "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"
	r := one(pipeProber(saying(bomb)), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, []put{{pageJudge(t), HTTP}})
	wantCheck(t, r.Last(), WrongContent, StageAnswer, `the expected text is not in "\x1f\x8b\x08\x00"`) // escaped once
}

// TestRound: by which results a round ends before its last scheme.
func TestRound(t *testing.T) {
	e := mustProxy(t, "http://198.51.100.1:80").Endpoint
	asks := []put{{pageJudge(t), HTTP}}
	hostile := func(conn net.Conn) {
		if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n\r\n<script>{\"evenpool_judge\":2,\"nonce\":%q}", req.URL.Query().Get("nonce"))
		}
	}
	garbage := func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "\xff")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		p    *Prober
		want []Outcome
	}{
		{"ok", t.Context(), pipeProber(saying(goodResponse)), []Outcome{OK}},
		{"garbage", t.Context(), pipeProber(garbage), []Outcome{Garbage, Garbage, Garbage}},
		{"refused", t.Context(), New(Options{Dial: failing(&fault{outcome: Refused})}), []Outcome{Refused}},
		{"forbidden", t.Context(), New(Options{}), []Outcome{ForbiddenAddress}},
		{"hostile", t.Context(), pipeProber(hostile), []Outcome{Tampered}},
		{"cancelled", ctx, New(Options{Dial: failing(io.EOF)}), []Outcome{Cancelled}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			schemes := []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS4A, proxyurl.SOCKS5}
			asks := asks
			if test.name == "hostile" {
				asks = []put{{ownJudge(t), HTTP}}
			}
			var got []Outcome
			for i, r := range test.p.Round(test.ctx, planOf(asks), Job{Endpoint: e, Schemes: schemes}) {
				got = append(got, r.Outcome)
				if r.Proxy != (proxyurl.URL{Scheme: schemes[i], Endpoint: e}) {
					t.Errorf("result %d is of %s", i, r.Proxy)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestAFailureEndsTheProbe: what comes after it would cost time and prove nothing.
func TestAFailureEndsTheProbe(t *testing.T) {
	j := pageJudge(t)
	asks := []put{{j, HTTP}, {j, TLS}}
	r := one(pipeProber(saying("HTTP/1.1 500 x\r\n\r\n")), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, asks)
	if len(r.Checks) != 1 || r.Outcome != WrongStatus {
		t.Errorf("got %+v", r)
	}
	r = one(pipeProber(saying(goodResponse)), t.Context(), mustProxy(t, "http://198.51.100.1:80"), nil, asks)
	if len(r.Checks) != 2 || r.Checks[0].Outcome != OK || r.Checks[1].Capability != TLS || r.Outcome != r.Checks[1].Outcome || r.Outcome == OK {
		t.Errorf("got %+v", r)
	}
}

// TestL1_JudgesAndProxiesAreCheckedApart: what is opened for one is not open for
// the other.
func TestL1_JudgesAndProxiesAreCheckedApart(t *testing.T) {
	var h judge.Handler
	proxy := serverProxy(t, forward(&h))
	j := ownJudge(t)
	p := New(Options{})
	if r := one(p, t.Context(), proxy, nil, []put{{j, HTTP}}); r.Outcome != ForbiddenAddress {
		t.Errorf("a proxy on loopback was dialled: %s", r.Outcome)
	}
	if r := one(p, t.Context(), proxy, loopback(), []put{{j, HTTP}}); r.Outcome != OK {
		t.Errorf("opened for it: %s", r.Outcome)
	}
	j.HTTP = mustURL(t, "http://127.0.0.1:9/")
	if c, _ := p.Control(t.Context(), j, HTTP); c.Outcome != JudgeForbidden {
		t.Errorf("a judge on loopback was dialled: %s", c.Outcome)
	}
	r := one(p, t.Context(), mustProxy(t, "socks4://"+proxy.Endpoint.HostPort()), loopback(), []put{{j, HTTP}})
	if r.Outcome != JudgeForbidden {
		t.Errorf("a judge on loopback was asked for by its address: %s", r.Outcome)
	}
	if h.Hits() != 1 {
		t.Errorf("%d hits", h.Hits())
	}
}
