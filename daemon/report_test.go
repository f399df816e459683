package daemon

import (
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/lab"
)

// TestAReportMakesProbingSooner: a worker says that a member failed; it is probed at once, all others
// are left alone, and what the probe finds counts, not what was said.
func TestAReportMakesProbingSooner(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 1}, {Behaviour: "http-password", Count: 4}, {Behaviour: "flaky", Count: 1}}, store: alloctest.Redis,
		pool: "    eligibility: {schemes: [http], require: [http], fall: 1}\n"})
	first := r.cycleAfter(nil)
	if first.Admitted != 6 {
		t.Fatalf("the first cycle says %+v", first)
	}
	if err := r.lab.SetFailing("flaky", true); err != nil {
		t.Fatal(err)
	}
	report := func(behaviour string, want api.Reported) {
		t.Helper()
		got, err := r.client.Report(t.Context(), "", api.Report{Proxy: r.proxy(behaviour).URL.String(), Outcome: api.ReportFailed})
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", behaviour, got, err, want)
		}
	}
	p := r.daemon.pools[0]
	cycleBeganLongAgo := func() *api.Cycle {
		p.mu.Lock()
		defer p.mu.Unlock()
		last := *p.last
		last.StartedAt = last.StartedAt.Add(-time.Hour)
		p.last = &last
		return p.last
	}
	// A cycle began a moment ago: it waits for the next one.
	report("flaky", api.Reported{Member: true, ProbeDue: true})
	if n := len(r.counts()); n != 6 {
		t.Errorf("%d members after a report, want all 6", n)
	}
	before := cycleBeganLongAgo()
	report("http", api.Reported{Member: true, ProbeDue: true})
	second := r.cycleAfter(before)
	if second.ProbedMembers != 2 || second.Passed != 1 || second.Failed != 1 || second.Retired != 1 {
		t.Errorf("the cycle says %+v, want the two reported alone, and the one that failed out", second)
	}
	// Of one that is out nothing is kept.
	report("flaky", api.Reported{})
	why, err := r.client.Why(t.Context(), "", r.proxy("http").URL.String())
	if err != nil || why.State != api.StateMember || why.Reports == nil || why.Reports.Failed != 1 {
		t.Errorf("%+v, %v", why.Reports, err)
	}
	// Within a minute it is not brought forward again, and no cycle begins for it.
	cycleBeganLongAgo()
	report("http", api.Reported{Member: true})
	if p.running.Load() {
		t.Error("a cycle was begun")
	}
}

// TestStatusTellsEvenness: the status has the counts of all members, and not anew for each request.
func TestStatusTellsEvenness(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 4}}, store: alloctest.Redis,
		pool: "    eligibility: {schemes: [http], require: [http]}\n"})
	r.cycleAfter(nil)
	r.allocate(6)
	at := time.Time{}
	r.await("the counts are told", func() bool {
		e := r.poolStatus().Counts
		at = e.CountedAt
		return e.Lowest == 1 && e.Highest == 2 && e.Spread == 1 && e.Mean == 1.5 && e.Gini > 0.1 && e.Gini < 0.2
	})
	r.daemon.pools[0].evenness.until = time.Now().Add(time.Hour)
	if again := r.poolStatus().Counts; !again.CountedAt.Equal(at) {
		t.Errorf("counted again at %s", again.CountedAt)
	}
}
