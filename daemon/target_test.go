package daemon

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"evenpool/alloc/alloctest"
	"evenpool/probe"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// shop is a target. It writes down when it is asked, and by whom.
type shop struct {
	*httptest.Server
	mu     sync.Mutex
	closed bool // it answers 503
	hits   []time.Time
	direct int // of them, those that came without a proxy
}

func newShop(t *testing.T) *shop {
	s := &shop{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hits = append(s.hits, time.Now())
		if strings.HasPrefix(req.RemoteAddr, "127.0.0.1:") {
			s.direct++
		}
		if s.closed {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, "welcome to the shop")
	}))
	s.Listener.Close()
	var err error
	if s.Listener, err = net.Listen("tcp", "127.0.0.3:0"); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *shop) close(closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = closed
}

func (s *shop) counted() (hits, direct int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.hits), s.direct
}

// apart is the least time between two questions.
func (s *shop) apart() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	least := time.Hour
	for i, at := range s.hits {
		if i > 0 {
			least = min(least, at.Sub(s.hits[i-1]))
		}
	}
	return least
}

// yaml is the target in a configuration.
func (s *shop) yaml(every time.Duration) string {
	return fmt.Sprintf("targets: [{name: shop, url: %q, body: ^welcome, min_interval: %s, allow_addresses: [127.0.0.0/8]}]\n", s.URL+"/", every)
}

// TestTargetsAreSpaced: many proxies and two pools ask a target, each when it has shown
// all else; it is never asked sooner than its interval after it answered, control
// probes included, and nobody who fails before takes a turn. Who misses one comes back
// within the cycle.
func TestTargetsAreSpaced(t *testing.T) {
	const every = 100 * time.Millisecond
	s := newShop(t)
	other := alloctest.PoolName(t)
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 5}, {Behaviour: "fast-fails", Count: 30}}, store: alloctest.Redis,
		top: s.yaml(every),
		pool: "    eligibility: {schemes: [http], require: [http], require_targets: [shop]}\n  - name: " + other +
			"\n    probe: {schedule: \"@every 1h\", confirm_after: 0s}\n    eligibility: {schemes: [http], require: [http], require_targets: [shop]}\n"})
	first, pool := r.cycleAfter(nil), r.pool
	r.pool = other
	second := r.cycleAfter(nil)
	others := len(r.counts())
	r.pool = pool
	if len(r.counts()) != 5 || others != 5 || first.Failed != 30 || second.Failed != 30 {
		t.Errorf("%d and %d members, the cycles say %+v and %+v", len(r.counts()), others, first, second)
	}
	// Five proxies of two pools and, where the target was not known yet, one control.
	if hits, direct := s.counted(); hits != 11 || direct != 1 || s.apart() < every {
		t.Errorf("asked %d times, %d of them directly, at least %s apart", hits, direct, s.apart())
	}
	// Whom the target has served within an hour is not sent there again.
	if c := r.cycle(); c.Passed != 5 {
		t.Errorf("the next cycle says %+v", c)
	}
	if hits, _ := s.counted(); hits != 11 {
		t.Errorf("asked %d times", hits)
	}
}

// TestATargetsOutageIsNobodysFault: what fails there is held against a proxy only when
// the target answers us, before and after. In an outage one proxy finds out, and from
// then on controls ask alone.
func TestATargetsOutageIsNobodysFault(t *testing.T) {
	s := newShop(t)
	// The second one works for judges that are named localhost, and for nobody else.
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 3}, {Behaviour: "judge-only", Count: 1}}, store: alloctest.Redis, judges: twoJudges[:1],
		top:  s.yaml(100 * time.Millisecond),
		pool: "    eligibility: {schemes: [http], require: [http], require_targets: [shop], rise: 1, fall: 1}\n    guard: {max_retired: 100%, panic_above: 100%}\n"})
	r.cycleAfter(nil)
	bad := r.proxy("judge-only").URL
	if _, in := r.counts()[bad.String()]; in || len(r.counts()) != 3 {
		t.Fatalf("members %v", r.counts())
	}
	// Its failure counts when a control has shown that it is its own.
	r.await("the failure to be counted", func() bool {
		why, err := r.client.Why(t.Context(), r.pool, bad.Redacted())
		if err == nil && why.Fails == 0 {
			r.dueNow(bad.Endpoint.String())
			r.cycle()
		}
		return err == nil && why.Fails == 1
	})
	s.close(true)
	target := r.daemon.targets["shop"]
	hits, direct := s.counted()
	for range 4 {
		r.await("the target's turn", func() bool { return target.spacing.Next(target.every, time.Now()).Before(time.Now()) })
		r.forgetTarget(t)
		if c := r.cycle(); c.Failed+c.Retired+c.VoidSlices != 0 || len(r.counts()) != 3 {
			t.Errorf("the shop is closed: members %v, the cycle says %+v", r.counts(), c)
		}
	}
	now, nowDirect := s.counted()
	if proxied := now - hits - (nowDirect - direct); proxied > 1 || nowDirect == direct {
		t.Errorf("the shop is closed, and %d proxies were sent there, %d controls", proxied, nowDirect-direct)
	}
	s.close(false)
	r.await("all to have been there", func() bool {
		c := r.cycle()
		return c.Passed == 3
	})
	if len(r.counts()) != 3 || s.apart() < 100*time.Millisecond {
		t.Errorf("members %v, asked at least %s apart", r.counts(), s.apart())
	}
}

