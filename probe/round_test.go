package probe

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// judgesAt are judges a, b, c, ... at hosts of those names, which do not sign.
func judgesAt(t testing.TB, names ...string) (judges []Judge) {
	for _, name := range names {
		judges = append(judges, Judge{Name: name, HTTP: mustURL(t, "http://"+name+".example.org/")})
	}
	return judges
}

// through brings plain requests to judges; answer may answer in place of one.
func through(t *testing.T, answer func(host string, w http.ResponseWriter) bool) proxyurl.URL {
	return serverProxy(t, forward(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ".")
		if answer == nil || !answer(host, w) {
			_, _ = w.Write(askJudge(&judge.Handler{}, r))
		}
	})))
}

func broken(hosts ...string) func(string, http.ResponseWriter) bool {
	return func(host string, w http.ResponseWriter) bool {
		if slices.Contains(hosts, host) {
			http.Error(w, "no", http.StatusBadGateway)
			return true
		}
		return false
	}
}

// TestJudgesAsked: a newcomer is asked by as many judges as it takes, a member by
// one; a member's failure is looked at by another.
func TestJudgesAsked(t *testing.T) {
	injects := func(host string, w http.ResponseWriter) bool {
		if host == "a" {
			fmt.Fprint(w, "<script>"+judge.KnownPage)
		}
		return host == "a"
	}
	tests := []struct {
		name   string
		judges []string
		min    int
		well   string // those that are; "": all
		member bool
		answer func(string, http.ResponseWriter) bool
		want   Outcome
		asked  string // judge outcome, ...
		last   string // the judge of the check that decided
	}{
		{"one judge", []string{"a"}, 0, "", false, nil, OK, "a ok", "a"},
		{"two judges", []string{"a", "b"}, 0, "", false, nil, OK, "a ok, b ok", "b"},
		{"three judges, two are enough", []string{"a", "b", "c"}, 0, "", false, nil, OK, "a ok, b ok", "b"},
		{"three wanted", []string{"a", "b", "c"}, 3, "", false, nil, OK, "a ok, b ok, c ok", "c"},
		{"one wanted", []string{"a", "b"}, 1, "", false, nil, OK, "a ok", "a"},
		{"one of two is well", []string{"a", "b"}, 0, "b", false, nil, TooFewJudges, "b ok", "b"},
		{"one of two is well, one wanted", []string{"a", "b"}, 1, "b", false, nil, OK, "b ok", "b"},
		{"works for one only", []string{"a", "b"}, 0, "", false, broken("b"), WrongStatus, "a ok, b wrong_status", "b"},
		{"fails: nobody else is asked", []string{"a", "b"}, 0, "", false, broken("a"), WrongStatus, "a wrong_status", "a"},
		{"one name counts once", []string{"a", "a"}, 2, "", false, nil, TooFewJudges, "a ok", "a"},

		{"a member", []string{"a", "b"}, 0, "", true, nil, OK, "a ok", "a"},
		{"a member, one of two is well", []string{"a", "b"}, 0, "b", true, nil, OK, "b ok", "b"},
		{"a member fails with one", []string{"a", "b"}, 0, "", true, broken("a"), Disputed, "a wrong_status, b ok", "a"},
		{"a member fails with both", []string{"a", "b"}, 0, "", true, broken("a", "b"), WrongStatus, "a wrong_status, b wrong_status", "a"},
		{"a member fails, no other is well", []string{"a", "b"}, 0, "a", true, broken("a"), WrongStatus, "a wrong_status", "a"},
		{"a member is hostile", []string{"a", "b"}, 0, "", true, injects, Tampered, "a tampered, b ok", "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proxy := through(t, test.answer)
			plan, missing, err := NewPlan(PlanOptions{Judges: judgesAt(t, test.judges...), Require: []Capability{HTTP}, MinJudges: test.min,
				Well: func(judge string, _ Capability) bool { return test.well == "" || judge == test.well }})
			if err != nil || len(missing) > 0 {
				t.Fatal(missing, err)
			}
			round := New(Options{}).Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: Schemes()[:2], Allow: loopback(), Member: test.member})
			r := round[0]
			var asked []string
			for _, c := range r.Checks {
				asked = append(asked, c.Judge+" "+string(c.Outcome))
			}
			if got := strings.Join(asked, ", "); r.Outcome != test.want || got != test.asked || r.Last().Judge != test.last {
				t.Errorf("got %s: %s; %s decided", r.Outcome, got, r.Last().Judge)
			}
			if again := test.want.Class() == ClassProxy; (len(round) == 2) != again {
				t.Errorf("%d schemes were tried", len(round))
			}
		})
	}
}

