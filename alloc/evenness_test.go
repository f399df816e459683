package alloc_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

func TestEvenness(t *testing.T) {
	alike, many := map[string]float64{}, map[string]float64{}
	for i := range 2500 {
		many[fmt.Sprintf("http://m%d:1", i)] = float64(i)
	}
	for i := range 3 {
		alike[fmt.Sprintf("http://m%d:1", i)] = 7
	}
	for _, test := range []struct {
		name   string
		counts map[string]float64
		want   alloc.Evenness
	}{
		{"empty", nil, alloc.Evenness{}},
		{"never allocated", map[string]float64{"http://a:1": 0, "http://b:1": 0}, alloc.Evenness{Members: 2}},
		{"all alike", alike, alloc.Evenness{Members: 3, Lowest: 7, Highest: 7, Mean: 7}},
		// By hand: the mean difference of all pairs, over twice the mean.
		{"one has everything", map[string]float64{"http://a:1": 0, "http://b:1": 0, "http://c:1": 0, "http://d:1": 8},
			alloc.Evenness{Members: 4, Highest: 8, Mean: 2, Gini: 0.75}},
		{"1 and 3", map[string]float64{"http://a:1": 1, "http://b:1": 3}, alloc.Evenness{Members: 2, Lowest: 1, Highest: 3, Mean: 2, Gini: 0.25}},
		{"more than a page", many, alloc.Evenness{Members: 2500, Highest: 2499, Mean: 1249.5, Gini: 0.33346667}},
	} {
		t.Run(test.name, func(t *testing.T) {
			alloctest.Stores(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
				plant(t, store, pool, test.counts)
				got, err := pool.Evenness(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got.Gini-test.want.Gini) < 1e-8 {
					got.Gini = test.want.Gini
				}
				if got != test.want {
					t.Errorf("%+v, want %+v", got, test.want)
				}
			})
		})
	}
}

func TestEvennessOfAnotherType(t *testing.T) {
	alloctest.Stores(t, func(t *testing.T, store *alloc.Store, pool *alloc.Pool) {
		store.Raw().Set(t.Context(), eligible(pool), "x", 0)
		if _, err := pool.Evenness(t.Context()); !errors.Is(err, alloc.ErrWrongType) {
			t.Errorf("%v, want a wrong type", err)
		}
	})
}
