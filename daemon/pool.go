package daemon

import (
	"context"
	"errors"
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
	sources []*source
	log     *slog.Logger
	entry   cron.EntryID
	nextRun func() time.Time // when cron begins the next cycle; members are due then
	random  *rand.Rand       // used by the cycle alone, of which there is one at a time

	unoffered  atomic.Bool // the lists have candidates that the store was not offered
	lost       atomic.Bool // it was seen, and then was gone: a cycle is to build it again
	running    atomic.Bool // a cycle is under way
	missed     atomic.Bool // the last cycle could not run for want of the store
	everything atomic.Bool // the next cycle asks all members, also those that are due with the next run: somebody wants it now

	ensuring sync.Mutex
	known    bool // was seen in the store; under ensuring

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

func newPool(cfg config.Pool, store *alloc.Pool, opts Options, log *slog.Logger) *pool {
	return &pool{
		cfg:   cfg,
		store: store,
		settle: alloc.SettlePolicy{
			Start:       cfg.Allocation.Start,
			Restore:     cfg.Allocation.Restore,
			ForgetAfter: cfg.Allocation.ForgetAfter,
			Host:        opts.Hostname,
		},
		rules: probe.Rules{
			Schemes:    cfg.Eligibility.Schemes,
			Require:    cfg.Eligibility.Require,
			MaxLatency: cfg.Eligibility.MaxLatency,
			Rise:       cfg.Eligibility.Rise,
			Fall:       cfg.Eligibility.Fall,
		},
		prober: probe.New(probe.Options{Timeout: cfg.Probe.Timeout, Resolver: opts.Resolver}),
		log:    log.With("pool", cfg.Name),
		random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		guard:  api.Guard{State: api.GuardNormal, Since: time.Now().UTC()},
	}
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

// offer puts what a source names into the pool's store. What cannot be offered
// now is offered when the store is back.
func (p *pool) offer(ctx context.Context, s *source) {
	added, err := p.offerSource(ctx, s)
	if err == nil {
		p.log.Debug("offered", "source", s.cfg.Name, "new", added)
		return
	}
	p.unoffered.Store(true)
	if !errors.Is(err, alloc.ErrUnavailable) && ctx.Err() == nil {
		p.log.Warn("offer candidates", "source", s.cfg.Name, "err", err)
	}
}

func (p *pool) offerSource(ctx context.Context, s *source) (added int, err error) {
	if err := p.ensure(ctx); err != nil {
		return 0, err
	}
	now := time.Now()
	endpoints := s.endpoints()
	offers := make([]alloc.Offer, 0, len(endpoints))
	for _, e := range endpoints {
		rec := p.named(e, probe.Record{FirstSeen: now})
		offers = append(offers, alloc.Offer{Endpoint: e.String(), Record: rec.Encode()})
	}
	return p.store.Offer(ctx, offers, now)
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

func (p *pool) offerAll(ctx context.Context) {
	for _, s := range p.sources {
		if s.read() {
			p.offer(ctx, s)
		}
	}
}

// named writes into a record what the lists say of its endpoint at present:
// which of them name it, and the schemes they claim. What lists said before
// stays, as does all when none names it any more: absence from a list means
// nothing.
func (p *pool) named(e proxyurl.Endpoint, rec probe.Record) probe.Record {
	claims := newSchemeSet(rec.Schemes)
	for _, s := range p.sources {
		set := s.claimed(e)
		if set == 0 {
			continue
		}
		claims |= set
		if !slices.Contains(rec.Sources, s.cfg.Name) {
			rec.Sources = append(rec.Sources[:len(rec.Sources):len(rec.Sources)], s.cfg.Name)
		}
	}
	rec.Schemes = claims.schemes()
	return rec
}

// gone says whether no list names an endpoint any more, all of them having been
// read.
func (p *pool) gone(e proxyurl.Endpoint) bool {
	for _, s := range p.sources {
		if !s.read() || s.claimed(e) != 0 {
			return false
		}
	}
	return true
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
