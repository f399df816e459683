package alloc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/alloc"
)

// forgetting has proxies dropped.
func forgetting(list ...alloc.Unnamed) []alloc.Forgetting {
	out := make([]alloc.Forgetting, len(list))
	for i, u := range list {
		out[i].Unnamed = u
	}
	return out
}

func offersOf(endpoints ...string) []alloc.Offer {
	out := make([]alloc.Offer, len(endpoints))
	for i, endpoint := range endpoints {
		out[i] = alloc.Offer{Endpoint: endpoint, Record: []byte(`{}`)}
	}
	return out
}

// unnamed gives the endpoints that nothing has spoken for since.
func unnamed(t testing.TB, pool *alloc.Pool, before time.Time) []alloc.Unnamed {
	t.Helper()
	list, err := pool.Unnamed(t.Context(), before, 0, 500)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func names(list []alloc.Unnamed) string {
	var out []string
	for _, u := range list {
		out = append(out, u.Endpoint)
	}
	return strings.Join(out, " ")
}

func bothKinds(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range []string{"redis", "embedded"} {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// TestNamedAges: whatever a list names again is young again; what none names is found, oldest first.
func TestNamedAges(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		now := start
		_, pool := poolAt(t, kind, &now)
		for _, step := range []struct {
			after  time.Duration
			offers []alloc.Offer
		}{{0, offersOf("b:1", "a:1", "c:1")}, {time.Hour, offersOf("b:1", "d:1")}, {0, offersOf("b:1")}} {
			now = now.Add(step.after)
			if _, err := pool.Offer(t.Context(), step.offers, now); err != nil {
				t.Fatal(err)
			}
		}
		// A host whose clock is behind makes nothing older.
		now = start
		if _, err := pool.Offer(t.Context(), offersOf("b:1"), now); err != nil {
			t.Fatal(err)
		}
		for before, want := range map[time.Duration]string{0: "", 1: "", time.Millisecond: "a:1 c:1", time.Hour: "a:1 c:1", time.Hour + time.Millisecond: "a:1 c:1 b:1 d:1"} {
			if got := names(unnamed(t, pool, start.Add(before))); got != want {
				t.Errorf("not named since %v: %q, want %q", before, got, want)
			}
		}
		if list, err := pool.Unnamed(t.Context(), start.Add(time.Minute), 1, 1); err != nil || names(list) != "c:1" {
			t.Errorf("the second: %v, %v", list, err)
		}
		these, err := pool.UnnamedThese(t.Context(), []string{"d:1", "unknown:1", "a:1"})
		if err != nil || names(these) != "d:1 a:1" || these[0].Version != 1 || !these[0].Named.Equal(start.Add(time.Hour)) || !these[1].Named.Equal(start) {
			t.Errorf("these: %+v, %v", these, err)
		}
	})
}

// TestForgetLeavesAloneWhatHasChanged: between reading and forgetting, a proxy may be settled, admitted,
// named again or claimed; nothing of that is undone.
func TestForgetLeavesAloneWhatHasChanged(t *testing.T) {
	bothKinds(t, func(t *testing.T, kind string) {
		now := start
		store, pool := poolAt(t, kind, &now)
		all := []string{"admitted:1", "backoff:1", "claimed:1", "gone:1", "named:1", "plain:1", "settled:1", "spared:1"}
		if _, err := pool.Offer(t.Context(), offersOf(all...), start.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		now = start.Add(time.Hour)
		busy := now.Add(time.Minute)
		if got, err := pool.ClaimThese(t.Context(), []string{"claimed:1"}, now, busy); len(got) != 1 || err != nil {
			t.Fatal(got, err)
		}
		settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "backoff:1", Version: 1, Record: []byte(`{}`), Due: busy.Add(1e6)})
		list := unnamed(t, pool, now)
		if got := names(list); got != strings.Join(all, " ") {
			t.Fatalf("unnamed: %s", got)
		}
		admit(t, pool, alloc.SettlePolicy{}, "admitted:1")
		settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "settled:1", Version: 1, Record: []byte(`{"fails":1}`)})
		settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{Endpoint: "gone:1", Version: 1, Action: alloc.Forget})
		if _, err := pool.Offer(t.Context(), offersOf("named:1"), now); err != nil {
			t.Fatal(err)
		}
		what := forgetting(list...)
		for i := range what {
			if what[i].Endpoint == "spared:1" {
				what[i].Spoken = now.Add(-time.Minute)
			}
		}
		for _, want := range []string{"2 1", "0 0"} {
			dropped, spared, err := pool.Forget(t.Context(), what, now, busy)
			if got := fmt.Sprint(dropped, spared); got != want || err != nil {
				t.Errorf("dropped and spared %s, %v; want %s", got, err, want)
			}
		}
		fields, err := store.Raw().HKeys(t.Context(), pool.Keys()[2]).Result()
		slices.Sort(fields)
		if want := "[admitted:1 claimed:1 named:1 settled:1 spared:1]"; err != nil || fmt.Sprint(fields) != want {
			t.Errorf("known are %v, %v; want %s", fields, err, want)
		}
		if got := names(unnamed(t, pool, now)); got != "admitted:1 claimed:1 settled:1 spared:1" {
			t.Errorf("unnamed: %s", got)
		}
		if due := set(t, store, pool.Keys()[3]); strings.Contains(due, "plain") || strings.Contains(due, "backoff") {
			t.Errorf("forgotten, but due: %s", due)
		}
	})
}

