package daemon

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// The whole way: a list, probes, verdicts, members, and why the others are none.
func TestTheLabIsJudgedRightly(t *testing.T) {
	for _, store := range []struct {
		name string
		open func(testing.TB) alloc.Options
	}{{"redis", alloctest.Redis}, {"embedded", alloctest.Embedded}} {
		t.Run(store.name, func(t *testing.T) {
			r := newRig(t, rigOptions{store: store.open})
			cycle := r.cycleAfter(nil)
			members := r.counts()
			r.judgedRightly(members)
			if cycle.Admitted != len(members) || cycle.Error != "" || cycle.Passed != 2*len(members) {
				t.Errorf("the cycle says %+v, with %d members", cycle, len(members))
			}
			// Ten allocations go round the members, lowest count first, ties by bytes.
			sorted := slices.Sorted(func(yield func(string) bool) {
				for _, p := range r.lab.Proxies() {
					if p.Truth.Eligible && !yield(memberURL(p).String()) {
						return
					}
				}
			})
			for i := range 10 {
				got, err := r.client.Allocate(t.Context(), r.pool)
				if err != nil {
					t.Fatal(err)
				}
				if want := sorted[i%len(sorted)]; *got.Proxy != want || got.Count != int64(i/len(sorted)+1) {
					t.Errorf("allocation %d: %s with count %d, want %s", i, *got.Proxy, got.Count, want)
				}
			}
			// A member passes on, and nobody is admitted or retired anew.
			if again := r.cycle(); again.ProbedMembers != len(members) || again.Admitted+again.Retired+again.Held != 0 {
				t.Errorf("the next cycle says %+v", again)
			}
		})
	}
}

// judgedRightly compares what became of the lab's proxies with what it says of them.
func (r *rig) judgedRightly(members map[string]int64) {
	r.t.Helper()
	for _, p := range r.lab.Proxies() {
		_, in := members[memberURL(p).Redacted()]
		if in != p.Truth.Eligible {
			r.t.Errorf("%s: member %v, want %v", p.Name, in, p.Truth.Eligible)
		}
		why, err := r.client.Why(r.t.Context(), r.pool, p.URL.Redacted())
		if err != nil {
			r.t.Fatal(err)
		}
		if len(why.Results) == 0 || !slices.ContainsFunc(why.Results, func(res api.Result) bool { return res.Outcome == p.Truth.Outcome }) {
			r.t.Errorf("%s: results %+v, want one with %s", p.Name, why.Results, p.Truth.Outcome)
		}
		if in != (why.State == api.StateMember) {
			r.t.Errorf("%s: why says %s, members say %v", p.Name, why.State, in)
		}
	}
}

// memberURL is the URL under which a proxy of the lab becomes a member: the first
// of the schemes asked for that passes, and who speaks SOCKS 4A speaks SOCKS 4.
func memberURL(p lab.Proxy) proxyurl.URL {
	if p.URL.Scheme == proxyurl.SOCKS4A {
		p.URL.Scheme = proxyurl.SOCKS4
	}
	return p.URL
}

var fourGood = []lab.Spec{{Behaviour: "http", Count: 3}, {Behaviour: "flaky", Count: 1}}

// A member fails, is retired, comes back, and its count follows the restore policy.
func TestRestorePolicies(t *testing.T) {
	for _, tc := range []struct {
		policy string
		want   func(kept int64, pool []int64) int64 // pool is sorted
	}{
		{"7", func(int64, []int64) int64 { return 7 }},
		{"zero", func(int64, []int64) int64 { return 0 }},
		{"min", func(_ int64, pool []int64) int64 { return pool[0] }},
		{"median", func(_ int64, pool []int64) int64 { return pool[(len(pool)-1)/2] }},
		{"max", func(_ int64, pool []int64) int64 { return pool[len(pool)-1] }},
		{"keep", func(kept int64, _ []int64) int64 { return kept }},
		{"floor", func(kept int64, pool []int64) int64 { return max(kept, pool[0]) }},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, rigOptions{population: fourGood, store: alloctest.Redis, pool: fmt.Sprintf(`
    eligibility: {schemes: [http], rise: 1, fall: 1}
    allocation: {restore: %q}
`, tc.policy)})
			r.cycleAfter(nil)
			flaky := r.proxy("flaky").URL.String()
			r.allocate(6)
			kept := r.counts()[flaky]
			if kept == 0 {
				t.Fatalf("the flaky one was never allocated: %v", r.counts())
			}
			r.lab.SetFailing("flaky", true)
			if c := r.cycle(); c.Retired != 1 {
				t.Fatalf("the cycle says %+v, want one retired", c)
			}
			if _, in := r.counts()[flaky]; in {
				t.Fatal("a retired proxy is a member")
			}
			r.allocate(11)
			pool := slices.Sorted(maps.Values(r.counts()))
			r.lab.SetFailing("flaky", false)
			// A failed candidate backs off; its time is brought forward by hand here.
			r.dueNow(r.proxy("flaky").URL.Endpoint.String())
			if c := r.cycle(); c.Admitted != 1 {
				t.Fatalf("the cycle says %+v, want one admitted", c)
			}
			if got, want := r.counts()[flaky], tc.want(kept, pool); got != want {
				t.Errorf("it came back with count %d, want %d (it had %d, the pool %v)", got, want, kept, pool)
			}
		})
	}
}

