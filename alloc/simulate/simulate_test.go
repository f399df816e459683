package simulate

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
)

// lists is the churn of public lists, for some hours of it.
func lists(hours int) Churn {
	return Churn{Members: 200, HourSurvival: 0.15, Returning: 0.5, Away: time.Hour, Every: 15 * time.Second, Length: time.Duration(hours) * time.Hour, Seed: 1}
}

// small has few members, who come and go for two hours.
func small(survival float64) Churn {
	return Churn{Members: 5, HourSurvival: survival, Returning: 0.7, Away: 10 * time.Minute, Every: time.Minute, Length: 2 * time.Hour, Seed: 7}
}

func mustHistory(t *testing.T, c Churn) History {
	t.Helper()
	h, err := c.History()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTheSameSeedGivesTheSame(t *testing.T) {
	c := small(0.15)
	h := mustHistory(t, c)
	o := Options{Rate: 1, Window: time.Minute}
	run := func() []Result {
		results, err := Run(t.Context(), h, Policies(), o)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	if again := mustHistory(t, c); !reflect.DeepEqual(h, again) {
		t.Error("one seed gives two histories")
	}
	if a, b := run(), run(); !reflect.DeepEqual(a, b) {
		t.Errorf("one history gives\n%+v\nand\n%+v", a, b)
	}
	c.Seed++
	if other := mustHistory(t, c); reflect.DeepEqual(h, other) {
		t.Error("two seeds give one history")
	}
}

// What the simulation is for: a proxy that starts at zero takes everything until it has caught up.
func TestZeroFloodsAndFloorDoesNot(t *testing.T) {
	results, err := Run(t.Context(), mustHistory(t, lists(1)), Policies(), Options{Rate: 50, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		t.Logf("start %s, restore %s: share %.4f, in a row %d, spread %d, Gini %.4f", r.Start, r.Restore, r.LargestShare, r.LongestRun, r.MaxSpread, r.MaxGini)
		floods := r.Start == "zero" || r.Restore == "zero" || r.Restore == "keep"
		switch {
		case r.Allocations != 3600*50 || r.Unserved != 0:
			t.Errorf("%d allocations, %d without a member", r.Allocations, r.Unserved)
		case floods && (r.LongestRun < 100 || r.LargestShare < 0.1 || r.MaxSpread < 100):
			t.Error("that is no flood")
		case !floods && (r.LongestRun > 1 || r.LargestShare > 1.5/200 || r.MaxSpread > 1):
			t.Error("that is a flood")
		}
	}
}

// Most allocations are worked out. When the real script makes them all, everything is the same.
func TestWhatIsWorkedOutIsWhatTheScriptsDo(t *testing.T) {
	policies := append(Policies(), Policy{"40", "3"}, Policy{"max", "max"})
	for _, survival := range []float64{0.15, 0.9} {
		h := mustHistory(t, small(survival))
		// 7 a minute and two thirds of one: the windows and the steps do not fall together.
		o := Options{Rate: 0.1279, Window: 7 * time.Minute, checked: 1}
		some, err := Run(t.Context(), h, policies, o)
		if err != nil {
			t.Fatal(err)
		}
		o.checked = 1 << 30
		all, err := Run(t.Context(), h, policies, o)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(some, all) {
			t.Errorf("worked out:\n%+v\nby the script:\n%+v", some, all)
		}
	}
}

// No allocation is lost or doubled: by the pool's own events, what each member gained while it was
// one is what was allocated.
func TestCountsAddUpToTheAllocations(t *testing.T) {
	h := mustHistory(t, small(0.01))
	h.Steps = append(h.Steps, emptied(h))
	for _, policy := range Policies() {
		p := played(t, h, policy)
		gained := int64(0)
		members, err := p.pool.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range members {
			gained += m.Count
		}
		events, err := p.pool.Events(t.Context(), 100_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Change == alloc.ChangeRetired {
				gained += e.Before
			} else {
				gained -= e.After
			}
		}
		r := p.look.result()
		if gained != r.Allocations || r.Allocations+r.Unserved != 7200 || r.Allocations == 0 || r.Unserved == 0 {
			t.Errorf("%v: the counts grew by %d, there were %d allocations, and %d requests found nobody", policy, gained, r.Allocations, r.Unserved)
		}
	}
}

// emptied takes out whoever is left a minute before the end.
func emptied(h History) Step {
	is := map[string]bool{}
	for _, name := range h.Members {
		is[name] = true
	}
	for _, step := range h.Steps {
		for _, c := range step.Changes {
			is[c.Proxy] = c.Joins
		}
	}
	step := Step{At: h.Length - time.Minute}
	for _, name := range h.names() {
		if is[name] {
			step.Changes = append(step.Changes, Change{Proxy: name})
		}
	}
	return step
}

// played plays a history at one allocation a second.
func played(t *testing.T, h History, policy Policy) *player {
	t.Helper()
	p, err := newPlayer(h, policy, Options{Rate: 1, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.scratch.Close() })
	if err := p.play(t.Context(), h, 1); err != nil {
		t.Fatal(err)
	}
	return p
}

// A pool's own events give the history that it had.
func TestEventsGiveTheHistoryBack(t *testing.T) {
	want := mustHistory(t, small(0.15))
	p := played(t, want, Policy{"min", "floor"})
	members, err := p.pool.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := p.pool.Events(t.Context(), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	// Those that were there at the beginning came a moment earlier.
	events = events[:len(events)-len(want.Members)]
	got, err := FromEvents(members, events, dayOne, dayOne.Add(want.Length), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want.Members)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestEventsOfManyHands(t *testing.T) {
	at := func(minute int) time.Time { return dayOne.Add(time.Duration(minute) * time.Minute) }
	members := []alloc.Allocation{{Member: "socks5://a"}, {Member: "http://adopted"}, {Member: "http://b"}}
	newestFirst := []alloc.Event{
		{At: at(50), Change: alloc.ChangeAdmitted, Endpoint: "b", Member: "http://b"},
		{At: at(40), Change: alloc.ChangeMoved, Endpoint: "a", Member: "socks5://a", Previous: "http://a"},
		{At: at(31), Change: alloc.ChangeRetired, Endpoint: "b", Member: "http://b"},
		{At: at(30), Change: alloc.ChangeRetired, Endpoint: "b", Member: "http://b"}, // somebody put it back by hand in between
		{At: at(12), Change: alloc.ChangeAdmitted, Endpoint: "a", Member: "http://a"},
		{At: at(11), Change: alloc.ChangeRetired, Endpoint: "a", Member: "http://a"},
		{At: at(-1), Change: alloc.ChangeAdmitted, Endpoint: "old", Member: "http://old"},
	}
	got, err := FromEvents(members, newestFirst, dayOne, at(60), 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := History{
		Members: []string{"a", "b", "http://adopted"},
		Steps: []Step{
			{15 * time.Minute, []Change{{"a", false}, {"a", true}}},
			{30 * time.Minute, []Change{{"b", false}}},
			{50 * time.Minute, []Change{{"b", true}}},
		},
		Length: time.Hour,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if _, err := FromEvents(members, newestFirst[6:], dayOne, at(60), 5*time.Minute); err == nil || err.Error() != "nobody came or went" {
		t.Errorf("without events: %v", err)
	}
}

// A count that the allocations do not explain ends the simulation.
func TestAnotherAnswerIsAnError(t *testing.T) {
	h := mustHistory(t, small(1))
	p, err := newPlayer(h, Policy{"min", "floor"}, Options{Rate: 1, Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer p.scratch.Close()
	if err := p.play(t.Context(), h, 1); err != nil {
		t.Fatal(err)
	}
	last := p.queue[len(p.queue)-1]
	tampered := []alloc.Allocation{{Member: p.names[last.rank], Count: last.count - 1000}}
	if err := p.scratch.SetCounts(t.Context(), p.pool, tampered); err != nil {
		t.Fatal(err)
	}
	if err := p.compare(t.Context()); err == nil || !strings.Contains(err.Error(), "the set is not what the allocations have made of it") {
		t.Errorf("the set: %v", err)
	}
	if err := p.allocate(t.Context(), 1); err == nil || !strings.Contains(err.Error(), " is next") {
		t.Errorf("an answer: %v", err)
	}
	if err := p.settle(t.Context(), []Change{{Proxy: p.names[last.rank]}}); err == nil || !strings.Contains(err.Error(), "the history or the script is wrong") {
		t.Errorf("a retired count: %v", err)
	}
}

func TestWhatCannotBeSimulated(t *testing.T) {
	h := mustHistory(t, small(0.5))
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{Rate: 0, Window: time.Minute}, "a rate of 0 allocations a second: want more than 0"},
		{Options{Rate: 1e9, Window: time.Minute}, "7200000000000 allocations: want at most 1000000000; lower the rate, or shorten the time"},
		{Options{Rate: 0.01, Window: time.Minute}, "a window of 1m0s has less than one allocation: raise the rate, or lengthen the window"},
		{Options{Rate: 1, Window: 3 * time.Hour}, "a window of 3h0m0s is longer than the whole time, 2h0m0s"},
	} {
		if _, err := Run(t.Context(), h, Policies(), tc.o); err == nil || err.Error() != tc.want {
			t.Errorf("%+v: %v, want %s", tc.o, err, tc.want)
		}
	}
	for _, tc := range []struct {
		change func(*Churn)
		want   string
	}{
		{func(c *Churn) { c.Members = 0 }, "0 members: want 1 to 2000"},
		{func(c *Churn) { c.HourSurvival = 0 }, "an hour's survival of 0: want a share more than 0 and up to 1, such as 0.15"},
		{func(c *Churn) { c.Returning = 1.5 }, "a share of 1.5 that comes back: want 0 to 1"},
		{func(c *Churn) { c.Away = -1 }, "-1ns away: want no less than 0"},
		{func(c *Churn) { c.Every = 3 * time.Hour }, "settled every 3h0m0s: want 1s to the whole time, 2h0m0s"},
		{func(c *Churn) { c.Every, c.Length = time.Second, 48*time.Hour }, "settled every 1s for 48h0m0s: that is more than 100000 times"},
	} {
		c := small(0.5)
		tc.change(&c)
		if _, err := c.History(); err == nil || err.Error() != tc.want {
			t.Errorf("%+v: %v, want %s", c, err, tc.want)
		}
	}
}

// A simulation that is called off ends, with what it was called off for.
func TestASimulationEndsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, mustHistory(t, small(0.5)), Policies(), Options{Rate: 1, Window: time.Minute}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// Worked out by hand: c comes with 0 to a and b at 2, and takes two in a row.
func TestWhatIsMeasured(t *testing.T) {
	h := History{
		Members: []string{"a", "b"},
		Steps:   []Step{{At: 4 * time.Second, Changes: []Change{{"c", true}}}},
		Length:  13 * time.Second,
	}
	results, err := Run(t.Context(), h, []Policy{{"zero", "floor"}}, Options{Rate: 1, Window: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	want := Result{
		Policy: Policy{"zero", "floor"}, Allocations: 13, LargestShare: 0.5, LongestRun: 2,
		MaxSpread: 2, MeanSpread: 2.0 / 3, MaxGini: 1.0 / 12, MeanGini: 1.0 / 36,
		OverTime: []Point{
			{Share: 0.5, Run: 1},                            // a b a b: 2 2
			{Share: 0.5, Run: 2, Spread: 2, Gini: 1.0 / 12}, // c c a b: 3 3 2
			{Share: 0.5, Run: 1},                            // c a b c: 4 4 4
		},
		PointWindows: 1, // and one allocation behind them
	}
	if !reflect.DeepEqual(results[0], want) {
		t.Errorf("got\n%+v\nwant\n%+v", results[0], want)
	}
	fewer := Fewer([]Point{{Run: 1}, {Run: 3}, {Spread: 2}, {Share: 1}, {Run: 2}}, 3)
	if !slices.Equal(fewer, []Point{{Run: 3}, {Spread: 2, Share: 1}, {Run: 2}}) {
		t.Errorf("fewer points: %+v", fewer)
	}
}
