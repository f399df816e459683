package daemon

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// What the operator has barred is not offered and, where it is known already, not
// asked; it is looked at again within a few runs.
func TestWhatRulesBarIsNeitherOfferedNorAsked(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "    max_candidates: 4")
	b.write("banned.txt", "1.2.3.4\n")
	b.config = strings.Replace(b.config, "require: [http]}", fmt.Sprintf(
		"require: [http], banned_file: %s/banned.txt, networks: [1.0.0.0/8, 5.0.0.0/8], not_networks: [1.9.0.0/16], ports: [80, 8000-8999]}", b.dir), 1)
	b.Close()
	b.open()
	list := []string{"1.2.3.4:80", "1.2.3.4:8080", "9.2.3.4:80", "1.9.3.4:80", "1.2.3.5:81", "1.2.3.6:80", "5.2.3.6:8999"}
	b.write("list.txt", strings.Join(list, "\n")+"\n")
	s := b.fetch("list").status()
	// What is barred takes no room: there is some for four.
	if want := (api.Counts{"banned": 2, "networks": 1, "not_networks": 1, "ports": 1}); fmt.Sprint(s.Refused) != fmt.Sprint(want) || s.Candidates != 2 || b.known() != 2 {
		t.Errorf("the source says %+v, %d are known", s, b.known())
	}
	p := b.pools[0]
	var offers []alloc.Offer // as another host might, or as it was under other rules
	for _, endpoint := range append(list, "someone.example.org:81") {
		offers = append(offers, alloc.Offer{Endpoint: endpoint, Record: []byte(`{"c":["http"],"f":["list"]}`)})
	}
	offers = append(offers, alloc.Offer{Endpoint: "1.2.3.7:80", Record: []byte(`{"c":["socks5"]}`)})
	if _, err := p.store.Offer(t.Context(), offers, time.Now()); err != nil {
		t.Fatal(err)
	}
	dialled := b.cycleNow()
	if slices.Sort(dialled); !slices.Equal(dialled, []string{"1.2.3.6:80", "5.2.3.6:8999"}) || p.last.ProbedCandidates != 2 {
		t.Errorf("dialled %v, the cycle says %+v", dialled, p.last)
	}
	for _, endpoint := range []string{"1.2.3.4:80", "9.2.3.4:80", "someone.example.org:81", "1.2.3.7:80"} {
		known, err := p.store.Look(t.Context(), endpoint)
		if due := time.Until(known.Due); err != nil || due < 50*time.Minute || due > barredSteps*time.Hour {
			t.Errorf("%s is due in %s, %v", endpoint, due, err)
		}
	}
}

// A list of banned proxies that changes while the daemon runs: members go with the
// next cycle, without a probe, whatever the guard says, and come back when the ban is
// lifted. A list that is not sound changes nothing.
func TestBansComeAndGoWhileItRuns(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 4}, {Behaviour: "flaky", Count: 1}, {Behaviour: "silent", Count: 1}}, store: alloctest.Redis,
		files: func(r *rig) { r.write("banned.txt", "# nobody\n") },
		pool:  "    eligibility: {schemes: [http], require: [http], banned_file: DIR/banned.txt, fall: 9}\n    guard: {max_retired: 0%}\n"})
	r.cycleAfter(nil)
	if n := len(r.counts()); n != 5 {
		t.Fatalf("%d members", n)
	}
	for _, step := range []struct {
		text             string
		members, retired int
	}{
		{"127.16.0.0/16 # all of them\n" + r.proxy("silent").URL.Endpoint.String() + "\n", 1, 4},
		{"what is this\n", 1, 0},
		{"127.0.0.1\n", 0, 1},
	} {
		r.write("banned.txt", step.text)
		if c := r.cycle(); c.Retired != step.retired || len(r.counts()) != step.members || c.ProbedMembers != step.members || c.Failed != 0 || c.ProbedCandidates != 0 {
			t.Errorf("after %q: %d members, the cycle says %+v", step.text, len(r.counts()), c)
		}
	}
	why, err := r.client.Why(t.Context(), r.pool, r.proxy("flaky").URL.Redacted())
	if err != nil || why.State != api.StateRetired || !strings.Contains(why.Text, "banned (127.0.0.1 is banned)") {
		t.Errorf("why: %+v, %v", why, err)
	}
	r.write("banned.txt", "")
	r.dueNow(r.proxy("flaky").URL.Endpoint.String())
	if c := r.cycle(); c.Admitted != 1 || len(r.counts()) != 1 {
		t.Errorf("the ban is lifted: %v, the cycle says %+v", r.counts(), c)
	}
}

