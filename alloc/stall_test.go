package alloc_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// TestR2_RedisStandsStill: Redis is stopped for ten seconds under 1,000 workers. Each request is
// answered within its budget, nothing is counted twice, and afterwards memory and goroutines are what
// they were.
func TestR2_RedisStandsStill(t *testing.T) {
	const workers, still, late = 1000, 10 * time.Second, 2 * time.Second // late: a busy machine
	server := alloctest.NewServer(t, "--appendonly", "no")
	store := open(t, alloc.Options{URL: server.URL})
	pool := store.Pool("p")
	if _, err := pool.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	plant(t, store, pool, map[string]float64{"http://a:1": 0, "http://b:1": 0, "http://c:1": 0})
	if _, err := pool.Allocate(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	goroutines, memory := runtime.NumGoroutine(), heap()

	answers, unknown := atomic.Int64{}, atomic.Int64{}
	answers.Store(3)
	ask := func(n int, budget time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), budget)
		defer cancel()
		began := time.Now()
		got, err := pool.Allocate(ctx, n)
		if took := time.Since(began); took > budget+late {
			t.Errorf("a request took %v of %v", took, budget)
		}
		answers.Add(int64(len(got)))
		switch {
		case errors.Is(err, alloc.ErrOutcomeUnknown):
			unknown.Add(int64(n - len(got)))
		case err != nil && !errors.Is(err, alloc.ErrUnavailable):
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	var ended atomic.Bool
	for range workers {
		all.Go(func() {
			for !ended.Load() {
				ask(1+rand.IntN(7), time.Duration(1+rand.IntN(4000))*time.Millisecond)
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	before := answers.Load()
	server.Pause()
	time.Sleep(still)
	server.Resume()
	if unknown.Load() == 0 {
		t.Error("no outcome was unknown: Redis did not stand still")
	}
	during := answers.Load()
	time.Sleep(200 * time.Millisecond)
	ended.Store(true)
	all.Wait()
	if before == 3 || answers.Load() == during {
		t.Errorf("%d answers before, %d after it stood still: it serves nobody", before-3, answers.Load()-during)
	}
	members, err := pool.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, m := range members {
		sum += m.Count
	}
	t.Logf("%d answers, %d unknown, the counts' sum is %d", answers.Load(), unknown.Load(), sum)
	if sum < answers.Load() || sum > answers.Load()+unknown.Load() {
		t.Errorf("%d answers, %d unknown, but the counts' sum is %d", answers.Load(), unknown.Load(), sum)
	}
	for until := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines+10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines before, %d after", goroutines, runtime.NumGoroutine())
		}
	}
	if after := heap(); after > memory+2<<20 {
		t.Errorf("%d bytes before, %d after", memory, after)
	}
}

// heap is what is held, in bytes.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold goes with the second
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
