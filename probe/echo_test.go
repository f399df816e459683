package probe

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// Two third-party judges as there are many: one of JSON, one of variables.
var (
	jsonEcho = Echo{Nonce: "query:n", Format: "json", Address: "origin", Headers: "headers"}
	envEcho  = Echo{Nonce: "header:X-Nonce", Format: "env", Address: "REMOTE_ADDR", Headers: "HTTP_"}
)

func TestEchoReads(t *testing.T) {
	const nonce = "abc123"
	jsonBody := `{"args":{"n":"abc123"},"headers":{"Via":"1.1 x","X-List":["a","b"]},"origin":"8.8.4.4, 9.9.9.9","url":"http://e/?n=abc123"}`
	envBody := "<html><body><pre>\nREMOTE_ADDR = 9.9.9.9\nREQUEST_METHOD = GET\nHTTP_X_NONCE = abc123\nHTTP_VIA = 1.1 &lt;x&gt;\n<b>HTTP_X_FORWARDED_FOR</b> = 1\n</pre>"
	tests := []struct {
		name   string
		echo   Echo
		status int
		body   string
		exit   string
		want   Outcome // "" for a good answer
		detail string  // or the headers
	}{
		{"json", jsonEcho, 200, jsonBody, "9.9.9.9", "", "map[Via:[1.1 x] X-List:[a b]]"},
		{"json in deeper", Echo{Nonce: "query:n", Format: "json", Address: "a.ip", Headers: "a.h"}, 200, `{"a":{"ip":"2600::1","h":{"via":"abc123"}}}`, "2600::1", "", "map[Via:[abc123]]"},
		{"json without headers", Echo{Nonce: "query:n", Format: "json", Address: "ip"}, 200, `{"ip":"9.9.9.9","q":"abc123"}`, "9.9.9.9", "", "map[]"},
		{"no nonce in it", jsonEcho, 200, strings.ReplaceAll(jsonBody, nonce, "x"), "", NonceMissing, "an answer to another question"},
		{"no headers where they should be", jsonEcho, 200, `{"origin":"9.9.9.9","n":"abc123"}`, "", WrongContent, "not the judge's answer but"},
		{"no address", jsonEcho, 200, `{"headers":{},"n":"abc123"}`, "", WrongContent, "no address at origin in"},
		{"not JSON", jsonEcho, 200, "<html>abc123", "", WrongContent, `not the judge's answer but "<html>abc123"`},
		{"status", jsonEcho, 503, jsonBody, "", WrongStatus, "status 503 in place of 200"},
		{"env", envEcho, 200, envBody, "9.9.9.9", "", "map[Via:[1.1 <x>] X-Forwarded-For:[1]]"},
		{"env bare", envEcho, 200, "REMOTE_ADDR=9.9.9.9\r\nHTTP_X_NONCE=abc123\r\nHTTP_VIA=x\r\n", "9.9.9.9", "", "map[Via:[x]]"},
		{"env without any header", envEcho, 200, "REMOTE_ADDR=9.9.9.9\nX=abc123", "9.9.9.9", "", "map[]"},
		{"env without address", envEcho, 200, "HTTP_X_NONCE=abc123", "", WrongContent, "no address at REMOTE_ADDR in"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.echo.Check(); err != nil {
				t.Fatal(err)
			}
			seen, err := test.echo.read(response{status: test.status, body: []byte(test.body)}, nonce)
			var known *fault
			switch {
			case test.want == "" && (err != nil || seen.exit != netip.MustParseAddr(test.exit) || fmt.Sprint(seen.headers) != test.detail):
				t.Errorf("got %v %v, %v", seen.exit, seen.headers, err)
			case test.want != "" && (!errors.As(err, &known) || known.outcome != test.want || !strings.HasPrefix(known.detail, test.detail)):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEchoCheck(t *testing.T) {
	for want, e := range map[string]Echo{
		"nonce: want query:NAME or header:NAME": {Nonce: "path:x", Format: "json", Address: "a"},
		"format: want json or env":              {Nonce: "query:n", Format: "xml", Address: "a"},
		"address: is empty":                     {Nonce: "header:X-N", Format: "env"},
	} {
		if err := e.Check(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := (Echo{Nonce: "header:a b", Format: "json", Address: "a"}).Check(); err == nil {
		t.Error("a header's name with a space")
	}
}

// TestEchoIsAClaim asks a third-party judge through a proxy: the nonce goes where it
// is to go, and what is said is not verified, https or not.
func TestEchoIsAClaim(t *testing.T) {
	for _, echo := range []Echo{jsonEcho, envEcho} {
		proxy := serverProxy(t, forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if echo.Format == "json" {
				fmt.Fprintf(w, `{"origin":"9.9.9.9","headers":{"User-Agent":%q},"n":%q}`, r.UserAgent(), r.URL.Query().Get("n"))
				return
			}
			fmt.Fprintf(w, "REMOTE_ADDR = 9.9.9.9\nHTTP_USER_AGENT = %s\nHTTP_X_NONCE = %s\n", r.UserAgent(), r.Header.Get("X-Nonce"))
		})))
		j := ownJudge(t)
		j.Echo = &echo
		plan := planOf([]put{{j, HTTP}})
		plan.seen = Seen{Own: addrs("127.0.0.1")}
		r := New(Options{}).Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: Schemes()[:1], Allow: loopback()})[0]
		if r.Outcome != OK || r.Anonymity != Elite || r.Verified || r.Exit != netip.MustParseAddr("9.9.9.9") {
			t.Errorf("%s: %+v", echo.Format, r)
		}
	}
	j := ownJudge(t)
	j.Echo = &Echo{}
	if _, _, err := NewPlan(PlanOptions{Judges: []Judge{j}, Require: Capabilities()}); err == nil {
		t.Error("a judge that has no place for a nonce is taken")
	}
}

// FuzzEcho: whatever a page says, it ends in an address and the nonce, or in an
// outcome that is the proxy's.
func FuzzEcho(f *testing.F) {
	f.Add(`{"origin":"9.9.9.9","headers":{"Via":["x"]},"n":"abc123"}`, true)
	f.Add("REMOTE_ADDR = 9.9.9.9\nHTTP_VIA = x\nHTTP_X_NONCE = abc123", false)
	f.Add(`{"origin":{"origin":1},"headers":[[[]]]}`, true)
	f.Fuzz(func(t *testing.T, body string, asJSON bool) {
		echo := envEcho
		if asJSON {
			echo = jsonEcho
		}
		seen, err := echo.read(response{status: 200, body: []byte(body)}, "abc123")
		var known *fault
		switch {
		case err == nil && (!seen.exit.IsValid() || !strings.Contains(body, "abc123")):
			t.Fatalf("taken: %q", body)
		case err != nil && (!errors.As(err, &known) || known.outcome.Class() != ClassProxy):
			t.Fatal(err)
		}
		_, _ = io.WriteString(io.Discard, string(seen.anonymity(addrs("8.8.4.4"), nil, netip.MustParseAddr("9.9.9.9"))))
	})
}
