package sources

import (
	"maps"
	"slices"
	"testing"

	"evenpool/sources/proxyurl"
)

func TestL3_PortsAreRefusedWhenOffered(t *testing.T) {
	src := Source{Scheme: proxyurl.HTTP, Allow: allow("10.1.0.0/16")}
	l, _, err := parse(t, `1.2.3.4:80
1.2.3.4:25
1.2.3.5:25
[2606:4700::1]:22
mail.example.org:587
10.1.0.1:25
10.1.0.1:8080
`, src, Limits{})
	if err != nil || len(l.Candidates) != 7 || l.Rejects != nil {
		t.Fatalf("when parsed: %v, %v, %v; want nothing refused yet", show(l.Candidates), l.Rejects, err)
	}
	before := slices.Clone(l.Candidates)
	offered, refused := Offerable(l, src)
	if got, want := show(offered), []string{"1.2.3.4:80[http]", "10.1.0.1:25[http]", "10.1.0.1:8080[http]"}; !slices.Equal(got, want) {
		t.Errorf("offered %v, want %v", got, want)
	}
	if want := map[string]int{"port-25": 2, "port-22": 1, "port-587": 1}; !maps.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if !slices.Equal(show(before), show(l.Candidates)) {
		t.Error("the list was changed")
	}
	// An old copy, offered after the source has closed its prefix again.
	src.Allow = nil
	if _, refused := Offerable(l, src); refused["private"] != 2 {
		t.Errorf("refused %v, want 2 private", refused)
	}
	if offered, refused := Offerable(List{Candidates: l.Candidates[:1]}, src); len(offered) != 1 || refused != nil {
		t.Errorf("nothing to refuse: %v, %v", offered, refused)
	}
}
