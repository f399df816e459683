package daemon

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"evenpool/alloc"
	"evenpool/daemon/api"
)

// What is written by hand is what the encoder writes, whatever others put into the set.
func TestAllocationsAreWrittenAsJSON(t *testing.T) {
	member := rapid.OneOf(rapid.String(), rapid.StringMatching(`https?://[a-z.:@%"\\<>&]{0,20}`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	allocation := rapid.Custom(func(t *rapid.T) alloc.Allocation {
		return alloc.Allocation{Member: member.Draw(t, "member"), Count: rapid.Int64().Draw(t, "count")}
	})
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(allocation, 1, 5).Draw(t, "list")
		one, err1 := encode(api.AllocateOne{Proxy: &list[0].Member, Count: list[0].Count})
		answer := api.AllocateMany{}
		for _, a := range list {
			answer.Proxies = append(answer.Proxies, api.Allocation{Proxy: a.Member, Count: a.Count})
		}
		many, err2 := encode(answer)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if got := string(appendOne(nil, list[0])); got != string(one) {
			t.Errorf("one: %q, want %q", got, one)
		}
		if got := string(appendMany(nil, list)); got != string(many) {
			t.Errorf("many: %q, want %q", got, many)
		}
	})
}

// Of several wrong parameters, now the one and now the other was complained of.
func TestTheSameQueryGetsTheSameError(t *testing.T) {
	want := `unknown parameter \"a\"`
	for range 20 {
		w := ask(t, &fakeBackend{}, "POST", "/v1/allocate?c=1&b=2&a=3&d=4")
		if w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Fatalf("%d %s, want %s", w.Code, w.Body, want)
		}
	}
}
