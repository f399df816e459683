package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"evenpool/probe"
	"evenpool/probe/lab"
)

// TestMain is this program in its other roles, too: they are processes of their own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.Contains([]string{"lab", "evenpool", "bare"}, os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// What is compared does what it is there for: each prober is right about all
// proxies, and says what that cost.
func TestBothProbersAreRight(t *testing.T) {
	l, err := startLab("public", 200)
	if err != nil {
		t.Fatal(err)
	}
	defer l.end()
	silent := func(p lab.Proxy) bool { return p.Behaviour == "silent" }
	s := spec{World: l.world, Concurrency: 20, Timeout: time.Minute}
	s.World.Proxies = slices.DeleteFunc(slices.Clone(l.world.Proxies), silent)
	for _, ask := range [][]probe.Capability{httpOnly, tlsOnly} {
		s.Ask = ask
		ours, bare, err := sideBySide(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range append(ours, bare...) {
			if m.Right != 100 || m.CPU <= 0 || m.Wall <= 0 {
				t.Errorf("%v: %+v", ask, m)
			}
		}
	}
	s.Hold, s.Ask = true, httpOnly
	s.World.Proxies = slices.DeleteFunc(l.world.Proxies, func(p lab.Proxy) bool { return !silent(p) })
	s.Concurrency = len(s.World.Proxies)
	if m, err := measure("evenpool", s); err != nil || m.Bytes < 1000 || m.Bytes > 1e6 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestFiguresAndTheirBars(t *testing.T) {
	for _, c := range []struct {
		f      figure
		want   string
		missed bool
	}{
		{figure{"probe.a", 1.23456, "ratio", "<=2"}, "probe.a 1.235 ratio <=2", false},
		{figure{"probe.a", 1.6, "ratio", "<=1.5"}, "probe.a 1.600 ratio <=1.5", true},
		{figure{"probe.b", 99.9, "%", ">=100"}, "probe.b 99.900 % >=100", true},
		{figure{"probe.b", 100, "%", ">=100"}, "probe.b 100.000 % >=100", false},
		{figure{"probe.c", 99, "us", ""}, "probe.c 99.000 us -", false},
	} {
		if got := c.f.String(); got != c.want || c.f.missed() != c.missed {
			t.Errorf("%s, missed %t; want %s, %t", got, c.f.missed(), c.want, c.missed)
		}
	}
	if got := middle([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("median %v", got)
	}
}

func TestInterleaveKeepsAll(t *testing.T) {
	proxies := make([]lab.Proxy, 1000)
	for i := range proxies {
		proxies[i].Name = string(rune('A' + i))
	}
	seen := map[string]bool{}
	for _, p := range interleave(proxies) {
		seen[p.Name] = true
	}
	if len(seen) != len(proxies) {
		t.Errorf("%d of %d are left", len(seen), len(proxies))
	}
}
