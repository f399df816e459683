package daemon

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/lab"
)

var twoJudges = []string{"localhost", "127.0.0.2"}

// TestH3_WhenJudgesDieOrLieInMidSlice: the judges change with the first question that
// comes through a proxy, and with them perhaps a member. Nobody is held responsible for
// what a judge did.
func TestH3_WhenJudgesDieOrLieInMidSlice(t *testing.T) {
	for _, test := range []struct {
		name                          string
		first, second                 mood
		fails                         bool // a member does, too
		void                          bool
		passed, failed, retired, held int
	}{
		{name: "only a member fails", fails: true, passed: 4, failed: 1, retired: 1},
		{name: "both die", first: isDead, second: isDead, void: true},
		{name: "both die and a member fails", first: isDead, second: isDead, fails: true, void: true},
		{name: "the first dies", first: isDead},
		{name: "the first dies and a member fails", first: isDead, fails: true},
		{name: "the second dies", second: isDead, passed: 5},
		{name: "the first lies", first: tellsLies},
		{name: "the second lies", second: tellsLies, passed: 5},
		{name: "the first has another key for proxies", first: forges},
		{name: "the second has another key for proxies", second: forges, passed: 5},
		{name: "both have another key for proxies", first: forges, second: forges, failed: 5, retired: 5},
		// What proxies suffer and controls do not looks like their fault: the guard is left.
		{name: "both lie", first: tellsLies, second: tellsLies, failed: 5, held: 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 4}, {Behaviour: "flaky", Count: 1}}, store: alloctest.Redis, judges: twoJudges,
				pool: "    eligibility: {schemes: [http], require: [http], fall: 1}\n"})
			r.cycleAfter(nil)
			if n := len(r.counts()); n != 5 {
				t.Fatalf("%d members", n)
			}
			change := sync.OnceFunc(func() { // for which all questions wait
				r.judges[0].set(test.first)
				r.judges[1].set(test.second)
			})
			r.judges[0].turns.Store(&change)
			if test.fails {
				if err := r.lab.SetFailing("flaky", true); err != nil {
					t.Fatal(err)
				}
			}
			c := r.cycle()
			want := api.Cycle{Passed: test.passed, Failed: test.failed, Retired: test.retired, Held: test.held}
			got := api.Cycle{Passed: c.Passed, Failed: c.Failed, Retired: c.Retired, Held: c.Held}
			if fmt.Sprint(got) != fmt.Sprint(want) || (c.VoidSlices > 0) != test.void || len(r.counts()) != 5-test.retired {
				t.Errorf("%d members, the cycle says %+v", len(r.counts()), c)
			}
			// When they are well again, so is everybody.
			r.judges[0].turns.Store(nil)
			r.judges[0].set(tellsTruth)
			r.judges[1].set(tellsTruth)
			if err := r.lab.SetFailing("flaky", false); err != nil {
				t.Fatal(err)
			}
			if c := r.cycle(); c.Passed != 5-test.retired || c.Failed != 0 || len(r.counts()) != 5-test.retired {
				t.Errorf("afterwards: %d members, the cycle says %+v", len(r.counts()), c)
			}
		})
	}
}

// TestMinJudges: where a pool has two judges, both have to be content before a proxy
// comes in; a member is asked by one.
func TestMinJudges(t *testing.T) {
	population := []lab.Spec{{Behaviour: "http", Count: 2}, {Behaviour: "judge-only", Count: 1}}
	for _, test := range []struct {
		setting string
		members int
	}{{"", 2}, {"min_judges: 1, ", 3}} {
		r := newRig(t, rigOptions{population: population, store: alloctest.Redis, judges: twoJudges,
			pool: "    eligibility: {" + test.setting + "schemes: [http], require: [http], anonymity: elite}\n"})
		r.cycleAfter(nil)
		if n := len(r.counts()); n != test.members {
			t.Errorf("with %q: %v", test.setting, r.counts())
		}
		if test.setting != "" {
			continue
		}
		// With one judge out, members stay.
		r.judges[1].set(isDead)
		if c := r.cycle(); c.Passed != 2 || c.Retired+c.Admitted+c.Failed+c.VoidSlices != 0 {
			t.Errorf("one judge is out: the cycle says %+v", c)
		}
	}
}

