package alloc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// reporting gives a pool with a member that is to be probed in an hour, and a clock to be moved.
func reporting(t *testing.T, test func(t *testing.T, pool *alloc.Pool, now *time.Time)) {
	for _, kind := range []struct {
		name    string
		options func(testing.TB) alloc.Options
	}{{"redis", alloctest.Redis}, {"embedded", alloctest.Embedded}} {
		t.Run(kind.name, func(t *testing.T) {
			now := start
			options := kind.options(t)
			options.Now = func() time.Time { return now }
			store := open(t, options)
			pool := store.Pool(alloctest.PoolName(t))
			if _, err := pool.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Offer(t.Context(), []alloc.Offer{{Endpoint: "a:1", Record: []byte("{}")}}, start); err != nil {
				t.Fatal(err)
			}
			settled, err := pool.Settle(t.Context(), []alloc.Settlement{{Endpoint: "a:1", Version: 1, Due: start.Add(time.Hour),
				Action: alloc.Admit, Member: "http://a:1"}}, alloc.SettlePolicy{})
			if err != nil || settled[0].Change != alloc.ChangeAdmitted {
				t.Fatal(settled, err)
			}
			test(t, pool, &now)
		})
	}
}

func TestReport(t *testing.T) {
	reporting(t, func(t *testing.T, pool *alloc.Pool, now *time.Time) {
		report := func(outcome, target string, want alloc.Reported) {
			t.Helper()
			got, err := pool.Report(t.Context(), alloc.Report{Member: "http://a:1", Endpoint: "a:1", Outcome: outcome, Target: target})
			if err != nil || got != want {
				t.Errorf("%s %s: %+v, %v; want %+v", outcome, target, got, err, want)
			}
		}
		due := func(want time.Time) {
			t.Helper()
			known, err := pool.Look(t.Context(), "a:1")
			if err != nil || !known.Due.Equal(want) {
				t.Errorf("due at %v, %v; want %v", known.Due, err, want)
			}
		}
		counted, forward := alloc.Reported{Member: true}, alloc.Reported{Member: true, Forward: true}
		report("ok", "", counted)
		due(start.Add(time.Hour))
		report("failed", "", forward)
		due(start)
		// Probed, and due in an hour again. A minute has to pass, whoever says what.
		if _, err := pool.Settle(t.Context(), []alloc.Settlement{{Endpoint: "a:1", Version: 2, Due: start.Add(time.Hour)}}, alloc.SettlePolicy{}); err != nil {
			t.Fatal(err)
		}
		*now = start.Add(59 * time.Second)
		for range 50 {
			report("failed", "", counted)
		}
		due(start.Add(time.Hour))
		*now = start.Add(time.Minute)
		report("blocked", "www.example.org", forward)
		due(start.Add(time.Minute))
		report("blocked", "", counted)
		got, err := pool.Reports(t.Context(), "a:1")
		if want := "{1 51 2 2023-11-14 22:14:20 +0000 UTC map[www.example.org:1]}"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("%v, %v; want %s", got, err, want)
		}
		// It is the member alone that is spoken of.
		if got, err := pool.Report(t.Context(), alloc.Report{Member: "socks5://a:1", Endpoint: "a:1", Outcome: "failed"}); err != nil || got.Member {
			t.Errorf("of no member: %+v, %v", got, err)
		}
		// What was said goes with the member, and nobody went for what was said.
		if _, member, err := pool.Score(t.Context(), "http://a:1"); err != nil || !member {
			t.Errorf("reports retired it, %v", err)
		}
		if _, err := pool.Settle(t.Context(), []alloc.Settlement{{Endpoint: "a:1", Version: 2, Action: alloc.Retire, Member: "http://a:1"}}, alloc.SettlePolicy{}); err != nil {
			t.Fatal(err)
		}
		if got, err := pool.Reports(t.Context(), "a:1"); err != nil || fmt.Sprint(got) != fmt.Sprint(alloc.Reports{}) {
			t.Errorf("after it went: %v, %v", got, err)
		}
	})
}

// TestReportsAreBounded: what is kept does not grow, whatever is said how often.
func TestReportsAreBounded(t *testing.T) {
	reporting(t, func(t *testing.T, pool *alloc.Pool, _ *time.Time) {
		for i := range 1000 {
			outcome := alloc.ReportOutcomes()[i%3]
			if _, err := pool.Report(t.Context(), alloc.Report{Member: "http://a:1", Endpoint: "a:1", Outcome: outcome,
				Target: fmt.Sprintf("%064d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := pool.Reports(t.Context(), "a:1")
		if sum := got.OK + got.Failed + got.Blocked; err != nil || sum > 200 || sum < 100 || len(got.BlockedBy) > 8 || got.OK == 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestReportRefusesWhatIsNone(t *testing.T) {
	reporting(t, func(t *testing.T, pool *alloc.Pool, _ *time.Time) {
		for _, r := range []alloc.Report{
			{Outcome: "fine"}, {Outcome: "ok", Target: "a|b"}, {Outcome: "ok", Target: "a,b"}, {Outcome: "blocked", Target: strings.Repeat("a", 65)},
		} {
			r.Member, r.Endpoint = "http://a:1", "a:1"
			if _, err := pool.Report(t.Context(), r); err == nil || !strings.Contains(err.Error(), "BADARG") {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
	for text, good := range map[string]bool{"www.example.org": true, "shop_2-a": true, "": false, "a b": false, "ä": false, strings.Repeat("a", 65): false} {
		if _, err := alloc.ParseReportTarget(text); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}
