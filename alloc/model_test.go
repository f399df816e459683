package alloc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"evenpool/alloc"
)

// model is a pool as it should be, in plain Go.
type model struct {
	counts  map[string]int64 // member -> count
	retired map[string]retiredCount
	version map[string]int64 // endpoint -> of its record
	due     map[string]time.Time
	named   map[string]time.Time
	emptied int64
}

// offer gives how many were new and which found no room.
func (m *model) offer(endpoints []string, now time.Time, most int) (added int, left []string) {
	room := most - len(m.version) + len(m.counts)
	for _, endpoint := range endpoints {
		if _, known := m.version[endpoint]; !known {
			if added >= room {
				left = append(left, endpoint)
				continue
			}
			m.version[endpoint] = 1
			added++
		}
		if _, queued := m.due[endpoint]; !queued {
			m.due[endpoint] = now
		}
		m.named[endpoint] = now
	}
	return added, left
}

type retiredCount struct {
	count int64
	at    time.Time
}

func (m *model) sorted() []string {
	members := make([]string, 0, len(m.counts))
	for member := range m.counts {
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b string) int {
		if m.counts[a] != m.counts[b] {
			return int(m.counts[a] - m.counts[b])
		}
		return strings.Compare(a, b)
	})
	return members
}

func (m *model) lowest() int64 {
	if len(m.counts) == 0 {
		return m.emptied
	}
	return m.counts[m.sorted()[0]]
}

// admit works with the default policies, min and floor.
func (m *model) admit(endpoint, member, previous string, now time.Time, forget time.Duration) alloc.Change {
	count, has := m.counts[member]
	if old, had := m.counts[previous]; had && previous != member {
		delete(m.counts, previous)
		delete(m.retired, endpoint)
		m.counts[member] = max(old, count)
		return alloc.ChangeMoved
	}
	if has {
		return alloc.ChangeNone
	}
	count = m.lowest()
	if kept, ok := m.retired[endpoint]; ok && kept.at.Add(forget).After(now) {
		count = max(count, kept.count)
	}
	delete(m.retired, endpoint)
	m.counts[member] = count
	return alloc.ChangeAdmitted
}

func (m *model) retire(endpoint, member string, now time.Time) alloc.Change {
	count, has := m.counts[member]
	if !has {
		return alloc.ChangeNone
	}
	delete(m.counts, member)
	m.retired[endpoint] = retiredCount{count, now}
	if len(m.counts) == 0 {
		m.emptied = count
	}
	return alloc.ChangeRetired
}

func (m *model) settle(s alloc.Settlement, now time.Time, forget time.Duration) (stale bool, change alloc.Change) {
	if s.Version != m.version[s.Endpoint] {
		return true, alloc.ChangeNone
	}
	m.version[s.Endpoint]++
	switch s.Action {
	case alloc.Admit:
		return false, m.admit(s.Endpoint, s.Member, s.Previous, now, forget)
	case alloc.Forget:
		m.drop(s.Endpoint)
		return false, m.retire(s.Endpoint, s.Member, now)
	case alloc.Retire:
		return false, m.retire(s.Endpoint, s.Member, now)
	}
	return false, alloc.ChangeNone
}

func (m *model) drop(endpoint string) {
	delete(m.version, endpoint)
	delete(m.due, endpoint)
	delete(m.named, endpoint)
}