// A name is no way around a rule about addresses, for candidates and for members.
func TestANameThatLeadsWhereRulesDoNotWant(t *testing.T) {
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 1}, {Behaviour: "flaky", Count: 1}}, store: alloctest.Redis,
		files: func(r *rig) { r.write("banned.txt", "") },
		list: func(r *rig) string {
			return fmt.Sprintf("http://proxy.example.org:%d\n", r.proxy("http").URL.Endpoint.Port())
		},
		pool: "    eligibility: {schemes: [http], require: [http], banned_file: DIR/banned.txt, fall: 9}\n    guard: {max_retired: 0%}\n"})
	r.cycleAfter(nil)
	if n := len(r.counts()); n != 1 {
		t.Fatalf("%d members", n)
	}
	r.write("banned.txt", "127.0.0.0/8\n")
	if c := r.cycle(); c.Retired != 1 || c.Outcomes["excluded"] != 1 || len(r.counts()) != 0 {
		t.Errorf("%v, the cycle says %+v", r.counts(), c)
	}
	endpoint := fmt.Sprintf("proxy.example.org:%d", r.proxy("http").URL.Endpoint.Port())
	r.dueNow(endpoint)
	if c := r.cycle(); c.Admitted != 0 || c.Outcomes["excluded"] != 1 {
		t.Errorf("as a candidate: the cycle says %+v", c)
	}
	if why, err := r.client.Why(t.Context(), r.pool, endpoint); err != nil || why.Results[0].Detail != "banned: 127.0.0.0/8 is banned" {
		t.Errorf("why: %+v, %v", why, err)
	}
}

// turncoat is a real proxy for plain requests that puts a script into every answer
// when it is told to.
type turncoat struct {
	*httptest.Server
	evil atomic.Bool
	hits atomic.Int64
}

func newTurncoat(t *testing.T) *turncoat {
	c := &turncoat{}
	out := &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 77, 0, 1)}}).DialContext}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.hits.Add(1)
		resp, err := out.RoundTrip(req)
		if err != nil {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		if c.evil.Load() {
			body = append(body, "<script>alert(1)</script>"...)
		}
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *turncoat) url(t *testing.T) proxyurl.URL {
	u, err := proxyurl.ParseURL(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestH8_FreezingSparesLivenessNeverSafety: who tampers goes out of a frozen pool, and
// is not back before its quarantine is over: not through a restart, not by being put
// back into the set by others, and it is not even asked.
func TestH8_FreezingSparesLivenessNeverSafety(t *testing.T) {
	c := newTurncoat(t)
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 9}}, store: alloctest.Redis,
		list: func(r *rig) string { return r.lab.ListText() + c.URL + "\n" },
		pool: "    eligibility: {schemes: [http], require: [http], fall: 1, quarantine: 3h}\n"})
	r.cycleAfter(nil)
	if n := len(r.counts()); n != 10 {
		t.Fatalf("%d members", n)
	}
	for _, p := range r.lab.Proxies()[:6] {
		r.lab.SetFailing(p.Name, true)
	}
	c.evil.Store(true)
	if cycle := r.cycle(); cycle.Retired != 1 || cycle.Held != 6 || cycle.Outcomes["tampered"] != 1 {
		t.Fatalf("the cycle says %+v", cycle)
	}
	out := func(when string) {
		t.Helper()
		if _, in := r.counts()[c.url(t).String()]; in || r.poolStatus().Guard.State != api.GuardFrozen {
			t.Errorf("%s: members %v, guard %+v", when, r.counts(), r.poolStatus().Guard)
		}
	}
	out("frozen")
	why, err := r.client.Why(t.Context(), r.pool, c.url(t).Endpoint.String())
	if left := time.Until(why.NextProbeAt); err != nil || left < 170*time.Minute || left > 180*time.Minute || !strings.Contains(why.Text, "quarantine") {
		t.Errorf("why: %+v, %v", why, err)
	}
	c.evil.Store(false)
	hits := c.hits.Load()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.dueNow(c.url(t).Endpoint.String())
	r.cycle()
	out("after a restart")
	// A worker that undoes an allocation late puts a member back, with ZINCRBY.
	r.plant(c.url(t).String())
	if cycle := r.cycle(); cycle.Retired != 1 {
		t.Errorf("put back by others: the cycle says %+v", cycle)
	}
	if why := r.lastReason(); !strings.HasPrefix(why, "quarantine: until ") {
		t.Errorf("put back by others: retired for %q", why)
	}
	out("put back by others")
	if n := c.hits.Load() - hits; n != 0 {
		t.Errorf("it was asked %d times in quarantine", n)
	}
}

// lastReason is that of the newest event.
func (r *rig) lastReason() string {
	r.t.Helper()
	store, err := alloc.Open(r.storeOptions)
	if err != nil {
		r.t.Fatal(err)
	}
	defer store.Close()
	events, err := store.Pool(r.pool).Events(r.t.Context(), 1)
	if err != nil || len(events) != 1 {
		r.t.Fatalf("events: %+v, %v", events, err)
	}
	return events[0].Reason
}

