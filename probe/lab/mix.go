package lab

import (
	"fmt"
	"slices"
	"strings"

	"evenpool/sources/proxyurl"
)

// everyday is one of each behaviour whose truth a prober finds with one plain
// judge on 127.0.0.1: what a lab starts that is told nothing.
func everyday() (population []Spec) {
	for _, k := range table() {
		if len(k.truth.Needs) == 0 {
			population = append(population, Spec{k.Behaviour, 1})
		}
	}
	return population
}

// share is a behaviour's part of a mix, in parts of a thousand.
type share struct {
	Behaviour
	part int
}

// mixes are populations by name, but for "each".
var mixes = map[string][]share{
	// public is as the lists are that anybody may publish: of ten candidates six
	// are silent, two refuse, one does something else, and one works.
	"public": {
		{"silent", 600}, {"refuses", 200},
		{"captive", 20}, {"closes", 20}, {"http-only", 20}, {"garbage", 10}, {"resets", 10}, {"status-500", 10}, {"fast-fails", 5}, {"http-407", 5},
		{"http", 20}, {"transparent", 20}, {"anonymous", 10}, {"socks4", 20}, {"socks5", 30},
	},
	// good is a pool of members.
	"good": {{"http", 500}, {"socks4", 150}, {"socks4a", 50}, {"socks5", 300}},
}

// Mixes returns the names of the mixes.
func Mixes() []string { return []string{"public", "good", "each"} }

// Mix returns a population of n proxies: "public" as published lists are, "good"
// ones only, or "each" behaviour alike, n then being at least their number; 0 is
// one of each.
func Mix(name string, n int) ([]Spec, error) {
	if n < 0 || n > maxPopulation {
		return nil, fmt.Errorf("lab population %d: want at most %d", n, maxPopulation)
	}
	if name == "each" {
		return mixOfEach(n)
	}
	shares, ok := mixes[name]
	if !ok {
		return nil, fmt.Errorf("lab mix %q: want one of %s", proxyurl.Escape(name, 64), strings.Join(Mixes(), ", "))
	}
	var population []Spec
	given, parts := 0, 0
	for _, s := range shares {
		// By the sum so far, so that the whole comes out at n.
		parts += s.part
		if count := parts*n/1000 - given; count > 0 {
			population = append(population, Spec{s.Behaviour, count})
			given += count
		}
	}
	return population, nil
}

// mixOfEach gives what can be had once only once.
func mixOfEach(n int) ([]Spec, error) {
	var population []Spec
	for _, b := range Behaviours() {
		population = append(population, Spec{b, 1})
	}
	rest := n - len(population)
	if n > 0 && rest < 0 {
		return nil, fmt.Errorf("lab population %d: want at least %d for one of each", n, len(population))
	}
	many := slices.DeleteFunc(table(), func(k kind) bool { return k.how.ipv6 })
	for i, k := range many {
		if count := (i+1)*rest/len(many) - i*rest/len(many); count > 0 {
			population = append(population, Spec{k.Behaviour, count})
		}
	}
	return population, nil
}
