package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

func mustPrefix(text string) netip.Prefix { return netip.MustParsePrefix(text) }

const oneFile = `  - {name: list, url: "file://%[1]s/list.txt", scheme: http}`

// countDialled holds what a cycle dialled against L4.
func countDialled(t *testing.T, dialled []string) (byNetwork map[string]int) {
	t.Helper()
	addrs, networks, twice := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, hostport := range dialled {
		if twice[hostport] {
			t.Errorf("%s was dialled twice", hostport)
		}
		twice[hostport] = true
		ap := netip.MustParseAddrPort(hostport)
		addrs[ap.Addr().String()]++
		bits := 24
		if ap.Addr().Is6() {
			bits = 48
		}
		p, _ := ap.Addr().Prefix(bits)
		networks[p.String()]++
	}
	for addr, n := range addrs {
		if n > sources.MaxPerAddress {
			t.Errorf("%d candidates of %s", n, addr)
		}
	}
	for network, n := range networks {
		if n > sources.MaxPerNetwork {
			t.Errorf("%d candidates of %s", n, network)
		}
	}
	return networks
}

// Whatever stands in the store, from other hosts and earlier lists, one cycle asks
// little of one address and one network. What it does not ask has its turn in a
// later one, and is not claimed again and again until then.
func TestL4_ACycleAsksLittleOfOneVictim(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	p := b.pools[0]
	var offers []alloc.Offer
	add := func(form string, args ...any) {
		offers = append(offers, alloc.Offer{Endpoint: fmt.Sprintf(form, args...), Record: []byte(`{"c":["http"],"f":["list"]}`)})
	}
	for i := range 250 {
		add("1.2.3.%d:8080", i)
		add("[2606:4700::%x]:8080", i+1)
		add("9.%d.9.9:8080", i)
	}
	for i := range 40 {
		add("5.6.7.8:%d", 8000+i)
	}
	if _, err := p.store.Offer(t.Context(), offers, time.Now()); err != nil {
		t.Fatal(err)
	}
	every := map[string]int{}
	first := 0
	for cycle := range 12 {
		began := time.Now()
		dialled := b.cycleNow()
		networks := countDialled(t, dialled)
		if cycle == 0 {
			first = len(dialled)
			if networks["1.2.3.0/24"] != 64 || networks["2606:4700::/48"] != 64 || networks["5.6.7.0/24"] != 4 || first != 64+64+4+250 {
				t.Errorf("the first cycle dialled %d: %v", first, networks)
			}
			if want := len(offers) - first; p.last.PutOff != want || p.last.ProbedCandidates != first {
				t.Errorf("the cycle says %d put off and %d probed, want %d and %d", p.last.PutOff, p.last.ProbedCandidates, want, first)
			}
			// Each turn is an hour later than the one before.
			for turn, want := range []int{0, 64 + 64 + 4, 2 * (64 + 64 + 4), 2*250 - 2*64 + 3*4} {
				due := dueBefore(t, p, began.Add(time.Duration(turn)*time.Hour+time.Minute), "1.2.3.", "[2606:4700::", "5.6.7.8:")
				// Those that were asked and have failed are due with the next run, too.
				asked := min(turn, 1) * (64 + 64 + 4)
				if due != want+asked {
					t.Errorf("%d are due within %d hours, want %d", due, turn, want+asked)
				}
			}
		}
		for _, hostport := range dialled {
			every[hostport]++
		}
		if len(every) == len(offers) {
			t.Logf("all had their turn within %d cycles", cycle+1)
			return
		}
		anHourLater(t, p)
	}
	t.Errorf("%d of %d had their turn", len(every), len(offers))
}

// dueBefore counts endpoints with one of the beginnings that are due by a time.
func dueBefore(t *testing.T, p *pool, at time.Time, beginnings ...string) (n int) {
	t.Helper()
	for _, endpoint := range allKnown(t, p) {
		for _, beginning := range beginnings {
			if !strings.HasPrefix(endpoint, beginning) {
				continue
			}
			known, err := p.store.Look(t.Context(), endpoint)
			if err != nil {
				t.Fatal(err)
			}
			if known.Due.Before(at) {
				n++
			}
		}
	}
	return n
}

func allKnown(t *testing.T, p *pool) (endpoints []string) {
	t.Helper()
	for {
		page, err := p.store.Unnamed(t.Context(), time.Now().Add(time.Hour), len(endpoints), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return endpoints
		}
		for _, u := range page {
			endpoints = append(endpoints, u.Endpoint)
		}
	}
}

// anHourLater brings everything forward by an hour.
func anHourLater(t *testing.T, p *pool) {
	t.Helper()
	var batch []alloc.Settlement
	for _, endpoint := range allKnown(t, p) {
		known, err := p.store.Look(t.Context(), endpoint)
		if err != nil {
			t.Fatal(err)
		}
		batch = append(batch, alloc.Settlement{Endpoint: endpoint, Version: known.Version, Due: known.Due.Add(-time.Hour), Action: alloc.Keep})
	}
	if _, err := p.store.Settle(t.Context(), batch, p.settle); err != nil {
		t.Fatal(err)
	}
}