// TestATargetsTurns: after a failure the next turn is a control's, and nobody books one
// of a target that is known to be sick.
func TestATargetsTurns(t *testing.T) {
	s := newShop(t)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	shop := newTarget(probe.Target{Name: "shop", URL: u, Allow: proxyurl.Allow{mustPrefix("127.0.0.0/8")}}, 0)
	prober, log := probe.New(probe.Options{}), slog.New(slog.DiscardHandler)
	turn := func() bool {
		done := shop.turn()
		if done != nil {
			done()
		}
		return done != nil
	}
	books := func() bool {
		_, ok := shop.book(time.Now(), time.Now().Add(time.Minute))
		return ok
	}
	if turn() {
		t.Error("a proxy is sent before the first control")
	}
	shop.control(t.Context(), prober, log)
	for range 2 {
		if !turn() || !books() {
			t.Error("the target is well, and nobody is sent")
		}
	}
	for outcome, stands := range map[probe.Outcome]bool{probe.OK: true, probe.Cancelled: false, probe.LocalOverload: false, probe.JudgeAddress: false} {
		if got := shop.note("a", probe.Check{Outcome: outcome}); got != stands || !turn() {
			t.Errorf("%s stands: %v; or it ended turns", outcome, got)
		}
	}
	for outcome, counts := range map[probe.Outcome]probe.Outcome{probe.TargetFailed: probe.TargetFailed, probe.Timeout: probe.Timeout, probe.TLSIntercepted: probe.TargetFailed} {
		if shop.note("a", probe.Check{Outcome: outcome}) || turn() {
			t.Errorf("%s stands without a control, or ended no turns", outcome)
		}
		if _, proven := shop.failed("a"); proven {
			t.Errorf("%s is proven without a control", outcome)
		}
		shop.control(t.Context(), prober, log)
		if c, proven := shop.failed("a"); !proven || c.Outcome != counts || !turn() {
			t.Errorf("%s counts as %s: %v", outcome, c.Outcome, proven)
		}
		if _, again := shop.failed("a"); again {
			t.Errorf("%s counts twice", outcome)
		}
	}
	shop.note("a", probe.Check{Outcome: probe.TargetFailed})
	s.close(true)
	shop.control(t.Context(), prober, log)
	if _, proven := shop.failed("a"); proven || turn() || books() {
		t.Errorf("in an outage: proven %v, or somebody is sent", proven)
	}
	s.close(false)
	shop.control(t.Context(), prober, log)
	if _, proven := shop.failed("a"); proven || !turn() || !books() {
		t.Errorf("after an outage: proven %v, or nobody is sent", proven)
	}
}

// forgetTarget has the good ones be due for the target again, as after an hour.
func (r *rig) forgetTarget(t *testing.T) {
	t.Helper()
	p := r.daemon.pools[0]
	for member := range r.counts() {
		r.changeRecord(p, strings.TrimPrefix(member, "http://"), func(rec *probe.Record) { rec.Targets = nil })
	}
}

// TestGeoIPOfTheDaemon: exits are looked up in the configured file; when that changes
// while the daemon runs, members go by fall, and others come.
func TestGeoIPOfTheDaemon(t *testing.T) {
	places := func(first, second string) []byte {
		tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Example-Country", IncludeReservedNetworks: true, BuildEpoch: 1700000000})
		if err != nil {
			t.Fatal(err)
		}
		// The exits of the lab's first and second kind.
		for prefix, code := range map[string]string{"127.64.0.0/24": first, "127.64.1.0/24": second} {
			_, network, err := net.ParseCIDR(prefix)
			if err == nil {
				err = tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		var out strings.Builder
		if _, err := tree.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		return []byte(out.String())
	}
	var path string
	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: 1}, {Behaviour: "flaky", Count: 1}}, store: alloctest.Redis,
		files: func(r *rig) {
			path = filepath.Join(r.dir, "country.mmdb")
			put(t, path, places("DE", "FR"))
		},
		top:  "geoip: {country: DIR/country.mmdb}\n",
		pool: "    eligibility: {schemes: [http], require: [http], exit_countries: [DE], rise: 1, fall: 2}\n"})
	r.cycleAfter(nil)
	is := func(when, name string) {
		t.Helper()
		if _, in := r.counts()[r.proxy(name).URL.String()]; !in || len(r.counts()) != 1 {
			t.Errorf("%s: members %v", when, r.counts())
		}
	}
	is("at the start", "http")
	why, err := r.client.Why(t.Context(), r.pool, r.proxy("flaky").URL.Redacted())
	if err != nil || !strings.Contains(why.Text, "exit_countries (127.64.1.1 is in FR)") || why.Results[0].Outcome != string(probe.OK) {
		t.Errorf("why: %+v, %v", why, err)
	}
	// One that works and is elsewhere is asked again soon, however often it was.
	flaky := r.proxy("flaky").URL.Endpoint.String()
	r.changeRecord(r.daemon.pools[0], flaky, func(rec *probe.Record) { rec.Fails = 50 })
	r.dueNow(flaky)
	r.cycle()
	why, err = r.client.Why(t.Context(), r.pool, flaky)
	if due := time.Until(why.NextProbeAt); err != nil || why.Fails != 51 || due > maxWorkingSteps*time.Hour {
		t.Errorf("after %d failures due in %s, %v", why.Fails, due, err)
	}
	put(t, path, []byte("half a file"))
	r.cycle()
	is("with a file that is none", "http")
	put(t, path, places("FR", "DE"))
	r.dueNow(r.proxy("flaky").URL.Endpoint.String())
	if c := r.cycle(); c.Admitted != 1 || c.Failed != 1 || c.Retired != 0 {
		t.Errorf("they changed places: the cycle says %+v", c)
	}
	if c := r.cycle(); c.Retired != 1 {
		t.Errorf("the second failure: the cycle says %+v", c)
	}
	is("when they had changed places", "flaky")
}
