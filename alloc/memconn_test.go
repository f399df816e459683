package alloc_test

import (
	"fmt"
	"strings"
	"testing"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// A snapshot of more than a few kilobytes was loaded by a pipeline in which
// client and server waited for each other until the time was over; so did the
// reading of some dozens of pools.
func TestEmbeddedLoadsMoreThanAPipeHolds(t *testing.T) {
	options := alloctest.Embedded(t)
	store := open(t, options)
	record := []byte(`"` + strings.Repeat("x", 500) + `"`)
	var offers []alloc.Offer
	for i := range 1000 {
		offers = append(offers, alloc.Offer{Endpoint: fmt.Sprintf("e:%d", i+1), Record: record})
	}
	for i := range 40 {
		pool := store.Pool(fmt.Sprintf("pool-%d", i))
		if _, err := pool.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Offer(t.Context(), offers, start); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = open(t, options)
	for i := range 40 {
		if _, known, _, err := store.Pool(fmt.Sprintf("pool-%d", i)).Size(t.Context()); err != nil || known != 1000 {
			t.Errorf("pool-%d: %d known, %v", i, known, err)
		}
	}
}
