package daemon

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"evenpool/daemon/api"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// invent returns endpoints of networks of their own, from a number on.
func invent(t testing.TB, from, n int) []proxyurl.Endpoint {
	t.Helper()
	list := make([]proxyurl.Endpoint, n)
	for i := range list {
		at := from + i
		e, err := proxyurl.NewEndpoint(fmt.Sprintf("%d.%d.%d.7", 20+at>>16, at>>8&255, at&255), 8080, "", "")
		if err != nil {
			t.Fatal(err)
		}
		list[i] = e
	}
	return list
}

func parseEndpoints(t testing.TB, n int, form func(i int) string) []proxyurl.Endpoint {
	t.Helper()
	list := make([]proxyurl.Endpoint, n)
	for i := range list {
		var err error
		if list[i], err = proxyurl.ParseEndpoint(form(i)); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func chosenOf(order uint64, c choice, list []proxyurl.Endpoint) (n int) {
	for _, e := range list {
		if _, ok := c.chosen[rankOf(order, e.String())]; ok {
			n++
		}
	}
	return n
}

// A list of 200,000 used to be able to push out one of 100.
func TestL4_NoSourceStarvesAnother(t *testing.T) {
	const order = 7
	small, large, middle := invent(t, 0, 100), invent(t, 1000, 200_000), invent(t, 300_000, 5_000)
	ranks := map[int][]ranked{0: nil}
	for _, list := range [][]proxyurl.Endpoint{small, large, middle} {
		ranks[len(list)] = rank(order, list)
	}
	for _, tc := range []struct {
		name   string
		lists  [][]proxyurl.Endpoint
		others []int
		room   int
		want   []int
	}{
		{"room for all", [][]proxyurl.Endpoint{large, small}, nil, 1_000_000, []int{200_000, 100}},
		{"the small one is in whole", [][]proxyurl.Endpoint{large, small, middle}, nil, 20_000, []int{14_900, 100, 5_000}},
		{"equal shares", [][]proxyurl.Endpoint{large, middle}, nil, 2_000, []int{1_000, 1_000}},
		{"less room than sources", [][]proxyurl.Endpoint{large, middle, small}, nil, 2, []int{1, 1, 0}},
		{"a small one on another host", [][]proxyurl.Endpoint{large}, []int{100}, 20_000, []int{19_900}},
		{"a large one on another host", [][]proxyurl.Endpoint{large, small}, []int{200_000}, 20_000, []int{9_950, 100}},
		{"the same twice counts once", [][]proxyurl.Endpoint{small, small}, nil, 100, []int{100, 100}},
		{"a list that is not read", [][]proxyurl.Endpoint{nil, small}, nil, 50, []int{0, 50}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lists := make([]named, len(tc.lists))
			total := 0
			for i, list := range tc.lists {
				lists[i].list = ranks[len(list)]
				total += len(list)
			}
			c := choose(lists, tc.others, tc.room)
			for i, list := range tc.lists {
				if got := chosenOf(order, c, list); got != tc.want[i] {
					t.Errorf("of list %d: %d, want %d", i, got, tc.want[i])
				}
				if got := c.cut[i][noRoom]; tc.name != "the same twice counts once" && got != len(list)-tc.want[i] {
					t.Errorf("of list %d: %d cut, want %d", i, got, len(list)-tc.want[i])
				}
			}
			if demand := c.demand[0] + c.demand[len(lists)-1]; len(lists) == 2 && tc.name != "the same twice counts once" && demand != total {
				t.Errorf("they ask for %d, want %d", demand, total)
			}
			if len(c.chosen) > tc.room {
				t.Errorf("%d chosen, there is room for %d", len(c.chosen), tc.room)
			}
		})
	}
}

// With another choice at every fetch, each would push out what the one before
// brought in. With the same one every day, some would never have a turn.
func TestTheChoiceIsTheSameAllDay(t *testing.T) {
	list := invent(t, 0, 10_000)
	midnight := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	pick := func(pool string, now time.Time) []uint64 {
		shuffled := slices.Clone(list)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		c := choose([]named{{list: rank(dayOrder(pool, now), shuffled)}}, nil, 1000)
		return slices.Sorted(maps.Keys(c.chosen))
	}
	first := pick("web", midnight)
	for name, now := range map[string]time.Time{"an hour later": midnight.Add(time.Hour), "in the evening, elsewhere": midnight.Add(24*time.Hour - 1).In(time.FixedZone("", 5*3600))} {
		if !slices.Equal(first, pick("web", now)) {
			t.Errorf("another choice %s", name)
		}
	}
	// Of what is taken today, tomorrow a tenth comes again, by chance.
	endpoints := func(order uint64, ranks []uint64) map[string]bool {
		set := map[string]bool{}
		for _, e := range list {
			if _, ok := slices.BinarySearch(ranks, rankOf(order, e.String())); ok {
				set[e.String()] = true
			}
		}
		return set
	}
	today := endpoints(dayOrder("web", midnight), first)
	tomorrow := endpoints(dayOrder("web", midnight.Add(24*time.Hour)), pick("web", midnight.Add(24*time.Hour)))
	again := 0
	for e := range tomorrow {
		if today[e] {
			again++
		}
	}
	if len(tomorrow) != 1000 || again < 50 || again > 200 {
		t.Errorf("%d chosen tomorrow, %d of them today as well", len(tomorrow), again)
	}
	if slices.Equal(first, pick("other", midnight)) {
		t.Error("all pools make the same choice")
	}
}

// Neighbours used to be offered, and so probed, in a row.
func TestTheDaysOrderParts(t *testing.T) {
	var list []proxyurl.Endpoint
	for _, network := range []string{"1.2.3", "1.2.4", "9.8.7"} {
		list = append(list, parseEndpoints(t, 200, func(i int) string { return fmt.Sprintf("%s.%d:8080", network, i) })...)
	}
	longest, run, before := 0, 0, ""
	for _, r := range rank(1, list) {
		network := r.endpoint.String()[:5]
		if run++; network != before {
			run, before = 1, network
		}
		longest = max(longest, run)
	}
	if longest > 15 {
		t.Errorf("%d neighbours in a row", longest)
	}
}

func TestL4_FloodsAreCutWhenOffered(t *testing.T) {
	ports := parseEndpoints(t, 50, func(i int) string { return fmt.Sprintf("1.2.3.4:%d", 8000+i) })
	network := parseEndpoints(t, 250, func(i int) string { return fmt.Sprintf("5.6.7.%d:8080", 1+i) })
	plain := invent(t, 0, 10)
	a, b := named{list: rank(3, slices.Concat(ports, network[:125], plain))}, named{list: rank(3, network[125:])}
	c := choose([]named{a, b}, nil, 1000)
	if n := chosenOf(3, c, ports); n != 4 {
		t.Errorf("%d ports of an address", n)
	}
	if n := chosenOf(3, c, network); n != 64 {
		t.Errorf("%d hosts of a network", n)
	}
	if n := chosenOf(3, c, plain); n != 10 {
		t.Errorf("%d of those with nothing wrong about them", n)
	}
	ofB := chosenOf(3, c, network[125:])
	if ofB == 0 || c.cut[0][sources.FloodAddress] != 46 || c.cut[0][sources.FloodNetwork]+c.cut[1][sources.FloodNetwork] != 250-64 {
		t.Errorf("cut %v, with %d of b", c.cut, ofB)
	}
	open := named{list: a.list, allow: proxyurl.Allow{mustPrefix("1.2.3.0/24"), mustPrefix("5.6.7.0/24")}}
	if c := choose([]named{open}, nil, 1000); len(c.chosen) != 50+125+10 || !maps.Equal(c.cut[0], api.Counts(nil)) {
		t.Errorf("from opened prefixes %d are chosen, cut %v", len(c.chosen), c.cut)
	}
}