// TestR4_NobodyIsResurrected: admitting, retiring, moving, allocating, settling late, offering, claiming
// and forgetting, in every order: members are those that were admitted and not retired, no count is
// ever reset, and what is known is what was offered or settled and not forgotten.
func TestR4_NobodyIsResurrected(t *testing.T) {
	for _, kind := range []string{"redis", "embedded"} {
		t.Run(kind, func(t *testing.T) {
			now := start
			store, pool := poolAt(t, kind, &now)
			const forget = time.Hour
			policy := alloc.SettlePolicy{ForgetAfter: forget}
			rapid.Check(t, func(r *rapid.T) {
				ctx := context.Background()
				store.Raw().Del(ctx, pool.Keys()...)
				if _, err := pool.Init(ctx); err != nil {
					r.Fatal(err)
				}
				m := &model{counts: map[string]int64{}, retired: map[string]retiredCount{}, version: map[string]int64{},
					due: map[string]time.Time{}, named: map[string]time.Time{}}
				endpoints := []string{"a:1", "b:1", "c:1"}
				schemes := []string{"http://", "socks5://"}
				r.Repeat(map[string]func(*rapid.T){
					"allocate": func(r *rapid.T) {
						n := rapid.IntRange(1, 6).Draw(r, "n")
						got, err := pool.Allocate(ctx, n)
						if err != nil {
							r.Fatal(err)
						}
						var want []alloc.Allocation
						for range n {
							if len(m.counts) > 0 {
								next := m.sorted()[0]
								m.counts[next]++
								want = append(want, alloc.Allocation{Member: next, Count: m.counts[next]})
							}
						}
						if fmt.Sprint(got) != fmt.Sprint(want) {
							r.Fatalf("allocated %v, want %v", got, want)
						}
					},
					"settle": func(r *rapid.T) {
						// A batch: each item sees what those before it did.
						var batch []alloc.Settlement
						var want []string
						for range rapid.IntRange(1, 4).Draw(r, "items") {
							endpoint := rapid.SampledFrom(endpoints).Draw(r, "endpoint")
							s := alloc.Settlement{
								Endpoint: endpoint,
								Version:  max(0, m.version[endpoint]-int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "late"))),
								Record:   []byte(`{}`),
								Action:   rapid.SampledFrom([]alloc.Action{alloc.Keep, alloc.Admit, alloc.Admit, alloc.Retire, alloc.Forget}).Draw(r, "action"),
								Member:   rapid.SampledFrom(schemes).Draw(r, "scheme") + endpoint,
							}
							for _, scheme := range schemes {
								// As the record would have it: whatever URL it is a member under.
								if _, is := m.counts[scheme+endpoint]; is && s.Action == alloc.Admit {
									s.Previous = scheme + endpoint
								}
							}
							stale, change := m.settle(s, now, forget)
							batch = append(batch, s)
							want = append(want, fmt.Sprint(stale, change))
						}
						settled, err := pool.Settle(ctx, batch, policy)
						if err != nil {
							r.Fatal(err)
						}
						var got []string
						for _, s := range settled {
							got = append(got, fmt.Sprint(s.Stale, s.Change))
						}
						if !slices.Equal(got, want) {
							r.Fatalf("settled %+v as %v, want %v", batch, got, want)
						}
					},
					"offer": func(r *rapid.T) {
						list := rapid.SliceOfNDistinct(rapid.SampledFrom(endpoints), 1, 3, rapid.ID[string]).Draw(r, "offered")
						most := rapid.IntRange(1, 3).Draw(r, "most")
						added, left := m.offer(list, now, most)
						var offers []alloc.Offer
						for _, endpoint := range list {
							offers = append(offers, alloc.Offer{Endpoint: endpoint, Record: []byte(`{}`)})
						}
						got, err := pool.OfferUpTo(ctx, offers, now, most)
						var gotLeft []string
						for _, o := range got.Left {
							gotLeft = append(gotLeft, o.Endpoint)
						}
						if err != nil || got.New != added || !slices.Equal(gotLeft, left) {
							r.Fatalf("offered %v up to %d: %d new, %v left, %v; want %d and %v", list, most, got.New, gotLeft, err, added, left)
						}
					},
					"claim": func(r *rapid.T) {
						want := 0
						for _, endpoint := range endpoints {
							if at, queued := m.due[endpoint]; queued && !at.After(now) {
								want++
								m.due[endpoint] = now.Add(5 * time.Minute)
								if _, is := m.named[endpoint]; !is {
									m.named[endpoint] = now
								}
							}
						}
						if got, err := pool.Claim(ctx, now, now.Add(5*time.Minute), 5); len(got) != want || err != nil {
							r.Fatalf("claimed %+v, %v; want %d", got, err, want)
						}
					},
					"forget": func(r *rapid.T) {
						// What is read is decided upon; meanwhile others may settle or name it.
						before := now.Add(-time.Duration(rapid.SampledFrom([]int{0, 30}).Draw(r, "minutes")) * time.Minute)
						unnamed, err := pool.Unnamed(ctx, before, 0, 5)
						if err != nil {
							r.Fatal(err)
						}
						read := map[string]bool{}
						for _, u := range unnamed {
							read[u.Endpoint] = true
							if u.Version != m.version[u.Endpoint] || !u.Named.Equal(m.named[u.Endpoint]) {
								r.Fatalf("unnamed: %+v, the model says version %d, named %v", u, m.version[u.Endpoint], m.named[u.Endpoint])
							}
						}
						for endpoint, at := range m.named {
							if read[endpoint] != at.Before(before) {
								r.Fatalf("unnamed since %v: %+v, the model has %v", before, unnamed, m.named)
							}
						}
						changed := ""
						if rapid.Bool().Draw(r, "meanwhile") {
							changed = rapid.SampledFrom(endpoints).Draw(r, "settled")
							s := alloc.Settlement{Endpoint: changed, Version: m.version[changed], Record: []byte(`{}`), Action: alloc.Admit, Member: "http://" + changed}
							if _, is := m.counts["socks5://"+changed]; is {
								s.Previous = "socks5://" + changed
							}
							m.settle(s, now, forget)
							if _, err := pool.Settle(ctx, []alloc.Settlement{s}, policy); err != nil {
								r.Fatal(err)
							}
						}
						want := 0
						for _, u := range unnamed {
							if due := m.due[u.Endpoint]; u.Endpoint == changed || due.After(now) && !due.After(now.Add(5*time.Minute)) {
								continue
							}
							m.drop(u.Endpoint)
							want++
						}
						dropped, spared, err := pool.Forget(ctx, forgetting(unnamed...), now, now.Add(5*time.Minute))
						if dropped != want || spared != 0 || err != nil {
							r.Fatalf("%d dropped, %d spared, %v; want %d dropped", dropped, spared, err, want)
						}
					},
					"time goes by": func(r *rapid.T) {
						now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 10, 70}).Draw(r, "minutes")) * time.Minute)
					},
					"": func(r *rapid.T) {
						got, err := pool.Members(ctx)
						if err != nil {
							r.Fatal(err)
						}
						var want []alloc.Allocation
						for _, member := range m.sorted() {
							want = append(want, alloc.Allocation{Member: member, Count: m.counts[member]})
						}
						if fmt.Sprint(got) != fmt.Sprint(want) {
							r.Fatalf("members %v, want %v", got, want)
						}
						if n := store.Raw().HLen(ctx, pool.Keys()[2]).Val(); int(n) != len(m.version) {
							r.Fatalf("%d known, the model has %v", n, m.version)
						}
					},
				})
			})
		})
	}
}
