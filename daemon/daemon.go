// Package daemon wires evenpool together and runs it: lists are fetched and
// pools probed on their schedules, verdicts are settled in the store, and
// workers are answered on the socket. It is the only place that knows everybody;
// sources know nothing of probing, probes nothing of storing, the store nothing
// of either.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/robfig/cron/v3"
	"golang.org/x/sync/errgroup"

	"evenpool/alloc"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// maxConns bounds the socket's connections.
const maxConns = 4096

// ErrStateDirTaken says that another daemon has the state directory.
var ErrStateDirTaken = alloc.ErrStateDirTaken

// Options is what a daemon is made from.
type Options struct {
	Config   *config.Config
	Password string // of Redis; "" for none
	Version  string // of the program, for status and for the User-Agent of fetches
	Logger   *slog.Logger
	Resolver proxyurl.Resolver // nil: the system's
	Hostname string            // named in events as the host that admitted or retired
	// Ready is called once, when the socket accepts. It may be nil.
	Ready func()
}

// Daemon is one running evenpool. It has one Run.
type Daemon struct {
	cfg     *config.Config
	opts    Options
	socket  *socket
	log     *slog.Logger
	started time.Time
	store   *alloc.Store
	monitor storeMonitor
	cron    *cron.Cron
	jobs    jobs // what runs outside cron: first fetches, cycles asked for
	sources []*source
	pools   []*pool

	// What all pools share.
	observer *probe.Observer
	geo      *GeoIP
	targets  map[string]*target // by name
}

// New makes a daemon from a configuration that was checked, and takes what no two
// daemons may have: the socket, on which connections wait until Run answers
// them, and with the embedded store the state directory, from which it reads
// what was saved. It asks neither Redis nor the network. ErrSocketTaken when
// another daemon has the socket; a config.Errors when files that the configuration
// names cannot be used. Call Run, or Close.
func New(opts Options) (_ *Daemon, err error) {
	d := &Daemon{cfg: opts.Config, opts: opts, log: opts.Logger,
		observer: probe.NewObserver(probe.ObserverOptions{DialRate: float64(opts.Config.MaxDialsPerSecond)})}
	files, err := openFiles(opts.Config)
	if err != nil {
		return nil, err
	}
	d.geo, d.targets = files.geo, files.targets
	fetcher := sources.NewFetcher(sources.Options{UserAgent: "evenpool/" + opts.Version, Resolver: opts.Resolver,
		Dir: filepath.Join(opts.Config.StateDir, "sources")})
	byName := map[string]*source{}
	for _, cfg := range opts.Config.Sources {
		s := newSource(cfg, fetcher, d.log)
		d.sources = append(d.sources, s)
		byName[cfg.Name] = s
	}
	// The socket before the store: of two daemons with one configuration, the
	// second is told of the first.
	if d.socket, err = listen(opts.Config.Socket.Path, opts.Config.Socket.Mode); err != nil {
		return nil, err
	}
	store, err := alloc.Open(alloc.Options{
		URL:      opts.Config.Redis.URL,
		Username: opts.Config.Redis.Username,
		Password: opts.Password,
		PoolSize: opts.Config.Redis.PoolSize,
		StateDir: opts.Config.StateDir,
		Logger:   d.log,
	})
	if err != nil {
		return nil, errors.Join(err, d.socket.Close())
	}
	d.store = store
	for i, cfg := range opts.Config.Pools {
		p := newPool(cfg, store.Pool(cfg.Name), files.pools[i], d)
		for _, name := range cfg.Sources {
			p.sources = append(p.sources, byName[name])
			byName[name].pools = append(byName[name].pools, p)
		}
		d.pools = append(d.pools, p)
	}
	return d, nil
}

// Close gives back what New took. Run does it by itself.
func (d *Daemon) Close() error { return errors.Join(d.socket.Close(), d.store.Close()) }

// Run serves until ctx ends, then stops in order: no new requests and cycles,
// answers in flight are finished, probes under way are cancelled and held
// against nobody, and the embedded store is saved last.
func (d *Daemon) Run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.Close()) }()
	d.started = time.Now()
	// What ends first ends all: a store that cannot be saved, or ctx.
	group, ctx := errgroup.WithContext(ctx)
	d.schedule(ctx) // before anybody can ask when the next cycle is
	group.Go(func() error { return serveSocket(ctx, d.socket, maxConns, newRoutes(d, d.log), d.log) })
	group.Go(func() error { return d.store.Run(ctx) })
	group.Go(func() error { return d.watchStore(ctx) })
	group.Go(func() error { return d.runJobs(ctx) })
	group.Go(func() error { return d.observer.Run(ctx) })
	group.Go(func() error { return d.notify(ctx) })
	d.log.Info("serving", "socket", d.cfg.Socket.Path, "pools", len(d.pools), "sources", len(d.sources),
		"store", d.storeName(), "pid", os.Getpid())
	if d.store.Embedded() {
		d.log.Warn("the embedded store is for trying out and for one small host; set redis.url for more",
			"max_members", alloc.EmbeddedMaxMembers, "max_candidates", alloc.EmbeddedMaxCandidates)
	}
	if d.opts.Ready != nil {
		d.opts.Ready()
	}
	err = group.Wait()
	d.log.Info("stopped")
	return err
}

func (d *Daemon) storeName() string {
	if d.store.Embedded() {
		return "embedded"
	}
	return "redis"
}