// What two lists name of one network is cut to what one may, said for each, and is
// offered at the next day's order.
func TestL4_WhatIsCutIsSaid(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "1.2.3.%d:8080\n9.9.9.9:%d\n%d.9.8.7:80\n", i, 8000+i, 11+i)
	}
	text.WriteString("8.8.8.8:25\n")
	b.write("list.txt", text.String())
	s := b.fetch("list").status()
	if s.Candidates != 64+4+100 || s.Refused[sources.FloodAddress] != 96 || s.Refused[sources.FloodNetwork] != 36 || s.Refused["port-25"] != 1 {
		t.Errorf("the source says %+v", s)
	}
	if n := b.known(); n != 64+4+100 {
		t.Errorf("%d are known", n)
	}
	countDialled(t, b.cycleNow())
}

// What was counted and then not asked, for want of time, has its place still.
func TestL4_WhatIsNotAskedDoesNotCount(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "")
	p := b.pools[0]
	var offers []alloc.Offer
	for i := range 100 {
		offers = append(offers, alloc.Offer{Endpoint: fmt.Sprintf("1.2.3.%d:80", i), Record: []byte(`{}`)})
	}
	offers = append(offers, alloc.Offer{Endpoint: "a.example.org:80", Record: []byte(`{}`)})
	if _, err := p.store.Offer(t.Context(), offers, time.Now()); err != nil {
		t.Fatal(err)
	}
	claimed, err := p.store.Claim(t.Context(), time.Now(), time.Now().Add(time.Minute), 200)
	if err != nil || len(claimed) != 101 {
		t.Fatal(len(claimed), err)
	}
	c := &cycle{pool: p, next: p.nextRun(), probeUntil: p.nextRun(), newcomers: map[string]bool{}}
	left := c.items(claimed)
	for round := range 3 {
		if left, err = c.putOffFloods(t.Context(), left); err != nil || len(left) != 65 || c.report.PutOff != 36 {
			t.Fatalf("round %d: %d are left, %d put off, %v", round, len(left), c.report.PutOff, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.probe(ended, left, probe.Plan{})
	}
}

// A thousand names may be one victim: what they resolve to is counted where it is
// dialled, once for each candidate, however often that is asked.
func TestL4_NamesCountForTheirAddresses(t *testing.T) {
	c := &cycle{pool: &pool{rules: probe.Rules{NotNetworks: []netip.Prefix{mustPrefix("7.7.7.0/24")}}}}
	ask := func(it *item, addrs ...string) (admitted int) {
		ctx := c.admitting(t.Context(), it, proxyurl.Allow{mustPrefix("9.9.9.0/24")})
		admit, ok := ctx.Value(admitKey{}).(func(netip.Addr) error)
		for _, addr := range addrs {
			if ok && admit(netip.MustParseAddr(addr)) == nil {
				admitted++
			}
		}
		return admitted
	}
	named := func(i int) *item { return &item{endpoint: mustEndpoint(t, fmt.Sprintf("n%d.example.org:80", i))} }
	for i := range 6 {
		it := named(i)
		want, turn := 3, 0
		if i >= 4 {
			want, turn = 0, 1
		}
		if got := ask(it, "1.2.3.4", "1.2.3.4", "1.2.3.4"); got != want || it.turn != turn {
			t.Errorf("name %d: dialled %d times, waits for %d turns", i, got, it.turn)
		}
	}
	if it := named(7); ask(it, "1.2.3.4", "5.6.7.8") != 1 || it.turn != 0 {
		t.Errorf("one address of two: waits for %d turns", it.turn)
	}
	if it := named(8); ask(it, "9.9.9.9") != 1 {
		t.Error("an opened address is not dialled")
	}
	// Rules come first, and what they leave out is not counted, nor waits for a turn.
	if it := named(9); ask(it, "7.7.7.7", "1.2.3.4", "5.6.7.8") != 1 || it.turn != 0 {
		t.Errorf("one address is not wanted, one was asked enough: waits for %d turns", it.turn)
	}
	if it := named(10); ask(it, "7.7.7.7") != 0 || it.turn != 0 {
		t.Errorf("the only address is not wanted: waits for %d turns", it.turn)
	}
	if it := (&item{endpoint: mustEndpoint(t, "m.example.org:80"), isMember: true}); ask(it, "1.2.3.4", "1.2.3.4", "7.7.7.7") != 2 || it.turn != 0 {
		t.Error("a member is counted, or goes where the rules do not want it")
	}
	if ctx := c.admitting(t.Context(), &item{endpoint: mustEndpoint(t, "1.2.3.4:80")}, nil); ctx.Value(admitKey{}) != nil {
		t.Error("what was counted before is counted when it is dialled")
	}
}
