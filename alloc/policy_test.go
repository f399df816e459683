package alloc_test

import (
	"fmt"
	"testing"
	"time"

	"evenpool/alloc"
)

func TestParsePolicies(t *testing.T) {
	tests := []struct{ text, start, restore string }{
		{"0", "0", "0"},
		{"17", "17", "17"},
		{"007", "7", "7"},
		{"4503599627370496", "4503599627370496", "4503599627370496"},
		{"min", "min", "min"},
		{"median", "median", "median"},
		{"max", "max", "max"},
		{"zero", "zero", "zero"},
		{"keep", `"keep" is no start policy; write a whole number, min, median, max or zero`, "keep"},
		{"floor", `"floor" is no start policy; write a whole number, min, median, max or zero`, "floor"},
		{"4503599627370497", "4503599627370497 is too large a count; write a whole number up to 4503599627370496",
			"4503599627370497 is too large a count; write a whole number up to 4503599627370496"},
		{"99999999999999999999", "99999999999999999999 is too large a count; write a whole number up to 4503599627370496",
			"99999999999999999999 is too large a count; write a whole number up to 4503599627370496"},
		{"-1", `"-1" is no start policy; write a whole number, min, median, max or zero`,
			`"-1" is no restore policy; write a whole number, floor, keep, min, median, max or zero`},
		{"", `"" is no start policy; write a whole number, min, median, max or zero`,
			`"" is no restore policy; write a whole number, floor, keep, min, median, max or zero`},
		{"1.5", `"1.5" is no start policy; write a whole number, min, median, max or zero`,
			`"1.5" is no restore policy; write a whole number, floor, keep, min, median, max or zero`},
		{"Min", `"Min" is no start policy; write a whole number, min, median, max or zero`,
			`"Min" is no restore policy; write a whole number, floor, keep, min, median, max or zero`},
	}
	said := func(policy alloc.Policy, err error) string {
		if err != nil {
			return err.Error()
		}
		return string(policy)
	}
	for _, test := range tests {
		if got := said(alloc.ParseStart(test.text)); got != test.start {
			t.Errorf("start %q: %s, want %s", test.text, got, test.start)
		}
		if got := said(alloc.ParseRestore(test.text)); got != test.restore {
			t.Errorf("restore %q: %s, want %s", test.text, got, test.restore)
		}
	}
}

// TestStartPolicies: the count of a newcomer, from the set as it is.
func TestStartPolicies(t *testing.T) {
	pools := []struct {
		name    string
		members map[string]float64
		emptied string // meta's emptied_min
		want    map[string]int64
	}{
		{"new pool", nil, "", map[string]int64{"min": 0, "median": 0, "max": 0, "zero": 0, "7": 7}},
		{"emptied pool", nil, "30", map[string]int64{"min": 30, "median": 30, "max": 30, "zero": 0, "7": 7}},
		{"one", map[string]float64{"http://m:1": 5}, "30", map[string]int64{"min": 5, "median": 5, "max": 5}},
		{"even", map[string]float64{"http://m:1": 5, "http://m:2": 8, "http://m:3": 9, "http://m:4": 20}, "", map[string]int64{"min": 5, "median": 8, "max": 20, "zero": 0, "7": 7}},
		{"odd", map[string]float64{"http://m:1": 5, "http://m:2": 8, "http://m:3": 20}, "", map[string]int64{"min": 5, "median": 8, "max": 20}},
		{"large", map[string]float64{"http://m:1": 1 << 52}, "", map[string]int64{"min": 1 << 52, "max": 1 << 52}},
		{"unsound", map[string]float64{"http://m:1": -7, "http://m:2": 8.5, "http://m:3": 1 << 60}, "", map[string]int64{"min": 0, "median": 8, "max": 1 << 52}},
	}
	for _, in := range pools {
		for policy, want := range in.want {
			t.Run(in.name+" "+policy, func(t *testing.T) {
				withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
					plant(t, store, pool, in.members)
					if in.emptied != "" {
						store.Raw().HSet(t.Context(), pool.Keys()[6], "emptied_min", in.emptied)
					}
					got := admit(t, pool, alloc.SettlePolicy{Start: alloc.Policy(policy), Restore: "zero"}, "new:1")
					if got.Change != alloc.ChangeAdmitted || got.CountAfter != want || got.CountBefore != 0 || got.Policy != policy {
						t.Errorf("settled %+v, want admitted at %d", got, want)
					}
					if count, found, err := pool.Score(t.Context(), "http://new:1"); count != want || !found || err != nil {
						t.Errorf("count %d, %v, %v, want %d", count, found, err, want)
					}
				})
			})
		}
	}
}

// TestRestorePolicies: the count of one that comes back, while it is remembered, and after that.
func TestRestorePolicies(t *testing.T) {
	tests := []struct {
		policy       string
		own          float64 // its count when it was retired
		others       []float64
		want         int64
		remembered   bool
		wantedPolicy string
	}{
		{"floor", 10, []float64{4, 6, 30}, 10, true, "floor"},
		{"floor", 2, []float64{4, 6, 30}, 4, true, "floor"},
		{"keep", 10, []float64{4, 6, 30}, 10, true, "keep"},
		{"keep", 2, []float64{4, 6, 30}, 2, true, "keep"},
		{"zero", 10, []float64{4, 6, 30}, 0, true, "zero"},
		{"min", 10, []float64{4, 6, 30}, 4, true, "min"},
		{"median", 10, []float64{4, 6, 30}, 6, true, "median"},
		{"max", 10, []float64{4, 6, 30}, 30, true, "max"},
		{"99", 10, []float64{4, 6, 30}, 99, true, "99"},
		{"keep", 10, []float64{4, 6, 30}, 55, false, "55"}, // forgotten: the start policy
		{"floor", 10, nil, 10, true, "floor"},              // it emptied the pool itself
		{"min", 10, nil, 10, true, "min"},                  // emptying is no amnesty
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s own %v others %v remembered %v", test.policy, test.own, test.others, test.remembered), func(t *testing.T) {
			for _, kind := range []string{"redis", "embedded"} {
				t.Run(kind, func(t *testing.T) {
					now := start
					store, pool := poolAt(t, kind, &now)
					counts := map[string]float64{"http://own:1": test.own}
					for i, count := range test.others {
						counts[fmt.Sprintf("http://other:%d", i)] = count
					}
					plant(t, store, pool, counts)
					got := settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "own:1", Record: []byte(`{}`), Action: alloc.Retire, Member: "http://own:1"})
					if got.Change != alloc.ChangeRetired || got.CountBefore != int64(test.own) {
						t.Fatalf("settled %+v, want retired at %v", got, test.own)
					}
					now = now.Add(time.Hour - time.Millisecond)
					if !test.remembered {
						now = now.Add(time.Millisecond)
					}
					got = admit(t, pool, alloc.SettlePolicy{Start: "55", Restore: alloc.Policy(test.policy), ForgetAfter: time.Hour}, "own:1")
					if got.Change != alloc.ChangeAdmitted || got.CountAfter != test.want || got.Policy != test.wantedPolicy {
						t.Errorf("settled %+v, want admitted at %d by %s", got, test.want, test.wantedPolicy)
					}
					if test.remembered != (got.CountBefore == int64(test.own)) {
						t.Errorf("count before %d, remembered: %v", got.CountBefore, test.remembered)
					}
					if n := store.Raw().HLen(t.Context(), pool.Keys()[1]).Val(); n != 0 {
						t.Errorf("%d retired counts are left", n)
					}
				})
			}
		})
	}
}
