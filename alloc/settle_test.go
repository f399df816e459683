package alloc_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"evenpool/alloc"
)

// TestSettleLifeOfAProxy: offered, kept, admitted, moved, retired, admitted again, forgotten; after
// each step the whole state, and what the event said.
func TestSettleLifeOfAProxy(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		ctx := t.Context()
		if _, err := pool.Offer(ctx, []alloc.Offer{{Endpoint: "a:1", Record: []byte(`{}`)}}, start); err != nil {
			t.Fatal(err)
		}
		policy := alloc.SettlePolicy{Start: "7", Restore: "keep", Host: "h"}
		steps := []struct {
			name     string
			do       alloc.Settlement
			want     string // Change CountBefore CountAfter Policy
			eligible string
			record   string
			event    string // Change Previous Before After Policy Reason, "" for none
		}{
			{"kept", alloc.Settlement{Version: 1, Record: []byte(`{"p":1}`), Due: start.Add(time.Minute)},
				"none 0 0 ", ``, `2 {"p":1}`, ""},
			{"admitted", alloc.Settlement{Version: 2, Record: []byte(`{"p":2}`), Action: alloc.Admit, Member: "http://a:1", Due: start.Add(2 * time.Minute), Reason: "rise"},
				"admitted 0 7 7", `"http://a:1"=7`, `3 {"p":2}`, "admitted  0 7 7 rise"},
			{"admitted again", alloc.Settlement{Version: 3, Record: []byte(`{"p":3}`), Action: alloc.Admit, Member: "http://a:1", Previous: "http://a:1"},
				"none 7 7 ", `"http://a:1"=7`, `4 {"p":3}`, ""},
			{"moved", alloc.Settlement{Version: 4, Action: alloc.Admit, Member: "socks5://a:1", Previous: "http://a:1", Reason: "scheme"},
				"moved 7 7 ", `"socks5://a:1"=7`, `5 {"p":3}`, "moved http://a:1 7 7  scheme"},
			{"retired under another URL", alloc.Settlement{Version: 5, Action: alloc.Retire, Member: "http://a:1"},
				"none 0 0 ", `"socks5://a:1"=7`, `6 {"p":3}`, ""},
			{"retired", alloc.Settlement{Version: 6, Action: alloc.Retire, Member: "socks5://a:1", Reason: "fall"},
				"retired 7 0 ", ``, `7 {"p":3}`, "retired  7 0  fall"},
			{"came back", alloc.Settlement{Version: 7, Action: alloc.Admit, Member: "http://a:1", Previous: "socks5://a:1"},
				"admitted 7 7 keep", `"http://a:1"=7`, `8 {"p":3}`, "admitted socks5://a:1 7 7 keep "},
			{"forgotten", alloc.Settlement{Version: 8, Action: alloc.Forget, Member: "http://a:1", Reason: "gone"},
				"retired 7 0 ", ``, `0 `, "retired  7 0  gone"},
		}
		for _, step := range steps {
			step.do.Endpoint = "a:1"
			events := len(allEvents(t, pool))
			got := settle(t, pool, policy, step.do)
			if said := fmt.Sprintf("%s %d %d %s", got.Change, got.CountBefore, got.CountAfter, got.Policy); got.Stale || said != step.want {
				t.Errorf("%s: %q (stale %v), want %q", step.name, said, got.Stale, step.want)
			}
			if got := set(t, store, eligible(pool)); got != step.eligible {
				t.Errorf("%s: members %s, want %s", step.name, got, step.eligible)
			}
			record, err := pool.Look(ctx, "a:1")
			if said := fmt.Sprintf("%d %s", record.Version, record.Record); said != step.record || err != nil {
				t.Errorf("%s: record %s, %v, want %s", step.name, said, err, step.record)
			}
			all := allEvents(t, pool)
			if step.event == "" {
				if len(all) != events {
					t.Errorf("%s: an event %+v", step.name, all[0])
				}
			} else if e := all[0]; fmt.Sprintf("%s %s %d %d %s %s", e.Change, e.Previous, e.Before, e.After, e.Policy, e.Reason) != step.event ||
				e.Endpoint != "a:1" || e.Member != step.do.Member || e.Host != "h" || len(all) != events+1 {
				t.Errorf("%s: event %+v, want %s", step.name, e, step.event)
			}

			// Twice: what was done is stale now, and changes nothing.
			before := state(t, store, pool)
			if again := settle(t, pool, policy, step.do); !again.Stale || again.Change != alloc.ChangeNone {
				t.Errorf("%s, twice: %+v, want stale", step.name, again)
			}
			if after := state(t, store, pool); after != before {
				t.Errorf("%s, twice, changed\n%s\ninto\n%s", step.name, before, after)
			}
		}
		if due := set(t, store, pool.Keys()[3]); due != "" {
			t.Errorf("forgotten, but due %s", due)
		}
	})
}

