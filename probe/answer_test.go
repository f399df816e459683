package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"evenpool/probe/judge"
)

var testKey = judge.Key(strings.Repeat("k", 32))

func signingJudge(t testing.TB) Judge {
	j := ownJudge(t)
	j.Key = testKey
	return j
}

// askJudge has a judge answer a request that came through a proxy.
func askJudge(h *judge.Handler, r *http.Request) []byte {
	r.RemoteAddr = "9.9.9.9:1234"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// TestP2_AForgedAnswerOfEveryKindIsRefused: the proxy that gives it is hostile, and
// is told from one that merely breaks what it brings.
func TestP2_AForgedAnswerOfEveryKindIsRefused(t *testing.T) {
	own := &judge.Handler{Key: testKey}
	old := askJudge(own, httptest.NewRequest("GET", "http://judge.example.org/?nonce=00112233445566778899aabbccddeeff&form=page", nil))
	// changed has the right answer changed and put back into its page.
	changed := func(change func(*judge.Answer)) func(*http.Request) []byte {
		return func(r *http.Request) []byte {
			text, err := judge.CutPage(askJudge(own, r))
			if err != nil {
				t.Error(err)
			}
			var a judge.Answer
			if err := json.Unmarshal(text, &a); err != nil {
				t.Error(err)
			}
			change(&a)
			return judge.Page(a)
		}
	}
	otherHost := func(r *http.Request) []byte {
		r.Host = "other.example.org"
		return askJudge(own, r)
	}
	edited := func(before, after string) func(*http.Request) []byte {
		return func(r *http.Request) []byte {
			page := askJudge(own, r)
			if !bytes.Contains(page, []byte(before)) {
				t.Errorf("the page has no %q", before)
			}
			return bytes.Replace(page, []byte(before), []byte(after), 1)
		}
	}
	tests := []struct {
		name   string
		answer func(*http.Request) []byte
		want   Outcome
		detail string
	}{
		{"the judge's own", func(r *http.Request) []byte { return askJudge(own, r) }, OK, ""},
		{"replay", func(*http.Request) []byte { return old }, Replayed, "signed by the judge for another question"},
		{"other key", changed(func(a *judge.Answer) { a.Sign(judge.Key(strings.Repeat("x", 32))) }), Forged, "the answer's signature is not the judge's"},
		{"unsigned", changed(func(a *judge.Answer) { a.Signature = "" }), Forged, "the answer is not signed"},
		{"other nonce", changed(func(a *judge.Answer) { a.Nonce = "00112233445566778899aabbccddeeff" }), Forged, "signature"},
		{"other address", changed(func(a *judge.Answer) { a.Address = "9.9.9.10" }), Forged, "signature"},
		{"header changed", changed(func(a *judge.Answer) { a.Headers["User-Agent"] = []string{"x"} }), Forged, "signature"},
		{"header hidden", changed(func(a *judge.Answer) { delete(a.Headers, "X-Forwarded-For") }), Forged, "signature"},
		{"time changed", changed(func(a *judge.Answer) { a.TimeMS++ }), Forged, "signature"},
		{"another version", changed(func(a *judge.Answer) { a.Version = 1 }), Forged, "no answer of a judge in it"},
		{"the same judge by another name", otherHost, Forged, `another host, "other.example.org"`},
		{"page with something else", func(*http.Request) []byte { return []byte(judge.KnownPage) }, Forged, "no answer of a judge in it"},
		{"cut", func(r *http.Request) []byte { p := askJudge(own, r); return p[:len(p)-9] }, WrongContent, "cut short"},
		{"script injected", edited("</head>", "<script src=//evil.example></script></head>"), Tampered, "altered"},
		{"script in the answer", edited(`"headers":`, `"x":["</pre><script>evil()</script>"],"headers":`), Tampered, "no judge writes so"},
		{"a name twice in the answer", edited(`"address":`, `"address":"9.9.9.9","address":`), Tampered, "no judge writes so"},
		{"a blank in the answer", edited(`{"evenpool_judge"`, `{ "evenpool_judge"`), Tampered, "no judge writes so"},
		{"frame taken out", edited("<iframe", "<!-- "), Tampered, "altered"},
		{"link exchanged", edited("http://www.example.com/download.zip", "http://evil.example/download.zip"), Tampered, "altered"},
		{"line ends changed", func(r *http.Request) []byte { return bytes.ReplaceAll(askJudge(own, r), []byte("\n"), []byte("\r\n")) }, Tampered, "altered"},
		{"page of its own", func(*http.Request) []byte { return []byte("<html>welcome") }, WrongContent, `not the judge's page but "<html>welcome"`},
		{"nothing", func(*http.Request) []byte { return nil }, WrongContent, "not the judge's page"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proxy := serverProxy(t, forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("X-Forwarded-For", "8.8.4.4")
				_, _ = w.Write(test.answer(r))
			})))
			r := one(New(Options{}), t.Context(), proxy, loopback(), []put{{signingJudge(t), HTTP}})
			if r.Outcome != test.want || !strings.Contains(r.Last().Detail, test.detail) {
				t.Errorf("got %s (%s), want %s (%s)", r.Outcome, r.Last().Detail, test.want, test.detail)
			}
			if ok := test.want == OK; r.Verified != ok || r.Exit.IsValid() != ok || r.Found.Has(HTTP) != ok {
				t.Errorf("verified %v, exit %v, found %v", r.Verified, r.Exit, r.Found)
			}
		})
	}
}

