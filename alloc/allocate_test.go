package alloc_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

func TestAllocateLeastFirstTiesByBytes(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		plant(t, store, pool, map[string]float64{"http://b:1": 1, "http://a:9": 1, "http://a:10": 1, "http://Z:1": 1, "http://c:1": 3})
		got, err := pool.Allocate(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		want := "[{http://Z:1 2} {http://a:10 2} {http://a:9 2} {http://b:1 2}" +
			" {http://Z:1 3} {http://a:10 3} {http://a:9 3} {http://b:1 3} {http://Z:1 4} {http://a:10 4}]"
		if fmt.Sprint(got) != want {
			t.Errorf("allocated\n%v, want\n%s", got, want)
		}
		if got, want := set(t, store, eligible(pool)), `"http://a:9"=3 "http://b:1"=3 "http://c:1"=3 "http://Z:1"=4 "http://a:10"=4`; got != want {
			t.Errorf("the set is\n%s, want\n%s", got, want)
		}
	})
}

func TestAllocateEmptyIsNotLost(t *testing.T) {
	alloctest.Stores(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		if got, err := pool.Allocate(t.Context(), 1); !errors.Is(err, alloc.ErrPoolLost) || got != nil {
			t.Errorf("from a pool that was never made: %v, %v; want lost", got, err)
		}
		if _, err := pool.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := pool.Allocate(t.Context(), 3); err != nil || got != nil {
			t.Errorf("from an empty pool: %v, %v; want nothing", got, err)
		}
		// R8: members without meta still allocate; without both, the pool is lost.
		plant(t, store, pool, map[string]float64{"http://a:1": 0})
		store.Raw().Del(t.Context(), pool.Keys()[6])
		if got, err := pool.Allocate(t.Context(), 1); err != nil || len(got) != 1 {
			t.Errorf("without meta: %v, %v; want the member", got, err)
		}
		store.Raw().Del(t.Context(), pool.Keys()...)
		if _, err := pool.Allocate(t.Context(), 1); !errors.Is(err, alloc.ErrPoolLost) {
			t.Errorf("all keys gone: %v; want lost", err)
		}
	})
}

// TestAllocateMoreThanOneScriptTakes: more than 500 are several scripts, and the order goes on.
func TestAllocateMoreThanOneScriptTakes(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		counts := map[string]float64{}
		for i := range 300 {
			counts[fmt.Sprintf("http://m%03d:1", i)] = 0
		}
		plant(t, store, pool, counts)
		got, err := pool.Allocate(t.Context(), 1201)
		if err != nil || len(got) != 1201 {
			t.Fatalf("%d allocations, %v", len(got), err)
		}
		for i, a := range got {
			want := alloc.Allocation{Member: fmt.Sprintf("http://m%03d:1", i%300), Count: int64(i/300 + 1)}
			if a != want {
				t.Fatalf("allocation %d is %v, want %v", i, a, want)
			}
		}
	})
}

// TestAllocateBesideTheClassicScript: many at once, both ways: every answer is counted once, and the
// counts stay within one of each other.
func TestAllocateBesideTheClassicScript(t *testing.T) {
	withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		counts := map[string]float64{}
		for i := range 17 {
			counts[fmt.Sprintf("http://m%d:1", i)] = 0
		}
		plant(t, store, pool, counts)
		const workers, each = 8, 60
		var all sync.WaitGroup
		answers := make(chan int, 2*workers)
		for w := range workers {
			all.Go(func() {
				n := 0
				for i := range each {
					got, err := pool.Allocate(t.Context(), 1+(i+w)%5)
					if err != nil {
						t.Error(err)
					}
					n += len(got)
				}
				answers <- n
			})
			all.Go(func() {
				for range each {
					if err := store.Raw().Eval(t.Context(), classic, []string{eligible(pool)}).Err(); err != nil {
						t.Error(err)
					}
				}
				answers <- each
			})
		}
		all.Wait()
		close(answers)
		total := int64(0)
		for n := range answers {
			total += int64(n)
		}
		members, err := pool.Members(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		for _, m := range members {
			sum += m.Count
		}
		if spread := members[len(members)-1].Count - members[0].Count; sum != total || spread > 1 {
			t.Errorf("%d answers, counts sum up to %d and differ by %d", total, sum, spread)
		}
	})
}

// TestAllocateCountsOfOthers: what is no whole number is told as the nearest one towards zero.
func TestAllocateCountsOfOthers(t *testing.T) {
	for score, want := range map[float64]int64{-1.5: 0, 0.5: 1, 1e17: 1e17, math.Inf(1): math.MaxInt64, math.Inf(-1): math.MinInt64} {
		withPools(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
			if store.Embedded() && score == 1e17 {
				t.Skip("its Lua does not read 1e+17, and nobody else can write it there")
			}
			plant(t, store, pool, map[string]float64{"http://a:1": score})
			got, err := pool.Allocate(t.Context(), 1)
			if err != nil || len(got) != 1 || got[0].Count != want {
				t.Errorf("a score of %v: %v, %v; want %d", score, got, err, want)
			}
		})
	}
}