// TestForgottenMemberKeepsItsCount: the record of a former member may go, its count stays and is what
// the restore policy works with.
func TestForgottenMemberKeepsItsCount(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		if _, err := pool.Offer(t.Context(), offersOf("a:1", "b:1"), start); err != nil {
			t.Fatal(err)
		}
		admit(t, pool, alloc.SettlePolicy{}, "a:1")
		if _, err := pool.Allocate(t.Context(), 5); err != nil {
			t.Fatal(err)
		}
		retire(t, pool, "a:1")
		dropped, _, err := pool.Forget(t.Context(), forgetting(unnamed(t, pool, time.Now().Add(time.Hour))...), start, start)
		if dropped != 2 || err != nil {
			t.Fatalf("%d dropped, %v", dropped, err)
		}
		if got := admit(t, pool, alloc.SettlePolicy{Restore: "keep"}, "a:1"); got.CountAfter != 5 {
			t.Errorf("it came back as %+v, want count 5", got)
		}
	})
}

// TestOfferUpTo: what finds no room is told, in order; members take no room, and known ones need none.
func TestOfferUpTo(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		if _, err := pool.Offer(t.Context(), offersOf("m:1", "a:1"), start); err != nil {
			t.Fatal(err)
		}
		admit(t, pool, alloc.SettlePolicy{}, "m:1")
		for _, step := range []struct {
			offers []alloc.Offer
			want   string
		}{
			{offersOf("m:1", "a:1", "b:1", "b:1", "c:1", "a:1", "d:1"), "1 [c:1 d:1]"},
			{offersOf("m:1", "a:1", "b:1"), "0 []"},
			{offersOf("c:1"), "0 [c:1]"},
		} {
			got, err := pool.OfferUpTo(t.Context(), step.offers, start, 2)
			left := []string{}
			for _, o := range got.Left {
				left = append(left, o.Endpoint)
			}
			if text := fmt.Sprint(got.New, left); text != step.want || err != nil {
				t.Errorf("offered %v: %s, %v; want %s", step.offers, text, err, step.want)
			}
		}
		if _, known, due, err := pool.Size(t.Context()); known != 3 || due != 3 || err != nil {
			t.Errorf("%d known, %d due, %v", known, due, err)
		}
		if got := len(unnamed(t, pool, time.Now().Add(time.Hour))); got != 3 {
			t.Errorf("%d have a named time, want those that are known", got)
		}
	})
}

// TestOffersAreDueInTheirOrder: with equal times a whole network, being neighbours by bytes, used to be
// claimed at once.
func TestOffersAreDueInTheirOrder(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		var offers []alloc.Offer
		for i := range 1100 {
			offers = append(offers, alloc.Offer{Endpoint: fmt.Sprintf("m%04d:1", 1100-i), Record: []byte(`{}`)})
		}
		if _, err := pool.Offer(t.Context(), offers, start); err != nil {
			t.Fatal(err)
		}
		first, err := pool.Claim(t.Context(), start, start.Add(time.Minute), 500)
		if err != nil || len(first) != 500 || first[0].Endpoint != "m0601:1" || first[499].Endpoint != "m1100:1" {
			t.Errorf("claimed %d, from %s to %s, %v", len(first), first[0].Endpoint, first[499].Endpoint, err)
		}
		if rest, err := pool.Claim(t.Context(), start, start.Add(time.Minute), 1000); len(rest) != 600 || err != nil {
			t.Errorf("claimed %d more, %v: all are due when the caller said", len(rest), err)
		}
	})
}

// TestClaimGivesWhatAgesATime: what is queued without one, by an older version, could never be forgotten.
func TestClaimGivesWhatAgesATime(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		if _, err := pool.Offer(t.Context(), offersOf("a:1", "b:1"), start); err != nil {
			t.Fatal(err)
		}
		named := pool.Keys()[5]
		store.Raw().ZRem(t.Context(), named, "a:1")
		before := store.Raw().ZScore(t.Context(), named, "b:1").Val()
		if _, err := pool.Claim(t.Context(), start.Add(time.Hour), start.Add(2*time.Hour), 5); err != nil {
			t.Fatal(err)
		}
		if got := store.Raw().ZScore(t.Context(), named, "a:1").Val(); got != float64(start.Add(time.Hour).UnixMilli()) {
			t.Errorf("named %v", got)
		}
		if got := store.Raw().ZScore(t.Context(), named, "b:1").Val(); got != before {
			t.Errorf("the other's time moved from %v to %v", before, got)
		}
	})
}

// TestForgetInALostPool: a lost pool must not look like an empty one.
func TestForgetInALostPool(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		store.Raw().Del(t.Context(), pool.Keys()...)
		_, _, err := pool.Forget(t.Context(), []alloc.Forgetting{{}}, start, start)
		if !errors.Is(err, alloc.ErrPoolLost) {
			t.Errorf("%v, want lost", err)
		}
	})
}
