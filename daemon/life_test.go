package daemon

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

const twoFiles = `  - {name: large, url: "file://%[1]s/large.txt", scheme: http, schedule: "@every 30m"}
  - {name: small, url: "file://%[1]s/small.txt", scheme: http, schedule: "@every 30m"}`

func textOf(list []proxyurl.Endpoint) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString(e.String() + "\n")
	}
	return b.String()
}

// record has the store say something of a candidate, as a cycle would.
func (b *bare) record(e proxyurl.Endpoint, change func(*probe.Record)) {
	b.t.Helper()
	p := b.pools[0]
	known, err := p.store.Look(b.t.Context(), e.String())
	if err != nil || known.Version == 0 {
		b.t.Fatalf("%s: %+v, %v", e, known, err)
	}
	rec, err := probe.DecodeRecord(known.Record)
	if err != nil {
		b.t.Fatal(err)
	}
	change(&rec)
	s := alloc.Settlement{Endpoint: e.String(), Version: known.Version, Record: rec.Encode(), Action: alloc.Keep}
	if rec.Member != "" {
		s.Action, s.Member = alloc.Admit, rec.Member
	}
	if settled, err := p.store.Settle(b.t.Context(), []alloc.Settlement{s}, p.settle); err != nil || settled[0].Stale {
		b.t.Fatalf("%+v, %v", settled, err)
	}
}

// Real lists have 9 to 42 % in common from one version to the next. A candidate
// that a version does not name is none the worse for it, and a member stays one.
func TestL8_AbsenceFromAListMeansNothing(t *testing.T) {
	for _, overlap := range []int{10, 25, 40} {
		t.Run(fmt.Sprintf("%d percent", overlap), func(t *testing.T) {
			b := newBare(t, alloctest.Redis, oneFile, "")
			const size, versions = 1000, 8
			step := size * (100 - overlap) / 100
			all := invent(t, 0, step*versions+size)
			member, proven := all[0], all[1]
			for version := range versions {
				b.write("list.txt", textOf(all[version*step:][:size]))
				if s := b.fetch("list").status(); s.Candidates != size || version > 0 && s.New != step {
					t.Fatalf("version %d: the source says %+v, want %d new", version, s, step)
				}
				if version == 0 {
					b.record(member, func(r *probe.Record) { r.Member = "http://" + member.String() })
					b.record(proven, func(r *probe.Record) { r.Fails = 40 })
				}
				if got, want := b.known(), size+version*step; got != want {
					t.Fatalf("after version %d, %d are known, want all that was ever named: %d", version, got, want)
				}
			}
			for _, e := range b.pools[0].sources[0].endpoints()[:3] {
				if rec := b.pools[0].named(e, probe.Record{}); !slices.Equal(rec.Sources, []string{"list"}) {
					t.Errorf("%s: %+v", e, rec)
				}
			}
			if !b.knows(proven.String()) {
				t.Error("a dead candidate that left the list was forgotten at once")
			}
			if members, err := b.pools[0].store.Members(t.Context()); len(members) != 1 || err != nil {
				t.Errorf("members: %v, %v", members, err)
			}
		})
	}
}

// A candidate that nobody has named for forget_after is forgotten by a cycle, with
// all that is known of it; members are not, nor what has passed lately, nor what a
// list has named since.
func TestWhatNobodyNamesIsForgotten(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "    allocation: {forget_after: 10h}")
	old, young := invent(t, 0, 1300), invent(t, 5000, 300)
	member, passed, passedLongAgo, again := old[0], old[1], old[2], old[3]
	b.write("list.txt", textOf(old))
	b.ago(11*time.Hour, func() { b.fetch("list") })
	b.record(member, func(r *probe.Record) { r.Member = "http://" + member.String() })
	b.record(passed, func(r *probe.Record) { r.LastPass = time.Now().Add(-9 * time.Hour) })
	b.record(passedLongAgo, func(r *probe.Record) { r.LastPass = time.Now().Add(-11 * time.Hour) })
	b.write("list.txt", textOf(append(young, again)))
	b.ago(9*time.Hour, func() { b.fetch("list") })
	b.cycleNow()
	if n, last := b.known(), b.pools[0].last; n != 1+1+1+300 || last.Forgotten != 1300-3 {
		t.Errorf("%d are known, %d forgotten", n, last.Forgotten)
	}
	for name, e := range map[string]proxyurl.Endpoint{"the member": member, "what has passed": passed, "what was named again": again, "a young one": young[0]} {
		if !b.knows(e.String()) {
			t.Errorf("%s was forgotten", name)
		}
	}
	if b.knows(passedLongAgo.String()) {
		t.Error("what passed too long ago is known")
	}
}

// However much the lists name, a pool knows no more than its bound, and what is in
// stays in: to push out at each fetch what the one before brought in would be for
// ever.
func TestTheBoundOfAPoolDoesNotThrash(t *testing.T) {
	for name, store := range map[string]func(testing.TB) alloc.Options{"redis": alloctest.Redis, "embedded": alloctest.Embedded} {
		t.Run(name, func(t *testing.T) { testNoThrash(t, store) })
	}
}

