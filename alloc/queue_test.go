package alloc_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

func TestOfferAddsWhatIsNew(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		offers := []alloc.Offer{{Endpoint: "b:1", Record: []byte(`{"x":"|1|"}`)}, {Endpoint: "a:1", Record: []byte(`{}`)}}
		if added, err := pool.Offer(t.Context(), offers, start); added != 2 || err != nil {
			t.Fatalf("offered 2: %d, %v", added, err)
		}
		store.Raw().Del(t.Context(), pool.Keys()[5]) // named moves on
		before := state(t, store, pool)
		again := []alloc.Offer{{Endpoint: "b:1", Record: []byte(`{"newer":1}`)}}
		if added, err := pool.Offer(t.Context(), again, start.Add(time.Hour)); added != 0 || err != nil {
			t.Errorf("offered a known one: %d, %v", added, err)
		}
		store.Raw().Del(t.Context(), pool.Keys()[5])
		if after := state(t, store, pool); after != before {
			t.Errorf("offering a known one changed\n%s\ninto\n%s", before, after)
		}
		record, err := pool.Look(t.Context(), "b:1")
		if err != nil || record.Version != 1 || string(record.Record) != `{"x":"|1|"}` {
			t.Errorf("record %+v (%s), %v", record, record.Record, err)
		}
		if unknown, err := pool.Look(t.Context(), "c:1"); unknown.Version != 0 || unknown.Record != nil || err != nil {
			t.Errorf("record of an unknown one: %+v, %v", unknown, err)
		}
	})
}

func TestOfferMoreThanOneScriptTakes(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		var offers []alloc.Offer
		for i := range 1203 {
			offers = append(offers, alloc.Offer{Endpoint: fmt.Sprintf("m%04d:1", i), Record: []byte(`{}`)})
		}
		if added, err := pool.Offer(t.Context(), offers, start); added != len(offers) || err != nil {
			t.Fatalf("offered %d: %d, %v", len(offers), added, err)
		}
		claimed, err := pool.Claim(t.Context(), start, start.Add(time.Minute), 1100)
		if err != nil || len(claimed) != 1100 {
			t.Fatalf("claimed %d, %v", len(claimed), err)
		}
		rest, err := pool.Claim(t.Context(), start, start.Add(time.Minute), 1100)
		if err != nil || len(rest) != 103 || rest[0].Endpoint != "m1100:1" {
			t.Errorf("claimed %d more, %v", len(rest), err)
		}
		members, known, due, err := pool.Size(t.Context())
		if members != 0 || known != 1203 || due != 1203 || err != nil {
			t.Errorf("size %d, %d, %d, %v: all claims have ended by now", members, known, due, err)
		}
	})
}

// TestClaimTakesOnce: what one daemon claimed no other gets, until the claim ends.
func TestClaimTakesOnce(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		for i, endpoint := range []string{"late:1", "early:1", "later:1"} {
			due := start.Add(time.Duration([]int{2, 1, 3}[i]) * time.Minute)
			if _, err := pool.Offer(t.Context(), []alloc.Offer{{Endpoint: endpoint, Record: []byte(`{}`)}}, due); err != nil {
				t.Fatal(err)
			}
		}
		claim := func(now time.Duration) string {
			t.Helper()
			got, err := pool.Claim(t.Context(), start.Add(now), start.Add(now+10*time.Minute), 5)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, c := range got {
				out = append(out, fmt.Sprintf("%s %d %s", c.Endpoint, c.Version, c.Record))
			}
			return fmt.Sprint(out)
		}
		for _, step := range []struct {
			now  time.Duration
			want string
		}{
			{0, "[]"},
			{2 * time.Minute, "[early:1 1 {} late:1 1 {}]"},
			{2 * time.Minute, "[]"},
			{3 * time.Minute, "[later:1 1 {}]"},
			{12*time.Minute - time.Millisecond, "[]"},
			{12 * time.Minute, "[early:1 1 {} late:1 1 {}]"},
		} {
			if got := claim(step.now); got != step.want {
				t.Errorf("claimed after %v: %s, want %s", step.now, got, step.want)
			}
		}
		// A due time without a record, which only others can leave, is claimed without one.
		store.Raw().HDel(t.Context(), pool.Keys()[2], "later:1")
		if got, want := claim(20*time.Minute), "[later:1 0 ]"; got != want {
			t.Errorf("claimed %s, want %s", got, want)
		}
		if _, err := pool.Claim(t.Context(), start, start, 5); err == nil {
			t.Error("a claim that ends at once is no claim")
		}
	})
}

