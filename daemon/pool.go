package daemon

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// pool is a pool at run time.
type pool struct {
	cfg     config.Pool
	store   *alloc.Pool
	settle  alloc.SettlePolicy
	rules   probe.Rules
	prober  *probe.Prober
	judges  []probe.Judge
	targets []*target   // those that it requires
	banned  *bannedFile // nil: none
	geo     *GeoIP
	sources []*source
	log     *slog.Logger
	entry   cron.EntryID
	seen    probe.Seen       // of us, by the judges in all control probes; the cycle's alone
	nextRun func() time.Time // when cron begins the next cycle; members are due then
	random  *rand.Rand       // used by the cycle alone, of which there is one at a time

	controlled atomic.Int64 // control probes of judges so far: as often a judge may have been asked directly, and no more

	unoffered  atomic.Bool // the lists have candidates that the store was not offered
	lost       atomic.Bool // it was seen, and then was gone: a cycle is to build it again
	running    atomic.Bool // a cycle is under way
	missed     atomic.Bool // the last cycle could not run for want of the store
	everything atomic.Bool // the next cycle asks all members, also those that are due with the next run: somebody wants it now

	offering sync.Mutex // what a source names is being offered
	ensuring sync.Mutex
	known    bool // was seen in the store; under ensuring

	evenness evenness

	mu       sync.Mutex
	counts   poolCounts
	last     *api.Cycle
	guard    api.Guard
	controls []api.Judge
}

// poolCounts is how many endpoints the store had when it was last asked.
type poolCounts struct {
	members, known, due int64
	at                  time.Time
}

func newPool(cfg config.Pool, store *alloc.Pool, files poolFiles, d *Daemon) *pool {
	p := &pool{
		cfg:   cfg,
		store: store,
		settle: alloc.SettlePolicy{
			Start:       cfg.Allocation.Start,
			Restore:     cfg.Allocation.Restore,
			ForgetAfter: cfg.Allocation.ForgetAfter,
			Host:        d.opts.Hostname,
		},
		rules: cfg.Eligibility.Rules(),
		prober: probe.New(probe.Options{Timeout: cfg.Probe.Timeout, ConnectTimeout: cfg.Probe.ConnectTimeout,
			Resolver: d.opts.Resolver, Admit: admitted, ProxyRootCAs: files.proxyRoots, Observer: d.observer}),
		judges: files.judges,
		banned: files.banned,
		geo:    d.geo,
		log:    d.log.With("pool", cfg.Name),
		random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		guard:  api.Guard{State: api.GuardNormal, Since: time.Now().UTC()},
	}
	if p.banned != nil { // a nil pointer in an interface is none
		p.rules.Banned = p.banned
	}
	for _, name := range cfg.Eligibility.RequireTargets {
		p.targets = append(p.targets, d.targets[name])
	}
	return p
}

// The fields of the pool's meta that are the daemon's.
const (
	metaLastCycle   = "last_cycle_at"
	metaFrozenSince = "frozen_since"
)

// lastCycle returns when the pool's newest cycle ended, on whichever host; the
// zero time if there was none.
func (p *pool) lastCycle(ctx context.Context) (time.Time, error) {
	meta, err := p.store.Meta(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return metaTime(meta, metaLastCycle), nil
}

func metaTime(meta map[string]string, field string) time.Time {
	ms, err := strconv.ParseInt(meta[field], 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func timeMeta(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

// ensure makes the pool in the store if it is not there. One that was there is
// lost then, and the lists have to be offered again.
func (p *pool) ensure(ctx context.Context) error {
	// One at a time: else whoever made a new pool might find it known already,
	// by another who saw it made, and take it for a lost one.
	p.ensuring.Lock()
	defer p.ensuring.Unlock()
	created, err := p.store.Init(ctx)
	if err != nil {
		return err
	}
	if created {
		p.unoffered.Store(true)
		if p.known {
			p.lost.Store(true)
			p.log.Error("the store lost the pool; it is built again from the lists")
		}
	}
	p.known = true
	return nil
}

// allow is what may be dialled for an endpoint: beyond public addresses, only
// what those of its sources have opened that name it.
func (p *pool) allow(rec probe.Record) (allow proxyurl.Allow) {
	for _, s := range p.sources {
		if len(s.cfg.AllowAddresses) > 0 && slices.Contains(rec.Sources, s.cfg.Name) {
			allow = append(allow, s.cfg.AllowAddresses...)
		}
	}
	return allow
}

func (p *pool) setCounts(c poolCounts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts = c
}

// glance returns what a line of status shows, without asking the store.
func (p *pool) glance() (poolCounts, api.Guard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts, p.guard
}
