package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/probe/judge"
)

// A daemon with a list of 5 MB of all that is hostile, in a network where every
// SYN is counted: what L1, L3 and L4 forbid gets none, and what is allowed in the
// midst of it is dialled and becomes a member.
func TestL1_L3_L4_AHostileListIsNotDialled(t *testing.T) {
	if !namespaced(t) {
		return
	}
	watch(t)
	resolveHere(t)
	serveEvilNames(t)
	serveHTTP(t, judgeServer, &judge.Handler{})
	command(t, "", "ip", "addr", "add", goodProxy6.Addr().String(), "dev", "lo", "nodad") // to listen, a route is enough in IPv4 alone
	for _, addr := range []netip.AddrPort{goodProxy, goodProxy6, goodByName} {
		serveHTTP(t, addr, &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}})
	}
	text, allowed := hostileList()
	if len(text) < 5_000_000 {
		t.Fatalf("the list has %d bytes", len(text))
	}
	redirects := serveHostileLists(t, text)
	h := hostileHost(t, redirects)
	h.start()

	dialled := map[netip.AddrPort]bool{}
	var last *api.Cycle
	for cycle := range 2 { // the second one is scheduled: what was put off is due then
		last = h.hostileCycle(last)
		t.Logf("cycle %d: %d members and %d candidates probed in %d ms", cycle+1, last.ProbedMembers, last.ProbedCandidates, last.DurationMS)
		sent := syns(t)
		delete(sent, judgeServer)
		delete(sent, listServer)
		for to := range sent {
			dialled[to] = true
		}
		checkSyns(t, cycle+1, sent)
		for _, victim := range []netip.Prefix{
			netip.PrefixFrom(manyPorts, 32), netip.PrefixFrom(manyUsers, 32), netip.PrefixFrom(manyNames, 32), manyHosts, manyHosts6, manyLists} {
			if countWithin(sent, victim) == 0 {
				t.Errorf("cycle %d: nothing within %s was dialled: its candidates are allowed, as long as they are few", cycle+1, victim)
			}
		}
		if p, err := h.client.Pool(t.Context(), "web"); err != nil || !p.LastCycle.StartedAt.Equal(last.StartedAt) {
			t.Fatalf("the next cycle has ended before this one was looked at: %v", err)
		}
	}
	missing := 0
	for _, to := range allowed {
		if !dialled[to] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d allowed candidates were not dialled", missing, len(allowed))
	}
	if counts := h.counts(); len(counts) != 3 {
		t.Errorf("members: %v, want the three real proxies", counts)
	}
	h.checkSources(redirects)
}

func countWithin(set map[netip.AddrPort]int, p netip.Prefix) (n int) {
	for to := range set {
		if p.Contains(to.Addr()) {
			n++
		}
	}
	return n
}

// checkSyns holds the SYNs of one cycle against the promises.
func checkSyns(t *testing.T, cycle int, sent map[netip.AddrPort]int) {
	t.Helper()
	ports := map[netip.Addr]int{}
	neighbours := map[netip.Prefix]int{}
	packets := map[netip.Addr]int{}
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for to, n := range sent {
		for _, p := range forbidden {
			if p.Contains(to.Addr()) {
				complain("L1: %s, in %s", to, p)
			}
		}
		if rescued.Contains(to.Addr()) {
			complain("L2: %s, rescued from a damaged line", to)
		}
		if slices.Contains(neverPorts, to.Port()) {
			complain("L3: %s", to)
		}
		ports[to.Addr()]++
		packets[to.Addr()] += n
		bits := 24
		if to.Addr().Is6() {
			bits = 48
		}
		p, _ := to.Addr().Prefix(bits)
		neighbours[p]++
	}
	for addr, n := range ports {
		if n > 4 {
			complain("L4: %d ports of %s", n, addr)
		}
	}
	for p, n := range neighbours {
		if n > 64 {
			complain("L4: %d endpoints within %s", n, p)
		}
	}
	// Several candidates may share an address and a port. Nobody answers there, so
	// each is tried once by each of the two schemes.
	for addr, n := range packets {
		if n > 4*2 && addr != goodProxy.Addr() && addr != goodProxy6.Addr() && addr != goodByName.Addr() {
			complain("L4: %d SYNs to %s", n, addr)
		}
	}
	slices.Sort(wrong)
	for i, w := range wrong {
		if i == 30 {
			t.Errorf("cycle %d: and %d more", cycle, len(wrong)-i)
			break
		}
		t.Errorf("cycle %d: %s", cycle, w)
	}
}

