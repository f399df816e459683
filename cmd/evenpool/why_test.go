package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"evenpool/daemon/api"
)

func TestWhyText(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	count := int64(18)
	for _, tc := range []struct {
		name string
		why  api.Why
		want string
	}{
		{"member", api.Why{
			Proxy: "http://203.0.113.7:8080", State: api.StateMember, Count: &count, Text: "It meets all rules.",
			Schemes: []string{"http", "https"}, Country: "DE", Anonymity: "elite", Sources: []string{"a", "b"}, FirstSeenAt: ago(2 * time.Hour),
			Passes: 3, LastPassAt: ago(time.Minute), NextProbeAt: now.Add(4 * time.Minute),
			Proven:  &api.Proven{At: ago(time.Minute), Capabilities: []string{"http", "tls"}, Anonymity: "elite", Verified: true, Judges: 2},
			Exits:   []api.Exit{{Address: "198.51.100.9", Country: "DE", ASN: 3320, Since: ago(time.Hour), Until: ago(time.Minute)}, {Address: "2001:db8::1", Since: ago(time.Hour), Until: ago(time.Hour)}},
			Targets: []api.TargetResult{{Target: "shop", At: ago(time.Minute), Outcome: "target_failed"}},
			Rounds: []api.Round{{At: ago(time.Minute), Worked: true, ConnectMS: 20, FirstByteMS: 210, TotalMS: 230, ExitChanges: 1},
				{At: ago(time.Hour)}, {Worked: true, TotalMS: 9}},
			Rules:   []api.Rule{{Rule: "schemes", Result: api.RulePass, Text: "it speaks http"}, {Rule: "max_latency", Result: api.RulePass, Text: "230 ms of 3s"}},
			Results: []api.Result{{At: ago(time.Minute), Proxy: "http://203.0.113.7:8080", Outcome: "ok", Judge: "mine", LatencyMS: 230}},
		}, `http://203.0.113.7:8080: member, allocated 18 times
It meets all rules.
  listed as    http, https by a, b, first seen 2h 0m ago
  claimed      DE, elite; lists say so, nobody has looked
  record       3 passes in a row; last passed 1m 0s ago; next probe in 4m 0s
  rules        pass schemes: it speaks http
               pass max_latency: 230 ms of 3s
  showed       http, tls, 2 judges were content, 1m 0s ago
  anonymity    elite (verified)
  exits        198.51.100.9, DE, AS3320, last 1m 0s ago, first 1h 0m ago
               2001:db8::1, last 1h 0m ago, first 1h 0m ago
  targets      shop: target_failed, 1m 0s ago
  rounds       1m 0s ago, worked: connected after 20 ms, first byte 210 ms, all 230 ms; the exit changed 1 time
               1h 0m ago, did not work
               worked: connected after 0 ms, first byte 0 ms, all 9 ms
  results      1m 0s ago, http://203.0.113.7:8080: ok, judge mine, 230 ms
`},
		{"retired", api.Why{
			Proxy: "203.0.113.7:8080", State: api.StateRetired, Text: "It failed twice.", Schemes: []string{"http"}, Sources: []string{"a"}, Fails: 1,
			OffendedAt: ago(time.Hour), QuarantineUntil: now.Add(23 * time.Hour),
			Retired: &api.Retired{Count: 18, At: ago(time.Hour)},
			Rules:   []api.Rule{{Rule: "require http", Result: api.RuleFail, Text: "refused"}, {Rule: "require tls", Result: api.RuleNotKnown, Text: "not asked"}},
			Results: []api.Result{{At: now, Proxy: "http://203.0.113.7:8080", Outcome: "garbage", Stage: "response", Judge: "mine", Detail: "\x1b[2J"}},
		}, `203.0.113.7:8080: retired
It failed twice.
  listed as    http by a
  record       1 failure in a row
  offended     it broke a rule of safety 1h 0m ago; quarantine ends in 23h 0m
  retired      1h 0m ago with count 18
  rules        FAIL require http: refused
               ?    require tls: not asked
  results      now, http://203.0.113.7:8080: garbage at response, judge mine: \x1b[2J
`},
		{"unknown", api.Why{Proxy: "203.0.113.7:8080", State: api.StateUnknown, Text: "No source names it."},
			"203.0.113.7:8080: unknown\nNo source names it.\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			if err := writeWhy(&b, tc.why, now); err != nil {
				t.Fatal(err)
			}
			if b.String() != tc.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), tc.want)
			}
		})
	}
}

func TestWhyCommand(t *testing.T) {
	socket, asked := answering(t, 200, api.Why{Proxy: "203.0.113.7:8080", State: api.StateUnknown})
	code, stdout, stderr := runCLI(t, "why", "http://u:***@203.0.113.7:8080", "--pool", "web", "--socket", socket)
	if code != exitDone || stderr != "" || stdout != "203.0.113.7:8080: unknown\n" ||
		*asked != "GET /v1/pools/web/proxies?url=http%3A%2F%2Fu%3A%2A%2A%2A%40203.0.113.7%3A8080" {
		t.Errorf("exit %d, %q, %q, %s", code, stdout, stderr, *asked)
	}
	code, stdout, _ = runCLI(t, "why", "203.0.113.7:8080", "-o", "json", "--pool", "web", "--socket", socket)
	var why api.Why
	if err := json.Unmarshal([]byte(stdout), &why); code != exitDone || err != nil || why.State != api.StateUnknown {
		t.Errorf("exit %d, %v, %s", code, err, stdout)
	}
}

func TestWhyRefuses(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		stderr string
	}{
		{nil, "why takes one proxy, as in: evenpool why 203.0.113.7:8080"},
		{[]string{"203.0.113.7:8080", "203.0.113.8:8080"}, "why takes one proxy, as in: evenpool why 203.0.113.7:8080"},
		{[]string{"203.0.113.7"}, `unparseable: "203.0.113.7"; expected SCHEME://HOST:PORT or HOST:PORT`},
		{[]string{"ftp://203.0.113.7:21"}, `unsupported-scheme: "ftp"; expected SCHEME://HOST:PORT or HOST:PORT`},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"why"}, tc.args...)...)
		if code != exitUsage || stdout != "" || stderr != "evenpool: "+tc.stderr+"\n" {
			t.Errorf("%q: exit %d, %q, %s", tc.args, code, stdout, stderr)
		}
	}
}
