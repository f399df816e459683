package daemon

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestH6_DeadCandidatesBackOff(t *testing.T) {
	now := time.Unix(1e9, 0)
	base := dueInput{now: now, nextRun: now.Add(time.Minute), interval: 5 * time.Minute, rise: 2, confirmAfter: 5 * time.Second}
	for _, tc := range []struct {
		name               string
		member             bool
		passes, fails      int
		works              bool
		earliest, latest   time.Duration // after the next run
		withinTheSameCycle bool
	}{
		{name: "a member that passes", member: true, passes: 9},
		{name: "a member that fails is asked in each run", member: true, fails: 9},
		{name: "a newcomer is confirmed in the same cycle", passes: 1, withinTheSameCycle: true},
		{name: "not decided", passes: 0, fails: 0},
		{name: "first failure: the next run", fails: 1},
		{name: "second: the one after it", fails: 2, earliest: 5 * time.Minute, latest: 5 * time.Minute},
		{name: "third: within four", fails: 3, earliest: 10 * time.Minute, latest: 15 * time.Minute},
		{name: "sixth: within 32", fails: 6, earliest: 80 * time.Minute, latest: 155 * time.Minute},
		{name: "one that works and is too slow: within four", fails: 1000, works: true, earliest: 10 * time.Minute, latest: 15 * time.Minute},
		{name: "capped", fails: 1000, earliest: 80 * time.Minute, latest: 155 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := base
			in.member, in.passes, in.fails, in.works = tc.member, tc.passes, tc.fails, tc.works
			random := rand.New(rand.NewPCG(1, 2))
			for range 100 {
				got := nextProbe(in, random)
				if tc.withinTheSameCycle {
					if want := now.Add(5 * time.Second); !got.Equal(want) {
						t.Fatalf("got %v, want %v", got, want)
					}
					continue
				}
				if after := got.Sub(in.nextRun); after < tc.earliest || after > tc.latest || after%in.interval != 0 {
					t.Fatalf("%v after the next run, want %v to %v in whole steps", after, tc.earliest, tc.latest)
				}
			}
		})
	}
}

// Candidates of one run come at times of their own, within spread before it and never
// so early that the cycle before could still wait for them. Members come with the run.
func TestCandidatesOfOneRunAreSpread(t *testing.T) {
	now := time.Unix(1e9, 0)
	in := dueInput{now: now, nextRun: now.Add(time.Minute), interval: 5 * time.Minute, rise: 2, spread: 2 * time.Second}
	random := rand.New(rand.NewPCG(1, 2))
	for fails := range 3 {
		in.fails = fails
		run := in.nextRun.Add(time.Duration(max(0, fails-1)) * in.interval)
		seen := map[int64]bool{}
		for range 2000 {
			due := time.UnixMilli(nextProbe(in, random).UnixMilli()) // as it is stored
			if due.After(run) || !due.After(run.Add(-in.spread)) {
				t.Fatalf("%d failures: %v before the run, want less than %v", fails, run.Sub(due), in.spread)
			}
			seen[due.UnixMilli()] = true
		}
		if len(seen) < 1000 {
			t.Errorf("%d failures: 2,000 candidates at %d times", fails, len(seen))
		}
	}
	in.member = true
	if due := nextProbe(in, random); !due.Equal(in.nextRun) {
		t.Errorf("a member is due at %v", due)
	}
}