// serveHTTP serves at an address of the namespace until the test ends.
func serveHTTP(t *testing.T, at netip.AddrPort, handler http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() { server.Serve(l); close(done) }()
	t.Cleanup(func() { server.Close(); <-done })
}

// serveHostileLists serves the list, and URLs that lead to where no list is to be
// fetched from. It returns where these lead, by their path.
func serveHostileLists(t *testing.T, text string) map[string]string {
	t.Helper()
	leads := map[string]string{
		"metadata":  "http://169.254.169.254/latest/meta-data/",
		"loopback":  "http://127.0.0.1:8080/",
		"loopback6": "http://[::1]:8080/",
		"mapped":    "http://[::ffff:10.0.0.1]:8080/",
		"nat64":     "http://[64:ff9b::a00:1]:8080/",
		"sixto4":    "http://[2002:a00:1::1]:8080/",
		"name":      "http://private.evil.example:8080/",
		"mixed":     "http://mixed.evil.example:8080/",
		"octal":     "http://0177.0.0.1:8080/",
		"integer":   "http://2130706433:8080/",
		"file":      "file:///etc/passwd",
		"loop":      "/loop",
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/list.txt", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "list.txt", time.Time{}, strings.NewReader(text))
	})
	for n := range inConcert {
		mux.HandleFunc(fmt.Sprintf("/concert-%d", n), func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, listInConcert(n)) })
	}
	for path, to := range leads {
		mux.HandleFunc("/"+path, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	}
	serveHTTP(t, listServer, mux)
	return leads
}

// inConcert is how many lists name the same victims, each within the limits.
const inConcert = 20

// hostileHost is a daemon to be, on a Redis of its own, with a hostile list, the
// redirects and a judge that is not to be asked, each named by its path.
func hostileHost(t *testing.T, redirects map[string]string) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir()}
	h.client = &api.Client{Socket: filepath.Join(h.dir, "s")}
	h.env = []string{"GODEBUG=netdns=go"} // as the released binary, which has no C resolver
	var sources bytes.Buffer
	for path := range redirects {
		fmt.Fprintf(&sources, "  - {name: %s, url: \"http://%s/%s\", scheme: http}\n", path, listServer, path)
	}
	for n := range inConcert {
		fmt.Fprintf(&sources, "  - {name: concert-%d, url: \"http://%s/concert-%[1]d\"}\n", n, listServer)
	}
	text := fmt.Sprintf(`
redis: {url: %q}
socket: {path: %s}
state_dir: %s
judges:
  - {name: good, http: "http://%s/"}
  - {name: inside, http: "http://private.evil.example:8080/"}
sources:
  - {name: hostile, url: "http://%[5]s/list.txt", scheme: http}
  - {name: insider, url: "http://loopback.evil.example:8080/list.txt", scheme: http}
%[6]spools:
  - name: web
    probe: {schedule: "@every 30s", timeout: 4s, confirm_after: 100ms, concurrency: 128}
    eligibility: {schemes: [http, socks5], require: [http], min_judges: 1}
`, alloctest.NewServer(t).URL, h.client.Socket, filepath.Join(h.dir, "state"), judgeServer, listServer, sources.String())
	if err := os.WriteFile(h.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h.process != nil {
			h.kill()
		}
		if t.Failed() && h.log != nil {
			t.Logf("the daemon said:\n%.20000s", h.log)
		}
	})
	return h
}

// hostileCycle waits for the end of a cycle that is not the one given. It has
// more to do than those of other tests.
func (h *host) hostileCycle(before *api.Cycle) *api.Cycle {
	h.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		p, err := h.client.Pool(h.t.Context(), "web")
		if err == nil && p.LastCycle != nil && (before == nil || !p.LastCycle.StartedAt.Equal(before.StartedAt)) {
			return p.LastCycle
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain for a cycle to end: %v", errors.Join(err))
		}
	}
}

// checkSources wants the hostile list read and nothing fetched beside it.
func (h *host) checkSources(redirects map[string]string) {
	h.t.Helper()
	p, err := h.client.Pool(h.t.Context(), "web")
	if err != nil {
		h.t.Fatal(err)
	}
	for _, s := range p.Sources {
		switch {
		case strings.HasPrefix(s.Name, "concert-") && s.Error == "" && s.Candidates > 0:
		case s.Name == "hostile" && (s.Error != "" || s.Candidates == 0):
			h.t.Errorf("the hostile list was not read: %+v", s)
		case s.Name != "hostile" && (s.Error == "" || s.Candidates != 0):
			h.t.Errorf("source %s, which leads to %s: %d candidates, error %q", s.Name, redirects[s.Name], s.Candidates, s.Error)
		}
	}
}
