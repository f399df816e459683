package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"evenpool/daemon/api"
)

// publisher is a web server with one list, whose text changes under way.
type publisher struct {
	*httptest.Server
	text   atomic.Pointer[string]
	header atomic.Pointer[http.Header] // of the last request
}

func newPublisher(t *testing.T, text string) *publisher {
	p := &publisher{}
	p.text.Store(&text)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.header.Store(&r.Header)
		io.WriteString(w, *p.text.Load())
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *publisher) publish(text string) { p.text.Store(&text) }

// goodList has three candidates, nothing that listens, and two records that are
// rejected.
const goodList = "ip,port,type\n127.0.0.1,9,http\n127.0.0.1,19,socks5\n127.0.0.1,29,http\n127.0.0.1,0,http\n10.0.0.1,80,http\n"

// A list that turns into a web page keeps its good copy, in the daemon and over a
// restart with the list's server gone; each step is told by the commands.
func TestL6_TheGoodCopyOutlivesItsServerAndARestart(t *testing.T) {
	list := newPublisher(t, goodList)
	h := newHost(t, "", quickPool)
	const key = "hunter2-is-a-key"
	text, err := os.ReadFile(h.config())
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("sources:\n  - {name: mine, url: %q, allow_addresses: [127.0.0.0/8], headers: {X-Key: %s}, user_agent: me/1.0, timeout: 2s}\n", list.URL+"/list.csv?key="+key, key)
	if err := os.WriteFile(h.config(), []byte(strings.Replace(string(text), "sources:\n", more, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	mine := func() api.Source {
		t.Helper()
		code, stdout, stderr := runCLI(t, "sources", "--socket", h.client.Socket, "-o", "json")
		var all api.Sources
		if err := json.Unmarshal([]byte(stdout), &all); code != exitDone || stderr != "" || err != nil || len(all.Sources) != 2 {
			t.Fatalf("exit %d, %v, %s, %s", code, err, stdout, stderr)
		}
		return all.Sources[slices.IndexFunc(all.Sources, func(s api.Source) bool { return s.Name == "mine" })]
	}
	fetch := func(code int, stderr string) api.Source {
		t.Helper()
		gotCode, stdout, gotStderr := fetchMine(t, h, "-o", "json")
		var s api.Source
		if err := json.Unmarshal([]byte(stdout), &s); err != nil || gotCode != code || !strings.HasPrefix(gotStderr, stderr) {
			t.Errorf("exit %d, %v, stderr %q, stdout %s; want %d, %q", gotCode, err, gotStderr, stdout, code, stderr)
		}
		return s
	}

	h.await("the list's first fetch", func() bool { return mine().State == api.SourceGood })
	first := mine()
	if first.Candidates != 3 || first.New != 3 || first.Format != "csv" || first.Rejects["bad-port"] != 1 || first.Rejects["private"] != 1 || len(first.Samples) != 2 || first.NextFetchAt.IsZero() {
		t.Errorf("after the first fetch: %+v", first)
	}
	if header := *list.header.Load(); header.Get("X-Key") != key || header.Get("User-Agent") != "me/1.0" {
		t.Errorf("the list was asked for with %v", header)
	}
	list.publish(goodList + "127.0.0.1,39,http\n")
	if s := fetch(exitDone, ""); s.State != api.SourceGood || s.Candidates != 4 || s.New != 1 {
		t.Errorf("after a good fetch: %+v", s)
	}
	list.publish("<!DOCTYPE html>\n<html><body><h1>Please wait</h1></body></html>\n")
	good := fetch(exitFailed, "evenpool: fetch mine: ")
	if good.State != api.SourceStale || good.Candidates != 4 || !good.TriedAt.After(good.FetchedAt) {
		t.Errorf("after a page in place of the list: %+v", good)
	}
	if code, _, stderr := runCLI(t, "sources", "check", "mine", "-c", h.config()); code != exitFailed || !strings.Contains(stderr, "\nevenpool: fetch mine: a page of HTML") {
		t.Errorf("check: exit %d, %q", code, stderr)
	}

	list.Close()
	h.stop()
	h.start()
	h.await("the good copy of before", func() bool { return mine().Candidates == 4 })
	if s := mine(); !s.FetchedAt.Equal(good.FetchedAt) {
		t.Errorf("after a restart the copy is of %s, and was of %s", s.FetchedAt, good.FetchedAt)
	}
	if s := fetch(exitFailed, "evenpool: fetch mine: "); s.State != api.SourceStale || s.Candidates != 4 {
		t.Errorf("after a restart, the server gone: %+v", s)
	}
	code, stdout, _ := runCLI(t, "status", "--socket", h.client.Socket)
	if code != exitDone || !strings.Contains(stdout, "STALE, the last good copy is used: fetch mine: ") {
		t.Errorf("status: exit %d\n%s", code, stdout)
	}

	if code, _, stderr := runCLI(t, "sources", "fetch", "mein", "--socket", h.client.Socket); code != exitUsage || stderr != "evenpool: no source mein; configured: mine, lab\n" {
		t.Errorf("an unknown source: exit %d, %q", code, stderr)
	}
	_, shown, _ := runCLI(t, "policy", "show", "-c", h.config())
	_, states, _ := runCLI(t, "sources", "--socket", h.client.Socket, "-o", "json")
	if strings.Contains(h.log.String()+shown+states+stdout, key) {
		t.Errorf("a key of the configuration is shown:\n%s\n%s\n%s\n%s", h.log, shown, states, stdout)
	}
	err = filepath.WalkDir(filepath.Join(h.dir, "state"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %s", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), key) {
			t.Errorf("%s holds a key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// fetchMine fetches the list now. What it says is to be seen a moment before its
// fetch has ended, so that another is refused until then.
func fetchMine(t *testing.T, h *host, args ...string) (code int, stdout, stderr string) {
	h.await("the fetch before to end", func() bool {
		code, stdout, stderr = runCLI(t, append([]string{"sources", "fetch", "mine", "--socket", h.client.Socket}, args...)...)
		return !strings.Contains(stderr, "is under way")
	})
	return code, stdout, stderr
}

// While a fetch is under way another is refused; who waits for it sees its end.
func TestSourcesFetchWhileOneIsUnderWay(t *testing.T) {
	h := newHost(t, "", quickPool)
	var slow atomic.Bool
	asked, answer := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() {
			asked <- struct{}{}
			<-answer
		}
		io.WriteString(w, "127.0.0.1:9\n")
	}))
	defer web.Close()
	text, err := os.ReadFile(h.config())
	if err != nil {
		t.Fatal(err)
	}
	more := fmt.Sprintf("sources:\n  - {name: mine, url: %q, scheme: http, allow_addresses: [127.0.0.0/8]}\n", web.URL)
	if err := os.WriteFile(h.config(), []byte(strings.Replace(string(text), "sources:\n", more, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.await("the list's first fetch", func() bool {
		list, err := h.client.Sources(t.Context())
		return err == nil && list[0].State == api.SourceGood
	})
	slow.Store(true)
	ended := make(chan string, 1)
	go func() {
		code, stdout, stderr := fetchMine(t, h)
		ended <- fmt.Sprint(code, stderr, "\n", stdout)
	}()
	select {
	case <-asked:
	case got := <-ended:
		t.Fatalf("it ended before the list was asked for: %s", got)
	}
	code, stdout, stderr := runCLI(t, "sources", "fetch", "mine", "--socket", h.client.Socket)
	if code != exitUnavailable || stdout != "" || !strings.Contains(stderr, "a fetch of source mine is under way") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	close(answer)
	if got := <-ended; !strings.HasPrefix(got, "0\nSOURCE  STATE  CANDIDATES ") {
		t.Errorf("got %s", got)
	}
}