// A member's failure to be dialled needs no judge, and a second opinion that this
// host could not get decides nothing.
func TestSecondOpinions(t *testing.T) {
	plan, _, err := NewPlan(PlanOptions{Judges: judgesAt(t, "a", "b"), Require: []Capability{HTTP}})
	if err != nil {
		t.Fatal(err)
	}
	var dials atomic.Int32
	e := mustProxy(t, "http://9.9.9.9:80").Endpoint
	p := New(Options{Dial: func(context.Context, proxyurl.Allow, string) (net.Conn, error) {
		dials.Add(1)
		return nil, &fault{outcome: Refused}
	}})
	r := p.Round(t.Context(), plan, Job{Endpoint: e, Schemes: Schemes()[:1], Member: true})[0]
	if r.Outcome != Refused || dials.Load() != 1 {
		t.Errorf("%s after %d dials", r.Outcome, dials.Load())
	}
	dials.Store(0)
	p = New(Options{Dial: func(context.Context, proxyurl.Allow, string) (net.Conn, error) {
		if dials.Add(1) == 2 {
			return nil, &fault{outcome: LocalDescriptors}
		}
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			saying("HTTP/1.1 502 x\r\n\r\n")(server)
		}()
		return client, nil
	}})
	r = p.Round(t.Context(), plan, Job{Endpoint: e, Schemes: Schemes()[:1], Member: true})[0]
	if r.Outcome != LocalDescriptors || len(r.Checks) != 2 {
		t.Errorf("got %s, %+v", r.Outcome, r.Checks)
	}
}

// TestPlanMissing: what no judge that is well can show.
func TestPlanMissing(t *testing.T) {
	judges := judgesAt(t, "a", "b")
	judges[1].HTTPS = mustURL(t, "https://b.example.org/")
	for _, test := range []struct {
		well string
		want string
	}{{"a b", "[]"}, {"a", "[tls]"}, {"b", "[]"}, {"", "[http tls]"}} {
		_, missing, err := NewPlan(PlanOptions{Judges: judges, Require: Capabilities(),
			Well: func(judge string, _ Capability) bool { return strings.Contains(test.well, judge) }})
		if err != nil || fmt.Sprint(missing) != test.want {
			t.Errorf("%q well: missing %v, %v", test.well, missing, err)
		}
	}
	judges[0].HTTP = &url.URL{Scheme: "http", Host: "a.example.org:99999"}
	if _, _, err := NewPlan(PlanOptions{Judges: judges, Require: Capabilities()}); err == nil || err.Error() != `judge a: bad port "99999"` {
		t.Errorf("%v", err)
	}
}

// socksTo is a SOCKS server that takes names, addresses, or both, and answers what
// is asked behind that.
func socksTo(t *testing.T, version byte, names, addresses bool) (proxyurl.URL, *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns := new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Add(1)
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				if !grant(conn, r, version, names, addresses) {
					return
				}
				if req, err := http.ReadRequest(r); err == nil {
					body := askJudge(&judge.Handler{}, req)
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				}
			}()
		}
	}()
	return mustProxy(t, "socks5://"+l.Addr().String()), conns
}

func grant(w io.Writer, r *bufio.Reader, version byte, names, addresses bool) bool {
	head := make([]byte, 8)
	if version == 4 {
		_, _ = io.ReadFull(r, head)
		_, _ = r.ReadBytes(0)
		named := head[4] == 0
		if named {
			_, _ = r.ReadBytes(0)
		}
		ok := named && names || !named && addresses
		code := byte(91)
		if ok {
			code = 90
		}
		_, _ = w.Write([]byte{0, code, 0, 0, 0, 0, 0, 0})
		return ok
	}
	_, _ = io.ReadFull(r, head[:3])
	_, _ = w.Write([]byte{5, 0})
	_, _ = io.ReadFull(r, head[:4])
	named := head[3] == addressName
	n := 6
	if named {
		c, _ := r.ReadByte()
		n = int(c) + 2
	}
	_, _ = r.Discard(n)
	ok := named && names || !named && addresses
	code := byte(8)
	if ok {
		code = 0
	}
	_, _ = w.Write([]byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0})
	return ok
}

// toAddr resolves every name to one address.
type toAddr string

func (a toAddr) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(string(a))}, nil
}

// TestWhoResolves: what SOCKS proxies take, names or addresses, is found out.
func TestWhoResolves(t *testing.T) {
	tests := []struct {
		name      string
		version   byte
		names     bool
		addresses bool
		scheme    proxyurl.Scheme
		want      Outcome
		found     string
		conns     int32
	}{
		{"5, both", 5, true, true, proxyurl.SOCKS5, OK, "http remote_dns", 1},
		{"5, names", 5, true, false, proxyurl.SOCKS5, OK, "http remote_dns", 1},
		{"5, addresses", 5, false, true, proxyurl.SOCKS5, OK, "http", 2},
		{"5, neither", 5, false, false, proxyurl.SOCKS5, SOCKSRefused, "", 2},
		{"4, both", 4, true, true, proxyurl.SOCKS4, OK, "http remote_dns", 2},
		{"4, addresses", 4, false, true, proxyurl.SOCKS4, OK, "http", 2},
		{"4, names", 4, true, false, proxyurl.SOCKS4, SOCKSRefused, "", 1},
		{"4a", 4, true, false, proxyurl.SOCKS4A, OK, "http remote_dns", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			proxy, conns := socksTo(t, test.version, test.names, test.addresses)
			p := New(Options{Resolver: toAddr("9.9.9.9"), Timeout: 5 * time.Second})
			plan := planOf([]put{{ownJudge(t), HTTP}})
			r := p.Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: []proxyurl.Scheme{test.scheme}, Allow: loopback()})[0]
			if r.Outcome != test.want || r.Found.String() != test.found || conns.Load() != test.conns || len(r.Checks) != 1 {
				t.Errorf("got %s (%s), found %q, %d connections", r.Outcome, r.Last().Detail, r.Found, conns.Load())
			}
		})
	}
}

