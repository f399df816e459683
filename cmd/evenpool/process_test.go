package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
)

// asProgram makes the test binary be the program, so that tests run real
// processes without building one. Its value says which.
const asProgram = "EVENPOOL_TEST_AS"

func TestMain(m *testing.M) {
	switch os.Getenv(asProgram) {
	case "evenpool":
		main()
	case "worker":
		worker()
	default:
		os.Exit(alloctest.Main(m))
	}
}

// program is a command of a process of its own, killed with the test.
func program(t *testing.T, as string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProgram+"="+as)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// host is a host with a lab, a judge and a daemon, each a process of its own.
type host struct {
	t       *testing.T
	dir     string
	lab     labReport
	client  *api.Client
	process *exec.Cmd
	env     []string // more of it, for the daemon
	log     *said
}

// good is how many of the lab's proxies are eligible.
func (h *host) good() (n int) {
	for _, p := range h.lab.Proxies {
		if p.Eligible {
			n++
		}
	}
	return n
}

// newHost starts a lab and writes a configuration for it. pool is YAML of the
// pool's settings, indented by four; redis is the URL of the store, "" for the
// embedded one.
func newHost(t *testing.T, redis, pool string) *host {
	t.Helper()
	h := &host{t: t, dir: t.TempDir()}
	h.client = &api.Client{Socket: filepath.Join(h.dir, "s")}
	lab := program(t, "evenpool", "lab", "--judge", "-o", "json", "--ca-file", filepath.Join(h.dir, "judge.pem"))
	out, err := lab.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		lab.Process.Kill()
		lab.Wait()
	})
	if err := json.NewDecoder(out).Decode(&h.lab); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	text := fmt.Sprintf(`
redis: {url: %q}
socket: {path: %s}
state_dir: %s
judges:
  - {name: lab, http: %q, https: %q, ca_file: %s, allow_addresses: [127.0.0.0/8]}
sources:
  - {name: lab, url: %q, allow_addresses: [127.0.0.0/8]}
pools:
  - name: web
%s`, redis, h.client.Socket, filepath.Join(h.dir, "state"), h.lab.Judge.HTTP, h.lab.Judge.HTTPS, h.lab.Judge.CAFile, h.lab.ListURL, pool)
	if err := os.WriteFile(h.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if h.process != nil {
			h.kill()
		}
		if t.Failed() && h.log != nil {
			t.Logf("the daemon said:\n%s", h.log)
		}
	})
	return h
}

func (h *host) config() string { return filepath.Join(h.dir, "evenpool.yaml") }

const quickPool = `    probe: {schedule: "@every 1h", timeout: 4s, confirm_after: 500ms, concurrency: 12}
    eligibility: {schemes: [http, socks4, socks4a, socks5]}
`

// start starts the daemon and waits until it answers.
func (h *host) start() {
	h.t.Helper()
	h.process = program(h.t, "evenpool", "serve", "-c", h.config())
	h.process.Env = append(h.process.Env, h.env...)
	h.log = &said{}
	h.process.Stderr = h.log
	if err := h.process.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.await("the daemon to answer", func() bool {
		_, err := h.client.Status(h.t.Context())
		return err == nil
	})
}

// said is what a process has written so far; it may go on writing.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// kill is kill -9.
func (h *host) kill() {
	h.process.Process.Kill()
	h.process.Wait()
	h.process = nil
}

// stop is SIGTERM; it wants exit code 0.
func (h *host) stop() {
	h.t.Helper()
	h.process.Process.Signal(syscall.SIGTERM)
	if err := h.process.Wait(); err != nil {
		h.t.Errorf("the daemon ended with %v, and said:\n%s", err, h.log)
	}
	h.process = nil
}

func (h *host) await(what string, so func() bool) {
	h.t.Helper()
	h.awaitFor(40*time.Second, what, so)
}