func TestClaimThese(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		offers := []alloc.Offer{{Endpoint: "a:1", Record: []byte(`{}`)}, {Endpoint: "b:1", Record: []byte(`{}`)}}
		if _, err := pool.Offer(t.Context(), offers, start); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Offer(t.Context(), []alloc.Offer{{Endpoint: "c:1", Record: []byte(`{}`)}}, start.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		ask := []string{"c:1", "b:1", "unknown:1", "b:1"}
		for i, want := range []string{"[b:1]", "[]"} {
			got, err := pool.ClaimThese(t.Context(), ask, start, start.Add(time.Minute))
			var endpoints []string
			for _, c := range got {
				endpoints = append(endpoints, c.Endpoint)
			}
			if fmt.Sprint(endpoints) != want || err != nil {
				t.Errorf("claim %d of %v: %v, %v; want %s", i+1, ask, endpoints, err, want)
			}
		}
		if got, want := set(t, store, pool.Keys()[3]), `"a:1"=1.7e+12 "b:1"=1.70000006e+12 "c:1"=1.7000036e+12`; got != want {
			t.Errorf("due %s, want %s", got, want)
		}
		if got, err := pool.ClaimThese(t.Context(), nil, start, start.Add(time.Minute)); got != nil || err != nil {
			t.Errorf("claim of none: %v, %v", got, err)
		}
	})
}

// TestLostPoolIsWrittenByNobody: without meta, nothing is offered, claimed or settled, or else a lost
// pool would look like an empty one.
func TestLostPoolIsWrittenByNobody(t *testing.T) {
	alloctest.Stores(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		ctx := t.Context()
		_, offered := pool.Offer(ctx, []alloc.Offer{{Endpoint: "a:1", Record: []byte(`{}`)}}, start)
		_, claimed := pool.Claim(ctx, start, start.Add(1e9), 1)
		_, these := pool.ClaimThese(ctx, []string{"a:1"}, start, start.Add(1e9))
		_, settled := pool.Settle(ctx, []alloc.Settlement{{Endpoint: "a:1", Action: alloc.Admit, Member: "http://a:1"}}, alloc.SettlePolicy{})
		noted := pool.SetMeta(ctx, map[string]string{"x": "y"})
		for name, err := range map[string]error{"offer": offered, "claim": claimed, "claim these": these, "settle": settled, "set meta": noted} {
			if !errors.Is(err, alloc.ErrPoolLost) {
				t.Errorf("%s: %v, want lost", name, err)
			}
		}
		if n, err := store.Raw().Exists(ctx, pool.Keys()...).Result(); n != 0 || err != nil {
			t.Errorf("%d keys exist, %v", n, err)
		}
	})
}

func TestInitAndMeta(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		ctx := t.Context()
		if created, err := pool.Init(ctx); created || err != nil {
			t.Errorf("init again: %v, %v", created, err)
		}
		if err := pool.SetMeta(ctx, map[string]string{"guard": "frozen", "guard_since_ms": "5"}); err != nil {
			t.Fatal(err)
		}
		meta, err := pool.Meta(ctx)
		delete(meta, "created_ms")
		if want := "map[generation:1 guard:frozen guard_since_ms:5 schema:1]"; err != nil || fmt.Sprint(meta) != want {
			t.Errorf("meta %v, %v; want %s", meta, err, want)
		}
		for _, field := range []string{"schema", "generation", "created_ms", "emptied_min"} {
			if err := pool.SetMeta(ctx, map[string]string{field: "7"}); err == nil {
				t.Errorf("%s was set from outside", field)
			}
		}
		store.Raw().HSet(ctx, pool.Keys()[6], "schema", "2")
		if _, err := pool.Init(ctx); !errors.Is(err, alloc.ErrSchema) {
			t.Errorf("a pool of schema 2: %v", err)
		}
	})
}

func TestParsePoolName(t *testing.T) {
	for _, name := range []string{"web", "0", "a-b_c", "a234567890123456789012345678901b"} {
		if got, err := alloc.ParsePoolName(name); got != name || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "-a", "_a", "Web", "a b", "a}", "a\n", "ä", "a234567890123456789012345678901bc"} {
		if _, err := alloc.ParsePoolName(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	_, err := alloc.ParsePoolName("a}b")
	if want := `"a}b" is no pool name; write 1 to 32 of a-z 0-9 _ -, beginning with a letter or digit`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
}
