package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"evenpool/daemon/api"
)

func TestStatusText(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tc := range []struct {
		name   string
		status api.Status
		want   string
	}{
		{"all there is to say", api.Status{
			Version: "1.2.3", UptimeMS: (3*time.Hour + 12*time.Minute).Milliseconds(),
			Store: api.Store{Kind: "redis", URL: "redis://127.0.0.1:6379/0", Version: "Redis 7.0.15", Since: ago(40 * time.Second), Note: "connection refused"},
			Pools: []api.Pool{{
				Name: "web", Members: 1, Candidates: 3410, Due: 12, CountedAt: ago(2 * time.Minute),
				Counts: &api.Evenness{Lowest: 17, Highest: 19, Spread: 2, Mean: 18.04, Gini: 0.0123},
				LastCycle: &api.Cycle{
					StartedAt: ago(5 * time.Minute), DurationMS: 14230, ProbedMembers: 1, ProbedCandidates: 400,
					Passed: 3, Failed: 395, Inconclusive: 3, Admitted: 1, Retired: 2, Held: 4, PutOff: 5, VoidSlices: 1,
					Outcomes: api.Counts{"ok": 3, "timeout": 200, "refused": 195, "local": 3}, Error: "deadline reached",
				},
				NextCycleAt: now.Add(20 * time.Second),
				Guard:       api.Guard{State: api.GuardFrozen, Since: ago(time.Minute), Why: "6 of 10 members failed"},
				Judges: []api.Judge{
					{Name: "mine", Capability: "http", Well: true, CheckedAt: ago(time.Second)},
					{Name: "mine", Capability: "tls", Outcome: "timeout", Detail: `\x1b[2J`, CheckedAt: ago(time.Second)},
					{Name: "page", Capability: "tls"},
				},
				Sources: []api.Source{
					{Name: "a", FetchedAt: ago(30 * time.Hour), Stale: true, Candidates: 1, Error: "HTTP status 500",
						Rejects: api.Counts{"bad-port": 2, "unparseable": 7}, Refused: api.Counts{"never-proxy-port": 1}, NextFetchAt: now.Add(time.Hour)},
					{Name: "b", Error: "no such host", NextFetchAt: now.Add(30 * time.Second)},
					{Name: "c"},
				},
			}},
		}, `evenpool 1.2.3, up 3h 12m
  store        redis redis://127.0.0.1:6379/0 (Redis 7.0.15), NOT REACHABLE since 40s ago
               connection refused

pool web: 1 member, 3410 candidates, 12 due (counted 2m 0s ago)
  counts       17 to 19, mean 18.0, spread 2, Gini 0.012
  last cycle   5m 0s ago, took 14.2s: probed 1 member and 400 candidates
               3 passed, 395 failed, 3 inconclusive; 1 admitted, 2 retired, 4 held by the guard, 5 put off as a flood, 1 void slices
               timeout 200, refused 195, local 3, ok 3
               ended early: deadline reached
  next cycle   in 20s
  guard        FROZEN since 1m 0s ago: 6 of 10 members failed
  judges       mine http well, asked 1s ago
               mine tls NOT WELL: timeout: \x1b[2J, asked 1s ago
               page tls not asked yet
  sources      a: 1 candidate, fetched 1d 6h ago, next in 1h 0m
                 records rejected: unparseable 7, bad-port 2
                 candidates refused: never-proxy-port 1
                 STALE, the last good copy is used: HTTP status 500
               b: no such host, next in 30s
               c: not fetched yet
`},
		{"just started", api.Status{
			Version: "dev", UptimeMS: 350,
			Store: api.Store{Kind: "embedded", Version: "embedded", Reachable: true},
			Pools: []api.Pool{{Name: "web", Guard: api.Guard{State: api.GuardNormal}}},
		}, `evenpool dev, up 350ms
  store        embedded, reachable

pool web: 0 members, 0 candidates, 0 due (not counted yet)
  last cycle   none has ended yet
  guard        normal
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			if err := writeStatus(&b, tc.status, now); err != nil {
				t.Fatal(err)
			}
			if b.String() != tc.want {
				t.Errorf("got\n%s\nwant\n%s", b.String(), tc.want)
			}
		})
	}
}

func TestStatusCommand(t *testing.T) {
	socket, asked := answering(t, 200, api.Status{Version: "1.2.3", Pools: []api.Pool{{Name: "web"}}})
	code, stdout, stderr := runCLI(t, "status", "--socket", socket)
	if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "evenpool 1.2.3, up 0s\n") || *asked != "GET /v1/status" {
		t.Errorf("exit %d, %s, %s, %s", code, stdout, stderr, *asked)
	}
	code, stdout, _ = runCLI(t, "status", "--socket", socket, "-o", "json")
	var status api.Status
	if err := json.Unmarshal([]byte(stdout), &status); code != exitDone || err != nil || status.Pools[0].Name != "web" {
		t.Errorf("exit %d, %v, %s", code, err, stdout)
	}
	if code, _, stderr = runCLI(t, "status", "web"); code != exitUsage || stderr != "evenpool: status takes no arguments\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
