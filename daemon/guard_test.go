package daemon

import (
	"testing"
	"time"

	"evenpool/daemon/api"
	"evenpool/daemon/config"
)

var testGuard = config.Guard{MaxRetired: 20, PanicAbove: 50, MaxFreeze: 15 * time.Minute}

func TestH1_BudgetOfACycle(t *testing.T) {
	for _, tc := range []struct {
		name         string
		members, due int
		budget       int
		state        string
	}{
		{"all of a hundred fail", 100, 100, 20, api.GuardHeld},
		{"within the budget", 100, 20, 20, api.GuardNormal},
		{"one over", 100, 21, 20, api.GuardHeld},
		{"a small pool loses one at the most", 3, 3, 1, api.GuardHeld},
		{"the only member", 1, 1, 1, api.GuardNormal},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := guard(testGuard, guardInput{members: tc.members, due: tc.due, now: time.Unix(1e9, 0)})
			if d.budget != tc.budget || d.state != tc.state || (d.why == "") != (d.state == api.GuardNormal) {
				t.Errorf("got %+v, want budget %d, state %s", d, tc.budget, tc.state)
			}
		})
	}
}

func TestH2_MassFailureFreezesForATime(t *testing.T) {
	now := time.Unix(1e9, 0)
	for _, tc := range []struct {
		name  string
		in    guardInput
		state string
		since time.Time
	}{
		{"half is no mass", guardInput{members: 100, good: 100, failing: 50, due: 50}, api.GuardHeld, time.Time{}},
		{"more than half", guardInput{members: 100, good: 100, failing: 51, due: 51}, api.GuardFrozen, now},
		{"four members are too few to tell", guardInput{members: 4, good: 4, failing: 4, due: 4}, api.GuardHeld, time.Time{}},
		{"five are not", guardInput{members: 5, good: 5, failing: 5, due: 5}, api.GuardFrozen, now},
		{"a freeze goes on from when it began", guardInput{members: 100, good: 100, failing: 100, due: 100,
			frozenSince: now.Add(-14 * time.Minute)}, api.GuardFrozen, now.Add(-14 * time.Minute)},
		{"it ends, and does not begin anew", guardInput{members: 100, good: 100, failing: 100, due: 100,
			frozenSince: now.Add(-15 * time.Minute)}, api.GuardHeld, now.Add(-15 * time.Minute)},
		{"it is over when they pass again", guardInput{members: 100, good: 100, failing: 3, due: 3,
			frozenSince: now.Add(-5 * time.Minute)}, api.GuardNormal, time.Time{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.in.now = now
			d := guard(testGuard, tc.in)
			if d.state != tc.state || !d.frozenSince.Equal(tc.since) {
				t.Errorf("got %+v, want %s since %v", d, tc.state, tc.since)
			}
			if d.state == api.GuardFrozen && d.budget != 0 {
				t.Errorf("frozen with a budget of %d", d.budget)
			}
		})
	}
}
