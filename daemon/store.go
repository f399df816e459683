package daemon

import (
	"context"
	"sync"
	"time"

	"evenpool/sources/proxyurl"
)

const (
	// monitorEvery is how often the store is looked at, and so how soon its
	// return is noticed.
	monitorEvery   = 2 * time.Second
	monitorTimeout = 2 * time.Second
)

// storeMonitor is what is known of the store. The zero value has not looked yet.
type storeMonitor struct {
	mu        sync.Mutex
	looked    bool
	reachable bool
	since     time.Time
	note      string // why it is not reachable; escaped
	version   string
}

func (m *storeMonitor) get() (reachable bool, since time.Time, note string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reachable, m.since, m.note
}

// set notes what was seen and says whether it is a change.
func (m *storeMonitor) set(err error) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reachable := err == nil
	changed = !m.looked || m.reachable != reachable
	if changed {
		m.looked, m.reachable, m.since = true, reachable, time.Now()
	}
	m.note = ""
	if err != nil {
		m.note = proxyurl.Escape(err.Error(), 200)
	}
	return changed
}

// watchStore looks at the store until ctx ends. A store that is away is an
// outage, said once. A pool whose keys are gone is made again, and filled again
// from the lists.
func (d *Daemon) watchStore(ctx context.Context) error {
	ticker := time.NewTicker(monitorEvery)
	defer ticker.Stop()
	for {
		d.lookAtStore(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (d *Daemon) lookAtStore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	err := d.store.Ping(ctx)
	if ctx.Err() == context.Canceled {
		return
	}
	if changed := d.monitor.set(err); changed && err != nil {
		d.log.Error("the store is unreachable; workers are told to ask again later", "err", err)
	} else if changed {
		d.log.Info("the store is reachable")
		d.noteVersion(ctx)
	}
	if err != nil {
		return
	}
	for _, p := range d.pools {
		if err := d.lookAtPool(ctx, p); err != nil && ctx.Err() == nil {
			p.log.Warn("look at the pool", "err", err)
		}
	}
}

func (d *Daemon) noteVersion(ctx context.Context) {
	version, err := d.store.ServerInfo(ctx)
	if err != nil {
		d.log.Warn("ask the store for its version", "err", err)
		return
	}
	d.monitor.mu.Lock()
	d.monitor.version = proxyurl.Escape(version, 100)
	d.monitor.mu.Unlock()
}

// lookAtPool makes sure that the pool exists and counts it.
func (d *Daemon) lookAtPool(ctx context.Context, p *pool) error {
	if err := p.ensure(ctx); err != nil {
		return err
	}
	if lost, missed := p.lost.Swap(false), p.missed.Swap(false); lost || missed {
		d.runNow(p.entry)
	}
	members, known, due, err := p.store.Size(ctx)
	if err != nil {
		return err
	}
	p.setCounts(poolCounts{members, known, due, time.Now()})
	return nil
}
