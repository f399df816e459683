package alloc_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// classic is the script that everybody may run on a pool's set beside evenpool. It is the measure of
// what an allocation is.
const classic = `
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then return nil end
redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen`

// classicTimes is the classic script ARGV[1] times, one after the other, giving what each chose.
const classicTimes = `
local all = {}
for i = 1, tonumber(ARGV[1]) do
  local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not chosen then return all end
  redis.call('ZINCRBY', KEYS[1], 1, chosen)
  all[i] = chosen
end
return all`

// withPools runs a test on each store with a pool that has been made.
func withPools(t *testing.T, test func(t *testing.T, store *alloc.Store, pool *alloc.Pool)) {
	alloctest.Stores(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		if created, err := pool.Init(t.Context()); err != nil || !created {
			t.Fatalf("init: %v, %v", created, err)
		}
		test(t, store, pool)
	})
}

// plant puts members with counts into the set as others would.
func plant(t testing.TB, store *alloc.Store, pool *alloc.Pool, counts map[string]float64) {
	t.Helper()
	var members []redis.Z
	for member, count := range counts {
		members = append(members, redis.Z{Member: member, Score: count})
	}
	if len(members) == 0 {
		return
	}
	if err := store.Raw().ZAdd(t.Context(), eligible(pool), members...).Err(); err != nil {
		t.Fatal(err)
	}
}

func eligible(pool *alloc.Pool) string { return pool.Keys()[0] }

// set gives the set as "member=count member=count", the next first, as the server prints counts.
func set(t testing.TB, store *alloc.Store, key string) string {
	t.Helper()
	list, err := store.Raw().ZRangeWithScores(t.Context(), key, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, z := range list {
		out = append(out, fmt.Sprintf("%q=%v", z.Member, z.Score))
	}
	return strings.Join(out, " ")
}

// state gives the whole of a pool as text, to compare before and after.
func state(t testing.TB, store *alloc.Store, pool *alloc.Pool) string {
	t.Helper()
	ctx := t.Context()
	var out []string
	for _, key := range pool.Keys() {
		kind, err := store.Raw().Type(ctx, key).Result()
		if err != nil {
			t.Fatal(err)
		}
		var content any
		switch kind {
		case "none":
			content = "-"
		case "zset":
			content = set(t, store, key)
		case "hash":
			content, err = store.Raw().HGetAll(ctx, key).Result()
		case "stream":
			content, err = store.Raw().XRange(ctx, key, "-", "+").Result()
		case "string":
			content, err = store.Raw().Get(ctx, key).Result()
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %s: %v", key, kind, content))
	}
	return strings.Join(out, "\n")
}

// settle settles one proxy and gives what became of it.
func settle(t testing.TB, pool *alloc.Pool, policy alloc.SettlePolicy, s alloc.Settlement) alloc.Settled {
	t.Helper()
	got, err := pool.Settle(t.Context(), []alloc.Settlement{s}, policy)
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

// version is the version of an endpoint's record, 0 for none.
func version(t testing.TB, pool *alloc.Pool, endpoint string) int64 {
	t.Helper()
	record, err := pool.Look(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return record.Version
}

func admit(t testing.TB, pool *alloc.Pool, policy alloc.SettlePolicy, endpoint string) alloc.Settled {
	t.Helper()
	return settle(t, pool, policy, alloc.Settlement{
		Endpoint: endpoint, Version: version(t, pool, endpoint), Record: []byte(`{}`),
		Action: alloc.Admit, Member: "http://" + endpoint, Reason: "passed",
	})
}

func retire(t testing.TB, pool *alloc.Pool, endpoint string) alloc.Settled {
	t.Helper()
	return settle(t, pool, alloc.SettlePolicy{}, alloc.Settlement{
		Endpoint: endpoint, Version: version(t, pool, endpoint), Record: []byte(`{}`),
		Action: alloc.Retire, Member: "http://" + endpoint, Reason: "failed",
	})
}

func open(t testing.TB, options alloc.Options) *alloc.Store {
	t.Helper()
	store, err := alloc.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

var start = time.UnixMilli(1_700_000_000_000)

// poolAt gives a pool that has been made, in a store whose clock the test sets.
func poolAt(t testing.TB, kind string, now *time.Time) (*alloc.Store, *alloc.Pool) {
	t.Helper()
	var options alloc.Options
	if kind == "redis" {
		options = alloctest.Redis(t)
	} else {
		options = alloctest.Embedded(t)
	}
	options.Now = func() time.Time { return *now }
	store := open(t, options)
	pool := store.Pool(alloctest.PoolName(t))
	if _, err := pool.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store, pool
}