// TestTargets: they are asked when all else is well, each that has its turn, and
// change nothing above.
func TestTargets(t *testing.T) {
	proxy := through(t, func(host string, w http.ResponseWriter) bool {
		if host == "shop" {
			w.Header().Add("X-Shop", "open")
			fmt.Fprint(w, "welcome to the shop")
		}
		return host == "shop"
	})
	u := mustURL(t, "http://shop.example.org/")
	targets := []Target{
		{Name: "plain", URL: u},
		{Name: "all", URL: u, Status: 200, Headers: map[string]*regexp.Regexp{"x-shop": regexp.MustCompile("^open$")}, Body: regexp.MustCompile("welcome")},
		{Name: "status", URL: u, Status: 204},
		{Name: "header", URL: u, Headers: map[string]*regexp.Regexp{"X-Shop": regexp.MustCompile("closed")}},
		{Name: "no header", URL: u, Headers: map[string]*regexp.Regexp{"X-Other": regexp.MustCompile("")}},
		{Name: "body", URL: u, Body: regexp.MustCompile("blocked")},
		{Name: "not its turn", URL: u},
	}
	want := "plain ok , all ok , status target_failed status 200 in place of 204, header target_failed no header X-Shop that matches closed, " +
		"no header target_failed no header X-Other that matches , body target_failed blocked does not match \"welcome to the shop\""
	plan, _, err := NewPlan(PlanOptions{Judges: judgesAt(t, "a"), Require: []Capability{HTTP}, Targets: targets})
	if err != nil {
		t.Fatal(err)
	}
	job := Job{Endpoint: proxy.Endpoint, Schemes: Schemes()[:1], Allow: loopback(), Targets: []string{"plain", "all", "status", "header", "no header", "body"}}
	p := New(Options{})
	r := p.Round(t.Context(), plan, job)[0]
	var got []string
	for _, c := range r.Targets {
		got = append(got, c.Target+" "+string(c.Outcome)+" "+c.Detail)
	}
	if text := strings.Join(got, ", "); text != want || r.Outcome != OK || len(r.Checks) != 1 {
		t.Errorf("%s: %s", r.Outcome, text)
	}
	taken, ended := 0, 0
	job.Turn = func(target string) func() {
		if target != "all" {
			return nil
		}
		taken++
		return func() { ended++ }
	}
	if r := p.Round(t.Context(), plan, job)[0]; len(r.Targets) != 1 || r.Targets[0].Target != "all" || taken != 1 || ended != 1 {
		t.Errorf("one turn of six: %+v, %d taken, %d ended", r.Targets, taken, ended)
	}
	plan.first[0].judge.Expect = &Expect{Status: 200, Contains: "something else"}
	if r := p.Round(t.Context(), plan, job)[0]; len(r.Targets) != 0 || taken != 1 {
		t.Errorf("a proxy that fails was sent to targets, or took a turn: %+v, %d taken", r.Targets, taken)
	}
	if _, _, err := NewPlan(PlanOptions{Targets: []Target{{Name: "x"}}}); err == nil || err.Error() != "target x has no URL" {
		t.Errorf("%v", err)
	}
}

// TestTrace: the conversation is told as it went, both ways.
func TestTrace(t *testing.T) {
	proxy := through(t, nil)
	var said strings.Builder
	plan := planOf([]put{{ownJudge(t), HTTP}})
	New(Options{}).Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: Schemes()[:1], Allow: loopback(),
		Trace: func(scheme proxyurl.Scheme, question Check) func(bool, []byte) {
			fmt.Fprintf(&said, "%s %s %s: ", scheme, question.Judge, question.Capability)
			return func(sent bool, data []byte) { fmt.Fprintf(&said, "%v %s\n", sent, data) }
		}})
	text := said.String()
	if !strings.HasPrefix(text, "http mine http: true GET http://judge.example.org/?nonce=") || !strings.Contains(text, "false HTTP/1.1 200 OK\r\n") || !strings.Contains(text, judge.PageAfter) {
		t.Errorf("told: %s", text)
	}
}
