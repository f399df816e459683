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
	emptied int64
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
		delete(m.version, s.Endpoint)
		return false, m.retire(s.Endpoint, s.Member, now)
	case alloc.Retire:
		return false, m.retire(s.Endpoint, s.Member, now)
	}
	return false, alloc.ChangeNone
}

// TestR4_NobodyIsResurrected: admitting, retiring, moving, allocating and settling late, in every
// order: members are those that were admitted and not retired, and no count is ever reset.
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
				m := &model{counts: map[string]int64{}, retired: map[string]retiredCount{}, version: map[string]int64{}}
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
					},
				})
			})
		})
	}
}