func testNoThrash(t *testing.T, store func(testing.TB) alloc.Options) {
	b := newBare(t, store, twoFiles, "    max_candidates: 300")
	large, small := invent(t, 0, 5000), invent(t, 10_000, 40)
	b.write("large.txt", textOf(large))
	b.write("small.txt", textOf(small))
	if s := b.fetch("large").status(); s.Candidates != 300 || s.Refused[noRoom] != 4700 {
		t.Errorf("the first list: %+v", s)
	}
	// The small one comes into a full pool, and is in whole.
	if s := b.fetch("small").status(); s.Candidates != 40 || len(s.Refused) != 0 {
		t.Errorf("the small list: %+v", s)
	}
	for _, e := range small {
		if !b.knows(e.String()) {
			t.Fatalf("%s, of the small list, is not known", e)
		}
	}
	if n := b.known(); n != 300 {
		t.Errorf("%d are known", n)
	}
	before := allKnown(t, b.pools[0])
	for _, e := range before {
		b.record(mustEndpoint(t, e), func(r *probe.Record) { r.Fails = 7 })
	}
	slices.Sort(before)
	for range 5 {
		rand.Shuffle(len(large), func(i, j int) { large[i], large[j] = large[j], large[i] })
		b.write("large.txt", textOf(large))
		b.fetch("large")
		b.fetch("small")
	}
	after := allKnown(t, b.pools[0])
	slices.Sort(after)
	if !slices.Equal(before, after) {
		t.Error("other candidates are known, though the lists name the same")
	}
	for _, e := range after {
		known, err := b.pools[0].store.Look(t.Context(), e)
		if rec, _ := probe.DecodeRecord(known.Record); err != nil || rec.Fails != 7 {
			t.Fatalf("%s was forgotten and came again: %+v, %v", e, rec, err)
		}
	}
}

// In a full pool, what lists have not named for two rounds goes for what they name
// now, the oldest first; members and what has passed stay.
func TestTheOldestUnprovenGoFirst(t *testing.T) {
	b := newBare(t, alloctest.Redis, twoFiles, "    max_candidates: 100")
	oldest, old, recent, now := invent(t, 0, 40), invent(t, 1000, 30), invent(t, 2000, 30), invent(t, 3000, 70)
	for _, step := range []struct {
		list []proxyurl.Endpoint
		ago  time.Duration
	}{{oldest, 5 * time.Hour}, {old, 2 * time.Hour}, {recent, 30 * time.Minute}} {
		b.write("large.txt", textOf(step.list))
		b.ago(step.ago, func() { b.fetch("large") })
	}
	member, passed := oldest[0], oldest[1]
	b.record(member, func(r *probe.Record) { r.Member = "http://" + member.String() })
	b.record(passed, func(r *probe.Record) { r.LastPass = time.Now().Add(-4 * time.Hour) })
	countKnown := func(list []proxyurl.Endpoint) (n int) {
		for _, e := range list {
			if b.knows(e.String()) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct{ offered, oldest, old, recent, now, cut int }{
		{20, 21, 30, 30, 20, 0}, // one found the member's room
		{50, 2, 19, 30, 50, 0},
		{70, 2, 0, 30, 69, 1}, // what was named within two rounds stays, so one waits
	} {
		b.write("large.txt", textOf(now[:step.offered]))
		s := b.fetch("large").status()
		got := []int{countKnown(oldest), countKnown(old), countKnown(recent), countKnown(now), s.Refused[noRoom]}
		if want := []int{step.oldest, step.old, step.recent, step.now, step.cut}; !slices.Equal(got, want) {
			t.Errorf("of the oldest, old, recent and new %v are known or cut, want %v", got, want)
		}
	}
	if !b.knows(member.String()) || !b.knows(passed.String()) {
		t.Error("a member, or what has passed, was pushed out")
	}
}

func mustEndpoint(t testing.TB, text string) proxyurl.Endpoint {
	t.Helper()
	e, err := proxyurl.ParseEndpoint(text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Two hundred fetches of a list that is another one each time used to be able to
// leave something behind of each.
func TestMemoryDoesNotGrowWithFetches(t *testing.T) {
	b := newBare(t, alloctest.Redis, oneFile, "    max_candidates: 500")
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const size = 2000
	at := 0
	churn := func(fetches int) {
		for range fetches {
			at += size * 7 / 10
			var text strings.Builder
			for i, e := range invent(t, at%4_000_000, size) {
				fmt.Fprintf(&text, "%s:Country%d\n", e, at+i)
			}
			b.write("list.txt", text.String())
			b.fetch("list")
		}
	}
	churn(20)
	before := heap()
	churn(200)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if n := b.known(); n > 500 {
		t.Errorf("%d are known", n)
	}
}