// TestMinJudgesWithOneOut: a candidate whom the only judge that is left likes is not
// decided upon.
func TestMinJudgesWithOneOut(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 1}}, store: alloctest.Redis, judges: twoJudges,
		files: func(r *rig) { r.judges[1].set(isDead) }, pool: "    eligibility: {schemes: [http], require: [http]}\n"})
	if c := r.cycleAfter(nil); c.Outcomes["too_few_judges"] != 1 || c.Inconclusive != 1 || c.Admitted+c.Failed+c.VoidSlices != 0 {
		t.Errorf("the cycle says %+v", c)
	}
	r.judges[1].set(tellsTruth)
	r.dueNow(r.proxy("http").URL.Endpoint.String())
	if c := r.cycle(); c.Admitted != 1 {
		t.Errorf("both are there: the cycle says %+v", c)
	}
}

// TestP6_JudgesAreAskedDirectlyByControlsAlone: over several cycles with everything
// that a lab has, the judges count as many questions without a proxy as there were
// control probes. Verdicts are as the lab says; answers were signed, so anonymity is
// verified.
func TestP6_JudgesAreAskedDirectlyByControlsAlone(t *testing.T) {
	all, err := lab.Mix("each", 0)
	if err != nil {
		t.Fatal(err)
	}
	needs := map[lab.Behaviour][]string{}
	for _, k := range lab.Kinds() {
		needs[k.Behaviour] = k.Needs
	}
	population := slices.DeleteFunc(all, func(s lab.Spec) bool {
		// The second judge has an address for a name, and judges and list are on IPv4 here.
		return slices.Contains(needs[s.Behaviour], lab.NeedName) || slices.Contains(needs[s.Behaviour], lab.NeedIPv6)
	})
	r := newRig(t, rigOptions{population: population, store: alloctest.Redis, judges: twoJudges,
		pool: "    eligibility: {schemes: [http, https, socks4, socks4a, socks5]}\n"})
	r.cycleAfter(nil)
	for range 3 {
		for _, p := range r.lab.Proxies()[:len(r.lab.Proxies())/4] {
			r.dueNow(p.URL.Endpoint.String())
		}
		r.cycle()
	}
	r.judgedRightly(r.counts())
	controls := r.daemon.pools[0].controlled.Load()
	for i, j := range r.judges {
		// Each is asked for http and for tls.
		if got := j.DirectHits(); got != j.direct.Load() || got*int64(len(r.judges)) != controls || got == 0 {
			t.Errorf("judge %d was asked directly %d times of %d, in %d control probes of both", i, got, j.Hits(), controls)
		}
	}
}

// TestH4_AnOverloadedHostLosesNoMember: a host that has no time for its probes, until
// all their time limits are over, holds nothing against anybody.
func TestH4_AnOverloadedHostLosesNoMember(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "slow-first-byte", Count: 12}}, store: alloctest.Redis, judges: twoJudges[:1],
		pool: "    eligibility: {schemes: [http], require: [http], fall: 1}\n    guard: {max_retired: 100%, panic_above: 100%}\n"})
	r.cycleAfter(nil)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.yaml = strings.Replace(r.yaml, "timeout: 4s", "timeout: 1s", 1)
	r.start()
	before := r.cycle()
	if before.Passed != 12 {
		t.Fatalf("the cycle says %+v", before)
	}
	controls := r.judges[0].direct.Load()
	r.await("a cycle to begin", func() bool { return r.client.ProbeNow(t.Context(), r.pool) == nil })
	r.await("the control", func() bool { return r.judges[0].direct.Load() > controls })
	time.Sleep(100 * time.Millisecond) // the proxies take four times as long to answer
	// More to compute than there are cores, so that whoever is ready waits for a second.
	var hogs sync.WaitGroup
	until := time.Now().Add(1500 * time.Millisecond)
	for range 100 * runtime.GOMAXPROCS(0) {
		hogs.Go(func() {
			for time.Now().Before(until) {
			}
		})
	}
	hogs.Wait() // until then nobody is answered in time
	c := r.cycleAfter(before)
	t.Logf("the cycle says %+v", c)
	if c.Failed+c.Retired > 0 || len(r.counts()) != 12 {
		t.Errorf("%d members", len(r.counts()))
	}
	if c := r.cycle(); c.Passed != 12 {
		t.Errorf("afterwards the cycle says %+v", c)
	}
}
