package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// bare is a daemon that does not run by itself: a test has its lists read and its
// cycles carried out one by one, on a real store. Of its probes only those to
// loopback leave: whoever else is dialled is written down, and refuses.
type bare struct {
	*Daemon
	t      *testing.T
	dir    string
	config string
	judge  *httptest.Server

	mu      sync.Mutex
	dialled []string // in order
}

// newBare makes one from the sources and the settings of its pool, in YAML. Sources
// find %[1]s to be the test's directory; the pool is named web.
func newBare(t *testing.T, store func(testing.TB) alloc.Options, sources, pool string) *bare {
	t.Helper()
	b := &bare{t: t, dir: t.TempDir(), judge: httptest.NewServer(&judge.Handler{})}
	t.Cleanup(b.judge.Close)
	options := store(t)
	b.config = fmt.Sprintf(`
redis: {url: %q}
socket: {path: %[2]s/s}
state_dir: %[2]s/state
judges: [{name: mine, http: %[3]q, allow_addresses: [127.0.0.0/8]}]
sources:
%[4]s
pools:
  - name: %[5]s
    probe: {schedule: "@every 1h", timeout: 2s, confirm_after: 0s, concurrency: 16}
    eligibility: {schemes: [http], require: [http]}
%[6]s
`, options.URL, b.dir, b.judge.URL, fmt.Sprintf(sources, b.dir), alloctest.PoolName(t), pool)
	b.open()
	t.Cleanup(func() { b.Close() })
	return b
}

// open makes the daemon, a second time after Close.
func (b *bare) open() {
	b.t.Helper()
	cfg, _, err := config.Parse("bare.yaml", []byte(b.config), config.Defaults{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Daemon, err = New(Options{Config: cfg, Version: "test", Hostname: "here",
		Logger: slog.New(slog.NewTextHandler(testWriter{b.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		b.t.Fatal(err)
	}
	b.schedule(b.t.Context())
	next := time.Now().Add(time.Hour)
	for _, p := range b.pools {
		p.nextRun = func() time.Time { return next }
		p.prober = probe.New(probe.Options{Timeout: p.cfg.Probe.Timeout, Dial: b.dial})
		if err := p.ensure(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bare) dial(ctx context.Context, allow proxyurl.Allow, hostport string) (net.Conn, error) {
	if host, _, _ := net.SplitHostPort(hostport); host == "127.0.0.1" {
		d := proxyurl.Dialer{Allow: allow, Admit: func(addr netip.Addr) error { return admitted(ctx, addr) }}
		return d.DialContext(ctx, "tcp", hostport)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dialled = append(b.dialled, hostport)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func (b *bare) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// fetch has a list fetched, and offered.
func (b *bare) fetch(name string) *source {
	b.t.Helper()
	for _, s := range b.sources {
		if s.cfg.Name == name {
			s.wanted.Store(true)
			b.refresh(b.t.Context(), s)
			return s
		}
	}
	b.t.Fatalf("no source %s", name)
	return nil
}

// cycleNow carries out a cycle of the only pool, and returns what it dialled.
func (b *bare) cycleNow() []string {
	b.t.Helper()
	b.mu.Lock()
	b.dialled = nil
	b.mu.Unlock()
	p := b.pools[0]
	p.cycle(b.t.Context())
	if p.last == nil || p.last.Error != "" {
		b.t.Fatalf("the cycle says %+v", p.last)
	}
	return b.dialled
}

// known returns how many proxies the store knows.
func (b *bare) known() int {
	b.t.Helper()
	_, known, _, err := b.pools[0].store.Size(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return int(known)
}

// knows says whether the store knows an endpoint.
func (b *bare) knows(endpoint string) bool {
	b.t.Helper()
	known, err := b.pools[0].store.Look(b.t.Context(), endpoint)
	if err != nil {
		b.t.Fatal(err)
	}
	return known.Version > 0
}

// ago has something done with the store as if some time had gone by since.
func (b *bare) ago(d time.Duration, do func()) {
	b.t.Helper()
	p := b.pools[0]
	options := alloc.Options{URL: b.cfg.Redis.URL, Now: func() time.Time { return time.Now().Add(-d) }}
	store, err := alloc.Open(options)
	if err != nil {
		b.t.Fatal(err)
	}
	defer store.Close()
	before := p.store
	defer func() { p.store = before }()
	p.store = store.Pool(p.cfg.Name)
	do()
}
