package alloc_test

import (
	"slices"
	"testing"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// What is tried out on a copy of an embedded store leaves the store alone, which goes on meanwhile.
func TestScratchIsACopy(t *testing.T) {
	options := alloctest.Embedded(t)
	store, err := alloc.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	pool := store.Pool("web")
	if _, err := pool.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	admitted := []alloc.Settlement{
		{Endpoint: "192.0.2.1:80", Action: alloc.Admit, Member: "http://192.0.2.1:80"},
		{Endpoint: "192.0.2.2:80", Action: alloc.Admit, Member: "http://192.0.2.2:80"},
	}
	if _, err := pool.Settle(t.Context(), admitted, alloc.SettlePolicy{Start: "7"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil { // it saves
		t.Fatal(err)
	}
	if store, err = alloc.Open(options); err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	scratch, err := alloc.OpenScratch(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Close()
	if err := scratch.Load(options.StateDir); err != nil {
		t.Fatal(err)
	}
	copied := scratch.Pool("web")
	counts := []alloc.Allocation{{Member: "http://192.0.2.1:80", Count: 9}, {Member: "http://192.0.2.3:80", Count: 1}}
	if err := scratch.SetCounts(t.Context(), copied, counts); err != nil {
		t.Fatal(err)
	}
	if got, err := copied.Allocate(t.Context(), 3); err != nil || len(got) != 3 || got[2].Member != "http://192.0.2.1:80" || got[2].Count != 10 {
		t.Errorf("the copy allocates %v, %v", got, err)
	}
	if events, err := copied.Events(t.Context(), 10); err != nil || len(events) != 2 {
		t.Errorf("the copy has the events %v, %v", events, err)
	}
	want := []alloc.Allocation{{Member: "http://192.0.2.1:80", Count: 7}, {Member: "http://192.0.2.2:80", Count: 7}}
	if got, err := store.Pool("web").Members(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the store has %v, %v", got, err)
	}
}