func (r *rig) allocate(n int) {
	r.t.Helper()
	if _, err := r.client.AllocateMany(r.t.Context(), r.pool, n); err != nil {
		r.t.Fatal(err)
	}
}

// dueNow makes an endpoint due, as its next scheduled time would.
func (r *rig) dueNow(endpoint string) {
	r.t.Helper()
	store, err := alloc.Open(r.storeOptions)
	if err != nil {
		r.t.Fatal(err)
	}
	defer store.Close()
	known, err := store.Pool(r.pool).Look(r.t.Context(), endpoint)
	if err != nil {
		r.t.Fatal(err)
	}
	settled, err := store.Pool(r.pool).Settle(r.t.Context(), []alloc.Settlement{{
		Endpoint: endpoint, Version: known.Version, Due: time.Now(), Action: alloc.Keep}}, alloc.SettlePolicy{})
	if err != nil || settled[0].Stale {
		r.t.Fatalf("bring %s forward: %+v, %v", endpoint, settled, err)
	}
}

// Pools used to be emptied by the outage of the one judge they asked.
func TestH3_AVoidSliceDecidesNothing(t *testing.T) {
	r := newRig(t, rigOptions{population: fourGood, store: alloctest.Redis, pool: "    eligibility: {schemes: [http], fall: 1}\n"})
	r.cycleAfter(nil)
	if n := len(r.counts()); n != 4 {
		t.Fatalf("%d members, want 4", n)
	}
	r.sick.Store(true)
	r.lab.SetFailing("flaky", true)
	for range 3 {
		if c := r.cycle(); c.VoidSlices == 0 || c.Retired+c.Held+c.Failed != 0 {
			t.Fatalf("the cycle says %+v, want it void", c)
		}
	}
	status := r.poolStatus()
	if status.Members != 4 || status.Guard.State != api.GuardVoid || status.Guard.Why == "" || status.Judges[0].Well {
		t.Errorf("status: %d members, guard %+v, judges %+v", status.Members, status.Guard, status.Judges)
	}
	r.sick.Store(false)
	if c := r.cycle(); c.Retired != 1 || c.Passed != 3 {
		t.Errorf("the judge is back, the cycle says %+v", c)
	}
	if state := r.poolStatus().Guard.State; state != api.GuardNormal {
		t.Errorf("the guard is %s", state)
	}
}

func TestH1_ACycleRetiresWithinItsBudget(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 10}}, store: alloctest.Redis,
		pool: "    eligibility: {schemes: [http], fall: 1}\n    guard: {panic_above: 100%}\n"})
	r.cycleAfter(nil)
	for _, p := range r.lab.Proxies() {
		r.lab.SetFailing(p.Name, true)
	}
	for _, want := range []struct{ retired, held, members int }{{2, 8, 8}, {1, 7, 7}, {1, 6, 6}} {
		if c := r.cycle(); c.Retired != want.retired || c.Held != want.held || len(r.counts()) != want.members {
			t.Fatalf("the cycle says %+v with %d members, want %+v", c, len(r.counts()), want)
		}
	}
	if guard := r.poolStatus().Guard; guard.State != api.GuardHeld || guard.Why == "" {
		t.Errorf("guard: %+v", guard)
	}
}

func TestH2_MassFailureFreezesThePool(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 10}}, store: alloctest.Redis,
		pool: "    eligibility: {schemes: [http], fall: 1}\n"})
	r.cycleAfter(nil)
	for _, p := range r.lab.Proxies()[:6] {
		r.lab.SetFailing(p.Name, true)
	}
	if c := r.cycle(); c.Retired != 0 || c.Held != 6 {
		t.Fatalf("the cycle says %+v, want all held", c)
	}
	frozen := r.poolStatus().Guard
	if frozen.State != api.GuardFrozen {
		t.Fatalf("guard: %+v", frozen)
	}
	// A restart does not prolong it.
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.cycle()
	if now := r.poolStatus().Guard; now.State != api.GuardFrozen || !now.Since.Equal(frozen.Since.Truncate(time.Millisecond)) {
		t.Errorf("guard: %+v, want it since %v", now, frozen.Since)
	}
}