func (h *host) awaitFor(limit time.Duration, what string, so func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(limit); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (h *host) awaitCycle() {
	h.t.Helper()
	h.await("the first cycle to end", func() bool {
		p, err := h.client.Pool(h.t.Context(), "web")
		return err == nil && p.LastCycle != nil
	})
}

func (h *host) counts() map[string]int64 {
	h.t.Helper()
	members, err := h.client.Members(h.t.Context(), "web")
	if err != nil {
		h.t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, m := range members {
		counts[m.Proxy] = m.Count
	}
	return counts
}

func openStore(t *testing.T, url string) *alloc.Store {
	t.Helper()
	store, err := alloc.Open(alloc.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// kill -9 in the middle of a cycle, and a restart: members, counts and streaks
// are as before.
func TestH5_KilledInTheMiddleOfACycle(t *testing.T) {
	server := alloctest.NewServer(t)
	h := newHost(t, server.URL, `    probe: {schedule: "@every 1h", timeout: 4s, confirm_after: 2s}
    eligibility: {schemes: [http, socks4, socks4a, socks5], rise: 3}
`)
	h.start()
	pool := openStore(t, server.URL).Pool("web")
	endpoints := h.endpoints()
	streaks := func() map[string]string {
		streaks := map[string]string{}
		for _, e := range endpoints {
			why, err := h.client.Why(t.Context(), "web", e)
			if err != nil {
				t.Fatal(err)
			}
			streaks[e] = fmt.Sprintf("passes %d fails %d", why.Passes, why.Fails)
		}
		return streaks
	}
	h.await("first passes", func() bool { return slices.Contains(slices.Collect(maps.Values(streaks())), "passes 1 fails 0") })
	before := streaks()
	h.kill()
	// Not before: the cycle went on until then. These are what the store holds.
	membersBefore, err := pool.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.start()
	after := streaks()
	for e, streak := range before {
		if after[e] < streak { // "passes 2" after "passes 1": the cycle that goes on
			t.Errorf("%s had %s before the kill and has %s after it", e, streak, after[e])
		}
	}
	// What was being probed at the kill stays claimed for a minute and a half.
	h.awaitFor(150*time.Second, "the passes to go on to three", func() bool { return len(h.counts()) == h.good() })
	if len(membersBefore) > h.good() {
		t.Errorf("%d members before", len(membersBefore))
	}
}

func (h *host) endpoints() (list []string) {
	for _, p := range h.lab.Proxies {
		list = append(list, p.URL)
	}
	return list
}

// kill -9 of Redis and its return: workers are told at once to ask again, and
// are served again within five seconds, by the same daemon.
func TestR9_RedisIsKilledAndComesBack(t *testing.T) {
	server := alloctest.NewServer(t)
	h := newHost(t, server.URL, quickPool)
	h.start()
	h.awaitCycle()
	if _, err := h.client.AllocateMany(t.Context(), "web", 20); err != nil {
		t.Fatal(err)
	}
	before := h.counts()
	server.Kill()
	for range 20 {
		began := time.Now()
		_, err := h.client.Allocate(t.Context(), "web")
		var failed *api.Error
		if !errors.As(err, &failed) || failed.Status != http.StatusServiceUnavailable || failed.RetryAfter <= 0 {
			t.Fatalf("got %v, want 503 with a time to wait", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
	}
	server.Start()
	back := time.Now()
	h.await("an allocation", func() bool {
		got, err := h.client.Allocate(t.Context(), "web")
		return err == nil && got.Proxy != nil
	})
	if took := time.Since(back); took > 5*time.Second {
		t.Errorf("the first allocation came %v after Redis", took)
	}
	var sum int64 = 1 // the allocation that proved it
	for _, n := range before {
		sum += n
	}
	for _, n := range h.counts() {
		sum -= n
	}
	if sum != 0 {
		t.Errorf("counts were %v and are %v", before, h.counts())
	}
}

// A daemon that starts while Redis is away serves all the same, and builds its
// pool when Redis is there.
func TestR9_RedisIsAwayAtTheStart(t *testing.T) {
	server := alloctest.NewServer(t)
	server.Kill()
	h := newHost(t, server.URL, quickPool)
	h.start()
	st, err := h.client.Status(t.Context())
	if err != nil || st.Store.Reachable || st.Store.Note == "" {
		t.Errorf("status: %+v, %v", st.Store, err)
	}
	if code, stdout, stderr := runCLI(t, "alloc", "--socket", h.client.Socket); code != exitUnavailable || stdout != "" || stderr == "" {
		t.Errorf("alloc: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	server.Start()
	h.await("members", func() bool {
		p, err := h.client.Pool(t.Context(), "web")
		return err == nil && int(p.Members) == h.good()
	})
}

// The embedded store keeps the pool over a restart.
func TestEmbeddedStoreKeepsThePool(t *testing.T) {
	h := newHost(t, "", quickPool)
	h.start()
	h.awaitCycle()
	if _, err := h.client.AllocateMany(t.Context(), "web", 13); err != nil {
		t.Fatal(err)
	}
	before := h.counts()
	h.stop()
	h.start()
	h.await("the pool", func() bool { return len(h.counts()) > 0 })
	if after := h.counts(); !maps.Equal(before, after) {
		t.Errorf("counts were %v and are %v", before, after)
	}
}

func TestU2_TheSecondDaemonGivesWay(t *testing.T) {
	h := newHost(t, "", quickPool)
	h.start()
	out, err := program(t, "evenpool", "serve", "-c", h.config()).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitTaken || !strings.Contains(string(out), h.client.Socket) {
		t.Errorf("the second daemon: %v, said %q; want exit code %d and the socket's name", err, out, exitTaken)
	}
	if _, err := h.client.Status(t.Context()); err != nil {
		t.Errorf("the first one: %v", err)
	}
}

// SIGTERM in the middle of a cycle: exit code 0, at once, and nothing is held
// against anybody.
func TestU7_StopsInTheMiddleOfACycle(t *testing.T) {
	server := alloctest.NewServer(t)
	h := newHost(t, server.URL, quickPool)
	h.start()
	h.await("candidates", func() bool {
		p, err := h.client.Pool(t.Context(), "web")
		return err == nil && p.Candidates > 0
	})
	began := time.Now()
	h.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	h.start()
	h.awaitCycle()
	if n := len(h.counts()); n != h.good() {
		t.Errorf("%d members after the restart, want %d", n, h.good())
	}
}

func TestServeRefusesWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("pools:\n  - name: web\n    probe: {timeout: 8}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keyless := filepath.Join(dir, "keyless.yaml")
	text := fmt.Sprintf("socket: {path: %[1]s/s}\nstate_dir: %[1]s/state\njudges: [{name: mine, http: 'http://192.0.2.1/', key_file: %[1]s/judge.key}]\n"+
		"sources: [{name: list, url: 'file://%[1]s/list.txt', scheme: http}]\npools: [{name: web, eligibility: {require: [http]}}]\n", dir)
	for file, data := range map[string]string{keyless: text, filepath.Join(dir, "judge.key"): strings.Repeat("k", 64)} {
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, file string
		code       int
		says       string
	}{
		{"a key for everybody", keyless, exitConfig, "evenpool: " + keyless + `:3:60: judges[0].key_file: "` + dir + `/judge.key": mode 0644 lets everybody have it`},
		{"missing", filepath.Join(dir, "none.yaml"), exitConfig, "none.yaml: no such file or directory\n"},
		{"broken", bad, exitConfig, "bad.yaml:3:22: pools[0].probe.timeout: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, "serve", "-c", tc.file)
			if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.says) {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d and %q", code, stdout, stderr, tc.code, tc.says)
			}
		})
	}
}

// Who is new has no configuration where a service has it.
func TestNoConfigurationIsThere(t *testing.T) {
	if _, err := os.Stat(defaultConfig); err == nil {
		t.Skip(defaultConfig + " is there")
	}
	for _, command := range []string{"serve", "policy show", "sources check"} {
		code, stdout, stderr := runCLI(t, strings.Fields(command)...)
		if code != exitConfig || stdout != "" || stderr != "evenpool: "+defaultConfig+": no such file or directory; name yours with -c\n" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", command, code, stdout, stderr)
		}
	}
}

// What systemd is told is true: READY when the socket accepts, the pools' state,
// signs of life although Redis is away, and STOPPING.
func TestU8_SystemdIsToldTheTruth(t *testing.T) {
	server := alloctest.NewServer(t)
	server.Kill()
	h := newHost(t, server.URL, quickPool)
	notify := filepath.Join(h.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: notify, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	next := func(what string) string {
		t.Helper()
		buf := make([]byte, 4096)
		for conn.SetReadDeadline(time.Now().Add(20 * time.Second)); ; {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("waited in vain for %s: %v", what, err)
			}
			if text := string(buf[:n]); strings.Contains(text, what) {
				return text
			}
		}
	}
	h.env = []string{"NOTIFY_SOCKET=" + notify, "WATCHDOG_USEC=900000"}
	h.start()
	if ready := next("READY=1"); !strings.Contains(ready, "STATUS=") {
		t.Errorf("at the start: %q", ready)
	}
	for range 3 {
		if alive := next("WATCHDOG=1"); !strings.Contains(alive, "STATUS=store redis unreachable: ") {
			t.Errorf("without Redis: %q", alive)
		}
	}
	server.Start()
	next(fmt.Sprintf("web: %d members, %d candidates, normal", h.good(), len(h.lab.Proxies)-h.good()))
	// A daemon that does not move gives no sign.
	h.process.Process.Signal(syscall.SIGSTOP)
	drain := make([]byte, 4096)
	for conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err == nil; {
		_, err = conn.Read(drain)
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	if n, err := conn.Read(drain); err == nil {
		t.Errorf("a stopped daemon said %q", drain[:n])
	}
	h.process.Process.Signal(syscall.SIGCONT)
	next("WATCHDOG=1")
	h.stop()
	next("STOPPING=1")
}

// SIGHUP and a log whose reader has gone used to end the daemon without saving.
func TestSurvivesHangupAndAClosedLog(t *testing.T) {
	h := newHost(t, "", quickPool)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h.process = program(t, "evenpool", "serve", "-c", h.config(), "--log-level", "debug")
	h.process.Stderr = w
	if err := h.process.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	h.await("the daemon to answer", func() bool { _, err := h.client.Status(t.Context()); return err == nil })
	h.process.Process.Signal(syscall.SIGHUP)
	h.awaitCycle()
	if n := len(h.counts()); n != h.good() {
		t.Errorf("%d members, want %d", n, h.good())
	}
	h.stop()
}

func TestTheSecondDaemonOfAStateDirectoryGivesWay(t *testing.T) {
	h := newHost(t, "", quickPool)
	h.start()
	text, err := os.ReadFile(h.config())
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(h.dir, "other.yaml")
	if err := os.WriteFile(other, bytes.Replace(text, []byte("/s}"), []byte("/s2}"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := program(t, "evenpool", "serve", "-c", other).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitTaken || !strings.Contains(string(out), "another process has this state directory") {
		t.Errorf("%v, said %q; want exit code %d", err, out, exitTaken)
	}
}
