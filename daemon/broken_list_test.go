package daemon

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/lab"
)

// A thousand members, whose list turns into a page, then into nothing, then is
// gone: all of them stay, with their counts, as long as they pass, over a restart
// too. One that does not pass leaves: a broken list keeps nobody either.
func TestL6_ABrokenListCostsNoMember(t *testing.T) {
	const size = 1000
	var answer atomic.Value // a func(http.ResponseWriter), what the list's URL gives
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Load().(func(http.ResponseWriter))(w) }))
	defer web.Close()
	text := func(s string) func(http.ResponseWriter) { return func(w http.ResponseWriter) { io.WriteString(w, s) } }

	r := newRig(t, rigOptions{population: []lab.Spec{{Behaviour: "http", Count: size}}, store: alloctest.Redis,
		pool: "    eligibility: {schemes: [http], require: [http], fall: 1}\n"})
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	answer.Store(text(r.lab.ListText()))
	r.yaml = strings.Replace(r.yaml, "file://"+filepath.Join(r.dir, "list.txt"), web.URL+"/list.txt", 1)
	if err := os.Remove(filepath.Join(r.dir, "list.txt")); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.await("the list to be read", func() bool { return r.poolStatus().Sources[0].Candidates == size })
	r.await("a thousand members", func() bool { return len(r.counts()) == size })
	r.allocate(100)
	before := r.counts()

	check := func(what, why string) {
		t.Helper()
		if s := r.fetchList(); !s.Stale || s.Candidates != size || !strings.Contains(s.Error, why) {
			t.Errorf("%s: the source says %+v, want it stale for %q", what, s, why)
		}
		if c := r.cycle(); c.ProbedMembers != size || c.Passed != size || c.Retired+c.Held+c.VoidSlices != 0 {
			t.Errorf("%s: the cycle says %+v", what, c)
		}
		if after := r.counts(); !maps.Equal(before, after) {
			t.Fatalf("%s: %d members, or other counts; there were %d", what, len(after), len(before))
		}
	}
	for _, broken := range []struct {
		what, why string
		answer    func(http.ResponseWriter)
	}{
		{"a page", "a page of HTML", text("<!DOCTYPE html>\n<html><head><title>Sorry</title></head>\n<body><h1>Back soon</h1></body></html>\n")},
		{"nothing", "names no candidate", text("")},
		{"404", "404", func(w http.ResponseWriter) { http.Error(w, "not found", http.StatusNotFound) }},
	} {
		answer.Store(broken.answer)
		for range 3 {
			check(broken.what, broken.why)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.await("the good copy to be there again", func() bool { return r.poolStatus().Sources[0].Candidates == size })
	check("404 after a restart", "404")

	if err := r.lab.SetFailing("http-7", true); err != nil {
		t.Fatal(err)
	}
	if c := r.cycle(); c.Retired != 1 || len(r.counts()) != size-1 {
		t.Errorf("one member fails, the cycle says %+v", c)
	}
}

// fetchList has the rig's list fetched now and says what came of it.
func (r *rig) fetchList() api.Source {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	var s api.Source
	r.await("a fetch to begin", func() (begun bool) { // after a restart the first one may be under way
		var err error
		s, err = r.client.FetchSource(ctx, "lab")
		var busy *api.Error
		if err != nil && !(errors.As(err, &busy) && busy.Code == api.CodeBusy) {
			r.t.Fatal(err)
		}
		return err == nil
	})
	return s
}
