package daemon

import (
	"cmp"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
)

func TestMain(m *testing.M) { os.Exit(alloctest.Main(m)) }

// rig is a lab, a judge, and a daemon over them, all real and on loopback.
type rig struct {
	t      *testing.T
	lab    *lab.Lab
	judge  *judge.Handler
	judges []*rigJudge // of rigOptions.judges
	sick   atomic.Bool // the judge answers 500
	dir    string
	client *api.Client
	pool   string // the name of the only pool, unique on the store

	judgeHTTP, judgeHTTPS *httptest.Server
	storeOptions          alloc.Options
	yaml                  string
	daemon                *Daemon
	stop                  func() error
}

// rigOptions say how a rig differs from the plain one.
type rigOptions struct {
	population []lab.Spec
	store      func(testing.TB) alloc.Options // alloctest.Redis or alloctest.Embedded
	pool       string                         // YAML of a pool's settings beside its name, indented by four
	list       func(*rig) string              // the list; default: the lab's

	confirmAfter string // default: 100ms

	judges []string   // hosts of judges that sign, in place of the plain one
	files  func(*rig) // makes what the configuration names
	top    string     // YAML of the settings beside pools; DIR is the rig's directory there, and in pool
}

func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, judge: &judge.Handler{}, dir: t.TempDir(), pool: alloctest.PoolName(t)}
	var err error
	if r.lab, err = lab.Start(t.Context(), lab.Options{Population: o.population, Slow: 8 * time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.lab.Close() })
	answer := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.sick.Load() {
			http.Error(w, "not today", http.StatusInternalServerError)
			return
		}
		r.judge.ServeHTTP(w, req)
	})
	r.judgeHTTP = httptest.NewServer(answer)
	t.Cleanup(r.judgeHTTP.Close)
	r.judgeHTTPS = httptest.NewTLSServer(answer)
	t.Cleanup(r.judgeHTTPS.Close)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.judgeHTTPS.Certificate().Raw})
	r.write("judge.pem", string(root))
	r.write("lab.pem", string(r.lab.CA()))
	list := r.lab.ListText()
	if o.list != nil {
		list = o.list(r)
	}
	r.write("list.txt", list)
	judges := fmt.Sprintf("  - {name: mine, http: %q, https: %q, ca_file: DIR/judge.pem, allow_addresses: [127.0.0.0/8]}\n", r.judgeHTTP.URL, r.judgeHTTPS.URL)
	if o.judges != nil {
		judges = r.signingJudges(o.judges)
	}
	if o.files != nil {
		o.files(r)
	}
	r.storeOptions = o.store(t)
	if o.pool == "" {
		o.pool = "    eligibility: {schemes: [http, https, socks4, socks4a, socks5]}\n"
	}
	r.yaml = strings.ReplaceAll(fmt.Sprintf(`
socket: {path: DIR/evenpool.sock}
state_dir: DIR/state
%[1]sjudges:
%[2]ssources:
  - {name: lab, url: "file://DIR/list.txt", allow_addresses: [127.0.0.0/8]}
pools:
  - name: %[3]s
    probe: {schedule: "@every 1h", timeout: 4s, confirm_after: %[4]s, concurrency: 12, proxy_ca_file: DIR/lab.pem}
%[5]s`, o.top, judges, r.pool, cmp.Or(o.confirmAfter, "100ms"), o.pool), "DIR/", r.dir+"/")
	r.client = &api.Client{Socket: filepath.Join(r.dir, "evenpool.sock")}
	r.start()
	t.Cleanup(func() {
		if r.stop != nil {
			if err := r.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	})
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// start runs the daemon until r.stop is called, and waits until it serves.
func (r *rig) start() {
	r.t.Helper()
	cfg, _, err := config.Parse("rig.yaml", []byte(r.yaml), config.Defaults{})
	if err != nil {
		r.t.Fatal(err)
	}
	cfg.Redis.URL = r.storeOptions.URL
	ready := make(chan struct{})
	d, err := New(Options{
		Config: cfg, Password: r.storeOptions.Password, Version: "test", Hostname: "here", Resolver: allHere{},
		Logger: slog.New(slog.NewTextHandler(testWriter{r.t}, nil)),
		Ready:  func() { close(ready) },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.daemon = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	select {
	case <-ready:
	case err := <-done:
		r.t.Fatalf("the daemon ended: %v", err)
	}
	r.stop = func() error {
		r.stop = nil
		cancel()
		return <-done
	}
}

// allHere resolves every name to this host.
type allHere struct{}

func (allHere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// poolStatus asks the daemon.
func (r *rig) poolStatus() api.Pool {
	r.t.Helper()
	p, err := r.client.Pool(r.t.Context(), r.pool)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// cycle has one more cycle run and returns what it did.
func (r *rig) cycle() *api.Cycle {
	r.t.Helper()
	before := r.poolStatus().LastCycle
	r.await("a cycle to begin", func() bool { return r.client.ProbeNow(r.t.Context(), r.pool) == nil })
	return r.cycleAfter(before)
}

// cycleAfter waits for the end of a cycle that is not the one given.
func (r *rig) cycleAfter(before *api.Cycle) *api.Cycle {
	r.t.Helper()
	var now *api.Cycle
	r.await("a cycle to end", func() bool {
		now = r.poolStatus().LastCycle
		return now != nil && (before == nil || !now.StartedAt.Equal(before.StartedAt))
	})
	return now
}

// await asks again and again until it is so; half a minute is more than anything
// here takes.
func (r *rig) await(what string, so func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// counts returns the members' counts by URL; passwords are hidden.
func (r *rig) counts() map[string]int64 {
	r.t.Helper()
	members, err := r.client.Members(r.t.Context(), r.pool)
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, m := range members {
		counts[m.Proxy] = m.Count
	}
	return counts
}

// proxy returns a proxy of the lab by its name.
func (r *rig) proxy(name string) lab.Proxy {
	r.t.Helper()
	for _, p := range r.lab.Proxies() {
		if p.Name == name {
			return p
		}
	}
	r.t.Fatalf("no %s in the lab", name)
	return lab.Proxy{}
}

// changeRecord writes another record of a proxy, as a cycle would.
func (r *rig) changeRecord(p *pool, endpoint string, change func(*probe.Record)) {
	r.t.Helper()
	known, err := p.store.Look(r.t.Context(), endpoint)
	if err != nil {
		r.t.Fatal(err)
	}
	rec, err := probe.DecodeRecord(known.Record)
	if err != nil {
		r.t.Fatal(err)
	}
	change(&rec)
	settled, err := p.store.Settle(r.t.Context(), []alloc.Settlement{{Endpoint: endpoint, Version: known.Version, Record: rec.Encode(), Action: alloc.Keep}}, p.settle)
	if err != nil || settled[0].Stale {
		r.t.Fatalf("change the record of %s: %+v, %v", endpoint, settled, err)
	}
}