// What is told within the judge's own TLS is proven, too; over plain http without a
// key it is a claim.
func TestP2_WhatIsVerified(t *testing.T) {
	for _, key := range []judge.Key{nil, testKey} {
		own := &judge.Handler{Key: key}
		proxy := serverProxy(t, forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(askJudge(own, r)) })))
		j := ownJudge(t)
		j.Key = key
		plan := planOf([]put{{j, HTTP}})
		plan.seen = Seen{Own: addrs("8.8.4.4", "127.0.0.1")}
		r := New(Options{}).Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: Schemes()[:1], Allow: loopback()})[0]
		if r.Outcome != OK || r.Anonymity != Elite || r.Verified != (key != nil) || r.Exit != netip.MustParseAddr("9.9.9.9") {
			t.Errorf("key %v: %+v", key != nil, r)
		}
	}
}

func TestSameHost(t *testing.T) {
	for _, test := range []struct {
		got, want string
		port      uint16
		same      bool
	}{
		{"judge.example.org", "judge.example.org", 80, true},
		{"Judge.Example.org:80", "judge.example.org", 80, true},
		{"judge.example.org", "judge.example.org:443", 443, true},
		{"judge.example.org:443", "judge.example.org", 80, false},
		{"judge.example.org:8080", "judge.example.org:8080", 8080, true},
		{"judge.example.org", "judge.example.org:8080", 8080, false},
		{"", "judge.example.org", 80, false},
	} {
		if got := sameHost(test.got, test.want, test.port); got != test.same {
			t.Errorf("%q for %q: %v", test.got, test.want, got)
		}
	}
}

// FuzzOwnAnswer: of all bodies only the one that the judge signed for this question
// is taken, and the others end as what a proxy may be blamed for.
func FuzzOwnAnswer(f *testing.F) {
	a, err := newAsk(signingJudge(f), HTTP)
	if err != nil {
		f.Fatal(err)
	}
	inTLS, err := newAsk(signingJudge(f), TLS)
	if err != nil {
		f.Fatal(err)
	}
	const nonce = "00112233445566778899aabbccddeeff"
	right := judge.Answer{Version: judge.Version, Nonce: nonce, Address: "9.9.9.9", Host: "judge.example.org",
		Headers: map[string][]string{"Via": {"1.1 x"}}, TimeMS: time.Now().UnixMilli()}
	right.Sign(testKey)
	page := judge.Page(right)
	f.Add(page, true)
	f.Add(page[:900], true)
	f.Add(append([]byte("<script>"), page...), true)
	text, _ := judge.CutPage(page)
	f.Add(text, false)
	f.Fuzz(func(t *testing.T, body []byte, asPage bool) {
		q := question{ask: inTLS, random: nonce}
		if asPage {
			q.ask = a
		}
		seen, err := q.own(response{status: 200, body: body})
		if err == nil {
			// JSON has more than one way to write the same.
			if seen.exit != netip.MustParseAddr("9.9.9.9") || len(seen.headers) != 1 || asPage && !bytes.HasPrefix(body, []byte(judge.PageBefore)) {
				t.Fatalf("taken: %q", body)
			}
			return
		}
		var known *fault
		if !errors.As(err, &known) || known.outcome.Class() != ClassProxy && known.outcome.Class() != ClassSecurity {
			t.Fatalf("%v", err)
		}
	})
}
