package alloc_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// TestAllocateIsTheClassicScript: n allocations in one call give the members, the order and the
// counts that n runs of the classic script give, whatever is in the set.
func TestAllocateIsTheClassicScript(t *testing.T) {
	withPools(t, isTheClassicScript)
}

// TestAllocateIsTheClassicScriptInEveryLocale: Lua compares texts as the server's locale has it, the
// sorted set by bytes, and ties go by bytes.
func TestAllocateIsTheClassicScriptInEveryLocale(t *testing.T) {
	// A comparison that the locale decides otherwise than bytes do: Turkish has a dotless i before i.
	for locale, less := range map[string]string{"C": `'B' < 'a'`, "de_DE.UTF-8": `'a' < 'B'`, "tr_TR.UTF-8": `'\196\177' < 'i'`} {
		t.Run(locale, func(t *testing.T) {
			server := alloctest.NewServerIn(t, []string{"LC_ALL=" + locale, "LOCPATH=" + makeLocale(t, locale)}, "--appendonly", "no")
			store := open(t, alloc.Options{URL: server.URL})
			if is, err := store.Raw().Eval(t.Context(), "return "+less, nil).Bool(); err != nil || !is {
				t.Fatalf("the server is not in this locale: %s is %t, %v", less, is, err)
			}
			pool := store.Pool(alloctest.PoolName(t))
			if _, err := pool.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			isTheClassicScript(t, store, pool)
		})
	}
}

// makeLocale compiles a locale into a directory of its own: the system has few.
func makeLocale(t *testing.T, name string) (dir string) {
	dir = t.TempDir()
	if name == "C" {
		return dir
	}
	language, charset, _ := strings.Cut(name, ".")
	if out, err := exec.Command("localedef", "-i", language, "-f", charset, filepath.Join(dir, name)).CombinedOutput(); err != nil {
		t.Skipf("NOT TESTED in %s, which cannot be made here (Debian: apt-get install locales): %v: %s", name, err, out)
	}
	return dir
}

func isTheClassicScript(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
	twin := store.Pool(alloctest.PoolName(t))
	whole := rapid.Map(rapid.IntRange(0, 12), func(n int) float64 { return float64(n) })
	foreign := rapid.OneOf(whole, whole, whole, rapid.Float64Range(-3, 12), rapid.SampledFrom([]float64{
		math.Inf(-1), math.Inf(1), 1 << 52, 1<<53 - 1, 1 << 53, 1<<53 + 2, 1e17, -1, 0.5, 1e-17,
	}))
	member := rapid.OneOf(
		rapid.StringMatching(`http://[ab]{0,3}[0-9]:1`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 12), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 3), func(b []byte) string { return longPrefix + string(b) }),
	)
	if store.Embedded() {
		// Nobody else reaches it, and its Lua does not read all numbers.
		foreign = whole
	}
	rapid.Check(t, func(r *rapid.T) {
		var counts map[string]float64
		n := rapid.IntRange(1, 120).Draw(r, "n")
		switch kind := rapid.IntRange(0, 19).Draw(r, "kind"); {
		case kind == 0:
			counts = manyMembers(rapid.Uint64().Draw(r, "seed"))
			n *= 6
		case kind < 10:
			counts = rapid.MapOfN(member, foreign, 1, 10).Draw(r, "members")
		default:
			counts = rapid.MapOfN(member, whole, 1, 40).Draw(r, "members")
		}
		ctx := context.Background()
		for _, p := range []*alloc.Pool{pool, twin} {
			store.Raw().Del(ctx, eligible(p))
			plant(t, store, p, counts)
		}
		got, err := pool.Allocate(ctx, n)
		if err != nil {
			r.Fatal(err)
		}
		var members []string
		for _, a := range got {
			members = append(members, a.Member)
		}
		wanted, err := store.Raw().Eval(ctx, classicTimes, []string{eligible(twin)}, n).StringSlice()
		if err != nil {
			r.Fatal(err)
		}
		if !slices.Equal(members, wanted) {
			r.Fatalf("allocated\n%q, the classic script\n%q", members, wanted)
		}
		if got, want := set(t, store, eligible(pool)), set(t, store, eligible(twin)); got != want {
			r.Fatalf("the set is\n%s, after the classic script\n%s", got, want)
		}
	})
}

const longPrefix = "http://a-long-prefix-that-all-share/"

// manyMembers gives up to 2,000 with few counts, so that there are ties, every second of them with a
// long prefix, and with all bytes there are.
func manyMembers(seed uint64) map[string]float64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	counts := map[string]float64{}
	largest := 1 + rng.IntN(20)
	for i := range 200 + rng.IntN(1801) {
		text := make([]byte, 1+rng.IntN(4))
		for k := range text {
			text[k] = byte(rng.IntN(256))
		}
		name := string(text)
		if i%2 == 0 {
			name = longPrefix + name
		}
		counts[name] = float64(rng.IntN(largest))
	}
	return counts
}
