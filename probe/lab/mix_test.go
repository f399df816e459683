package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestMix: a mix has as many as were asked for, in the parts that it says.
func TestMix(t *testing.T) {
	count := func(population []Spec, which func(kind) bool) (n int) {
		for _, s := range population {
			k := table()[slices.Index(Behaviours(), s.Behaviour)]
			if which(k) {
				n += s.Count
			}
		}
		return n
	}
	every := func(kind) bool { return true }
	for _, name := range Mixes() {
		for _, n := range []int{0, 1, 7, 100, 1000, 10_000, maxPopulation} {
			population, err := Mix(name, n)
			want := n
			if name == "each" {
				if n == 0 {
					want = len(Behaviours())
				} else if n < len(Behaviours()) {
					if err == nil || err.Error() != fmt.Sprintf("lab population %d: want at least %d for one of each", n, len(Behaviours())) {
						t.Errorf("%d of each: %v", n, err)
					}
					continue
				}
			}
			if got := count(population, every); err != nil || got != want {
				t.Errorf("%s %d: %d, %v", name, n, got, err)
			}
			if n > 0 {
				if _, err := plan(population, loopback4, 0); err != nil {
					t.Errorf("%s %d: %v", name, n, err)
				}
			}
		}
	}
	for _, s := range append(mixes["public"], mixes["good"]...) {
		if !slices.Contains(Behaviours(), s.Behaviour) {
			t.Errorf("a mix has %q", s.Behaviour)
		}
	}

	public, _ := Mix("public", 10_000)
	for what, test := range map[string]struct {
		which func(kind) bool
		want  int
	}{
		"silent":  {func(k kind) bool { return k.Behaviour == "silent" }, 6000},
		"refused": {func(k kind) bool { return k.serve == nil }, 2000},
		"good":    {func(k kind) bool { return k.truth.Eligible }, 1000},
	} {
		if got := count(public, test.which); got != test.want {
			t.Errorf("public: %d %s, want %d", got, what, test.want)
		}
	}
	good, _ := Mix("good", 10_000)
	if got := count(good, func(k kind) bool { return k.truth.Eligible && len(k.truth.Needs) == 0 }); got != 10_000 {
		t.Errorf("good: %d", got)
	}

	for _, test := range []struct {
		name string
		n    int
		want string
	}{
		{"bad\x1b", 1, `lab mix "bad\\x1b": want one of public, good, each`},
		{"good", -1, "lab population -1: want at most 1000000"},
		{"each", maxPopulation + 1, "lab population 1000001: want at most 1000000"},
	} {
		if _, err := Mix(test.name, test.n); err == nil || err.Error() != test.want {
			t.Errorf("%s %d: %v, want %s", test.name, test.n, err, test.want)
		}
	}
}

// TestExitsAreNotTheClients: else every proxy would look transparent to a judge.
func TestExitsAreNotTheClients(t *testing.T) {
	population := append(each(t), Spec{"http", 2}, Spec{"rotating", 2})
	groups, err := plan(population, loopback4, 0)
	if err != nil {
		t.Fatal(err)
	}
	users := make(map[netip.Addr]Behaviour)
	for _, g := range groups {
		for _, at := range g.addrs {
			exits := g.exits(at)
			for i, exit := range exits {
				if exit == loopback4 || exit != loopback6 && !loopback.Contains(exit) || exit == loopback6 && !g.how.ipv6Exit {
					t.Errorf("%s goes out by %v", g.Behaviour, exit)
				}
				if by, taken := users[exit]; taken && exit != loopback6 && i == 0 {
					t.Errorf("%s goes out by %v, as %s does", g.Behaviour, exit, by)
				}
				users[exit] = g.Behaviour
			}
		}
	}
	if _, err := plan([]Spec{{"http-ipv6", 1}, {"http-ipv6", 1}}, loopback4, 0); err == nil ||
		err.Error() != "lab behaviour http-ipv6: count 2: want 1, as loopback has one IPv6 address" {
		t.Errorf("two on ::1: %v", err)
	}
}

// TestTheTableIsWhole: every truth has its words, and they fit together.
func TestTheTableIsWhole(t *testing.T) {
	seen := make(map[Behaviour]bool)
	for _, k := range Kinds() {
		if seen[k.Behaviour] {
			t.Errorf("%s stands there twice", k.Behaviour)
		}
		seen[k.Behaviour] = true
		wantNone := map[string]bool{"stage": k.Eligible, "rule": k.Eligible, "anonymity": !slices.Contains(k.Capabilities, "http")}
		for what, value := range map[string]string{"stage": k.Stage, "rule": k.Rule, "anonymity": k.Anonymity} {
			if (value == "") != wantNone[what] {
				t.Errorf("%s: %s is %q", k.Behaviour, what, value)
			}
		}
		if k.Eligible != (k.Outcome == "ok") || k.Eligible != (k.Class == "ok") || (k.Class == "security") != (k.Rule == safety) {
			t.Errorf("%s: %+v", k.Behaviour, k.Truth)
		}
		if k.Note == "" || strings.HasSuffix(k.Note, ".") || k.Capabilities == nil || k.Schemes == nil || k.Needs == nil {
			t.Errorf("%s: %+v", k.Behaviour, k.Truth)
		}
	}
}