func allEvents(t testing.TB, pool *alloc.Pool) []alloc.Event {
	t.Helper()
	events, err := pool.Events(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// TestH7_LateResultsAreStale: a cycle that was overtaken does not undo what a later one decided.
func TestH7_LateResultsAreStale(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		admit(t, pool, alloc.SettlePolicy{}, "a:1")
		paused := version(t, pool, "a:1")
		settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "a:1", Version: paused, Record: []byte(`{"later":1}`)})
		before := state(t, store, pool)
		for _, action := range []alloc.Action{alloc.Keep, alloc.Admit, alloc.Retire, alloc.Forget} {
			got := settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{
				Endpoint: "a:1", Version: paused, Record: []byte(`{"late":1}`), Action: action, Member: "http://a:1", Due: start,
			})
			if !got.Stale {
				t.Errorf("a late %s: %+v, want stale", action, got)
			}
		}
		// One that was forgotten meanwhile does not come back by a late result either.
		if got := settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "gone:1", Version: 4, Record: []byte(`{}`), Action: alloc.Admit, Member: "http://gone:1"}); !got.Stale {
			t.Errorf("late, of one that is gone: %+v, want stale", got)
		}
		if after := state(t, store, pool); after != before {
			t.Errorf("late results changed\n%s\ninto\n%s", before, after)
		}
	})
}

// TestSettleInOrder: each item of a batch sees what those before it did, the same endpoint twice
// included; over 500 items are several scripts.
func TestSettleInOrder(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		got, err := pool.Settle(t.Context(), []alloc.Settlement{
			{Endpoint: "a:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://a:1"},
			{Endpoint: "a:1", Record: []byte(`{}`), Action: alloc.Retire, Member: "http://a:1"},
			{Endpoint: "b:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://b:1"},
		}, alloc.SettlePolicy{Start: "max"})
		if want := "[{a:1 false admitted 0 0 max} {a:1 true none 0 0 } {b:1 false admitted 0 0 max}]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("settled %v, %v, want %s", got, err, want)
		}
		plant(t, store, pool, map[string]float64{"http://b:1": 1, "http://high:1": 9})
		got, err = pool.Settle(t.Context(), []alloc.Settlement{
			{Endpoint: "c:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://c:1"},
			{Endpoint: "b:1", Version: 1, Action: alloc.Retire, Member: "http://b:1"},
			{Endpoint: "a:1", Version: 1, Action: alloc.Retire, Member: "http://a:1"},
			{Endpoint: "c:1", Version: 1, Action: alloc.Retire, Member: "http://c:1"},
			{Endpoint: "d:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://d:1"},
		}, alloc.SettlePolicy{})
		if want := "[{c:1 false admitted 0 0 min} {b:1 false retired 1 0 } {a:1 false retired 0 0 } {c:1 false retired 0 0 } {d:1 false admitted 0 9 min}]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("settled %v, %v, want %s", got, err, want)
		}
		var many []alloc.Settlement
		for i := range 702 {
			endpoint := fmt.Sprintf("m%03d:1", i)
			many = append(many, alloc.Settlement{Endpoint: endpoint, Record: []byte(`{}`), Action: alloc.Admit, Member: "http://" + endpoint})
		}
		got, err = pool.Settle(t.Context(), many, alloc.SettlePolicy{})
		if err != nil || len(got) != 702 || got[701].Endpoint != "m701:1" || got[701].Change != alloc.ChangeAdmitted {
			t.Errorf("settled %d, %v", len(got), err)
		}
		if members, _, _, err := pool.Size(t.Context()); members != 704 || err != nil {
			t.Errorf("%d members, %v", members, err)
		}
	})
}

// TestSettleLowestFalls: one that comes back below all others is the lowest for those after it.
func TestSettleLowestFalls(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		plant(t, store, pool, map[string]float64{"http://back:1": 2, "http://m:1": 4})
		got, err := pool.Settle(t.Context(), []alloc.Settlement{
			{Endpoint: "back:1", Record: []byte(`{}`), Action: alloc.Retire, Member: "http://back:1"},
			{Endpoint: "a:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://a:1"},
			{Endpoint: "back:1", Version: 1, Action: alloc.Admit, Member: "http://back:1"},
			{Endpoint: "b:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://b:1"},
		}, alloc.SettlePolicy{Restore: "keep"})
		if want := "[{back:1 false retired 2 0 } {a:1 false admitted 0 4 min} {back:1 false admitted 2 2 keep} {b:1 false admitted 0 2 min}]"; err != nil || fmt.Sprint(got) != want {
			t.Errorf("settled %v, %v, want %s", got, err, want)
		}
	})
}