// plant puts a member into the pool's set, as others may.
func (r *rig) plant(member string) {
	r.t.Helper()
	store, err := alloc.Open(r.storeOptions)
	if err != nil {
		r.t.Fatal(err)
	}
	defer store.Close()
	settled, err := store.Pool(r.pool).Settle(r.t.Context(), []alloc.Settlement{{Endpoint: "nobody", Action: alloc.Admit, Member: member}}, alloc.SettlePolicy{})
	if err != nil || settled[0].Change != alloc.ChangeAdmitted {
		r.t.Fatalf("plant %s: %+v, %v", member, settled, err)
	}
}

// A retired proxy that others have put back into the set used to stay in it, with the
// lowest count, until its time came to be asked as a candidate; and then still.
func TestWhatOthersPutBackIsAskedAndRetired(t *testing.T) {
	r := newRig(t, rigOptions{population: fourGood, store: alloctest.Redis, pool: "    eligibility: {schemes: [http], require: [http], fall: 1}\n"})
	r.cycleAfter(nil)
	r.lab.SetFailing("flaky", true)
	if c := r.cycle(); c.Retired != 1 {
		t.Fatalf("the cycle says %+v", c)
	}
	r.plant(r.proxy("flaky").URL.String())
	if c := r.cycle(); c.Retired != 1 || len(r.counts()) != 3 {
		t.Errorf("%v, the cycle says %+v", r.counts(), c)
	}
}

// A proxy that broke a rule of safety and that no list names any more used to be
// forgotten, and when it was named again it was as good as new.
func TestQuarantineOutlivesForgetting(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "    allocation: {forget_after: 0s}")
	offender, other := mustEndpoint(t, "1.2.3.4:80"), mustEndpoint(t, "1.2.3.5:80")
	both := offender.String() + "\n" + other.String() + "\n"
	b.write("list.txt", both)
	b.ago(100*time.Hour, func() { b.fetch("list") })
	offended := time.Now().Add(-23 * time.Hour)
	b.record(offender, func(r *probe.Record) { r.Offended = offended })
	b.write("list.txt", "")
	b.pools[0].unoffered.Store(false)
	b.cycleNow()
	if !b.knows(offender.String()) || b.knows(other.String()) {
		t.Fatalf("the offender is known: %v, another: %v", b.knows(offender.String()), b.knows(other.String()))
	}
	b.write("list.txt", both)
	b.fetch("list")
	if dialled := b.cycleNow(); !slices.Equal(dialled, []string{other.String()}) {
		t.Errorf("named again: dialled %v", dialled)
	}
	known, err := b.pools[0].store.Look(t.Context(), offender.String())
	if until := offended.Add(24 * time.Hour); err != nil || known.Due.Sub(until).Abs() > time.Millisecond {
		t.Errorf("it is due at %v, %v; the quarantine ends at %v", known.Due, err, until)
	}
	// When it is over, it is forgotten like everybody.
	b.record(offender, func(r *probe.Record) { r.Offended = time.Now().Add(-25 * time.Hour) })
	b.write("list.txt", "")
	b.ago(-100*time.Hour, func() {
		if gone, err := b.pools[0].forget(t.Context(), time.Now(), time.Now().Add(100*time.Hour), 10); err != nil || gone != 2 {
			t.Errorf("%d were forgotten, %v", gone, err)
		}
	})
}

// All files that cannot be used are named at once, each with its key.
func TestFilesThatCannotBeUsed(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	b.write("empty", "")
	b.write("bad.txt", "1.2.3.4:80\nwhat is this\n")
	b.config = strings.NewReplacer(
		"redis: ", fmt.Sprintf("geoip: {country: %[1]s/none, asn: %[1]s/empty}\nredis: ", b.dir),
		"allow_addresses: [127.0.0.0/8]}]", fmt.Sprintf("key_file: %s/empty}]", b.dir),
		"require: [http]}", fmt.Sprintf("require: [http], banned_file: %s/bad.txt}", b.dir),
		"concurrency: 16}", fmt.Sprintf("concurrency: 16, proxy_ca_file: %s/none}", b.dir),
	).Replace(b.config)
	b.Close()
	cfg, _, err := config.Parse("bare.yaml", []byte(b.config), config.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Options{Config: cfg})
	want := strings.ReplaceAll(`bare.yaml: geoip.country: "DIR/none": no such file or directory
bare.yaml: geoip.asn: "DIR/empty": not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked
bare.yaml: judges[0].key_file: "DIR/empty": is empty; copy it from where it is in use, or remove it and make one with: evenpool judge --new-key DIR/empty
bare.yaml: pools[0].probe.proxy_ca_file: "DIR/none": no such file or directory
bare.yaml: pools[0].eligibility.banned_file: "DIR/bad.txt": line 2: "what is this": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`, "DIR", b.dir)
	place := regexp.MustCompile(`(?m)^bare\.yaml:\d+:\d+: `) // it varies with the directory's name
	if files, ok := err.(config.Errors); !ok || place.ReplaceAllString(files.Error(), "bare.yaml: ") != want {
		t.Errorf("got %v", err)
	}
}