// One pass of two, a restart, and the second pass admits: streaks are in the store.
func TestH5_ARestartForgetsNoStreak(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "flaky", Count: 1}}, store: alloctest.Redis,
		confirmAfter: "10m", pool: "    eligibility: {schemes: [http], rise: 2}\n"})
	flaky := r.proxy("flaky").URL
	r.await("the first pass", func() bool {
		why, err := r.client.Why(t.Context(), r.pool, flaky.Redacted())
		return err == nil && why.Passes == 1
	})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.dueNow(flaky.Endpoint.String())
	r.start()
	r.await("the second pass", func() bool { return len(r.counts()) == 1 })
}

// A second cycle is not begun while one is under way.
func TestS1_CyclesDoNotOverlap(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "silent", Count: 1}}, store: alloctest.Redis})
	var busy *api.Error
	r.await("a cycle under way to be noticed", func() bool { return errors.As(r.client.ProbeNow(t.Context(), r.pool), &busy) })
	if busy.Code != api.CodeBusy {
		t.Errorf("got %v, want busy", busy)
	}
}

// What one list opens is not open to another.
func TestL1_AllowAddressesOpensForOneListAlone(t *testing.T) {
	r := newRig(t, rigOptions{population: fourGood, store: alloctest.Redis})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.yaml = strings.Replace(r.yaml, "allow_addresses: [127.0.0.0/8]}\npools", "allow_addresses: [127.0.0.1/32]}\npools", 1)
	r.write("list.txt", "http://127.0.0.2:8080\nhttp://10.0.0.1:80\nhttp://localhost.localdomain:80\n"+r.proxy("flaky").URL.String()+"\n")
	r.start()
	r.await("the list to be read", func() bool { return r.poolStatus().Sources[0].Rejects["loopback"] == 1 })
	if s := r.poolStatus().Sources[0]; s.Candidates != 2 || s.Rejects["private"] != 1 {
		t.Errorf("the source says %+v", s)
	}
}

// FLUSHALL: workers are told that the pool is lost, and it is built again by
// probing.
func TestR8_ALostPoolIsBuiltAgain(t *testing.T) {
	server := alloctest.NewServer(t)
	r := newRig(t, rigOptions{population: fourGood, pool: "    eligibility: {schemes: [http]}\n",
		store: func(testing.TB) alloc.Options { return alloc.Options{URL: server.URL} }})
	r.cycleAfter(nil)
	r.allocate(8)
	flush := exec.Command("redis-cli", "-s", server.Socket, "FLUSHALL")
	if out, err := flush.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var lost *api.Error
	if _, err := r.client.Allocate(t.Context(), r.pool); !errors.As(err, &lost) || lost.Code != api.CodePoolLost || lost.RetryAfter <= 0 {
		t.Errorf("got %v, want pool_lost and when to ask again", err)
	}
	r.await("the pool to be built again", func() bool { return len(r.counts()) == 4 })
	if got, err := r.client.Allocate(t.Context(), r.pool); err != nil || got.Proxy == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Whatever a daemon starts ends with it.
func TestNothingOutlivesTheDaemon(t *testing.T) {
	r := newRig(t, rigOptions{population: fourGood, store: alloctest.Embedded, pool: "    eligibility: {schemes: [http]}\n"})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	before := goleak.IgnoreCurrent()
	r.start()
	r.await("members", func() bool { return len(r.counts()) == 4 })
	r.client.Close()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}

// What others put into the set and is no proxy used to have the lowest count and
// be handed out for ever.
func TestMembersThatAreNoProxiesAreTakenOut(t *testing.T) {
	server := alloctest.NewServer(t)
	r := newRig(t, rigOptions{population: fourGood, pool: "    eligibility: {schemes: [http]}\n",
		store: func(testing.TB) alloc.Options { return alloc.Options{URL: server.URL} }})
	r.cycleAfter(nil)
	r.allocate(8)
	planted := exec.Command("redis-cli", "-s", server.Socket, "ZADD", "evenpool:{"+r.pool+"}:eligible",
		"0", "not a url", "0", "http://1.2.3.4:080", "0", "HTTP://1.2.3.4:80")
	if out, err := planted.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.cycle()
	if counts := r.counts(); len(counts) != 4 {
		t.Errorf("members: %v", counts)
	}
}

// A client that has sent all and closes its half of the connection is answered;
// it used to be told that the store was away.
func TestAHalfClosedClientIsAnswered(t *testing.T) {
	r := newRig(t, rigOptions{population: fourGood, store: alloctest.Redis, pool: "    eligibility: {schemes: [http]}\n"})
	r.cycleAfter(nil)
	for range 200 {
		conn, err := net.Dial("unix", r.client.Socket)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/allocate HTTP/1.1\r\nHost: evenpool\r\n\r\n")
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
			t.Fatalf("%v: %s", err, answer)
		}
		conn.Close()
	}
}