// TestMoveOntoAMember: where others put both URLs of one proxy into the set, one is left, with the
// larger count.
func TestMoveOntoAMember(t *testing.T) {
	for _, there := range []float64{3, 30} {
		withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
			plant(t, store, pool, map[string]float64{"http://a:1": 10, "socks5://a:1": there})
			got := settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "a:1", Action: alloc.Admit, Member: "socks5://a:1", Previous: "http://a:1"})
			want := int64(max(10, there))
			if got.Change != alloc.ChangeMoved || got.CountAfter != want || set(t, store, eligible(pool)) != fmt.Sprintf(`"socks5://a:1"=%d`, want) {
				t.Errorf("settled %+v, set %s, want moved with %d", got, set(t, store, eligible(pool)), want)
			}
		})
	}
}

// TestEmptiedMin: an emptied pool remembers the lowest count that it had when its last member went.
func TestEmptiedMin(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		plant(t, store, pool, map[string]float64{"http://a:1": 40, "http://b:1": 20})
		retire(t, pool, "b:1")
		retire(t, pool, "a:1")
		if meta, err := pool.Meta(t.Context()); meta["emptied_min"] != "40" || err != nil {
			t.Errorf("meta %v, %v", meta, err)
		}
		if got := admit(t, pool, alloc.SettlePolicy{}, "new:1"); got.CountAfter != 40 {
			t.Errorf("a newcomer: %+v, want 40", got)
		}
		if got := admit(t, pool, alloc.SettlePolicy{}, "b:1"); got.CountAfter != 40 || got.CountBefore != 20 {
			t.Errorf("one that comes back: %+v, want 40", got)
		}
	})
}

// TestSettleForgetsOldCounts: a retired count that is past its time goes when its endpoint is settled.
func TestSettleForgetsOldCounts(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		admit(t, pool, alloc.SettlePolicy{}, "a:1")
		retire(t, pool, "a:1")
		keep := func(after time.Duration) int64 {
			settle(t, pool, alloc.SettlePolicy{ForgetAfter: after}, alloc.Settlement{Endpoint: "a:1", Version: version(t, pool, "a:1"), Record: []byte(`{}`)})
			return store.Raw().HLen(t.Context(), pool.Keys()[1]).Val()
		}
		if n := keep(time.Hour); n != 1 {
			t.Errorf("%d counts remembered, want 1", n)
		}
		if n := keep(-time.Hour); n != 0 {
			t.Errorf("%d counts remembered, want 0", n)
		}
	})
}

// TestSettleRefusesWhatMakesNoSense: before anything is written.
func TestSettleRefusesWhatMakesNoSense(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		before := state(t, store, pool)
		good := alloc.Settlement{Endpoint: "a:1", Record: []byte(`{}`), Action: alloc.Admit, Member: "http://a:1"}
		tests := []struct {
			bad    alloc.Settlement
			policy alloc.SettlePolicy
		}{
			{alloc.Settlement{Record: []byte(`{}`)}, alloc.SettlePolicy{}},
			{alloc.Settlement{Endpoint: "b:1", Action: alloc.Admit}, alloc.SettlePolicy{}},
			{alloc.Settlement{Endpoint: "b:1", Action: alloc.Retire}, alloc.SettlePolicy{}},
			{alloc.Settlement{Endpoint: "b:1", Action: "kill"}, alloc.SettlePolicy{}},
			{good, alloc.SettlePolicy{Start: "keep"}},
			{good, alloc.SettlePolicy{Start: "-1"}},
			{good, alloc.SettlePolicy{Restore: "most"}},
		}
		for _, test := range tests {
			_, err := pool.Settle(t.Context(), []alloc.Settlement{good, test.bad}, test.policy)
			if err == nil || errors.Is(err, alloc.ErrUnavailable) || errors.Is(err, alloc.ErrOutcomeUnknown) {
				t.Errorf("%+v by %+v: %v, want a refusal", test.bad, test.policy, err)
			}
			if after := state(t, store, pool); after != before {
				t.Fatalf("%+v by %+v was refused, but changed\n%s\ninto\n%s", test.bad, test.policy, before, after)
			}
		}
	})
}
