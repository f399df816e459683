package daemon

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"evenpool/daemon/api"
	"evenpool/daemon/config"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// source is a list at run time: what it says at present, and who draws on it.
type source struct {
	cfg     config.Source
	src     sources.Source
	fetcher *sources.Fetcher
	log     *slog.Logger
	entry   cron.EntryID
	pools   []*pool
	first   chan struct{} // closed when the first fetch has ended and was offered
	once    sync.Once

	mu      sync.Mutex
	list    sources.List // in use; its Candidates are in claims
	claims  map[proxyurl.Endpoint]schemeSet
	refused map[string]int
	err     error // why there is no list, or why it is stale
}

func newSource(cfg config.Source, fetcher *sources.Fetcher, log *slog.Logger) *source {
	return &source{
		cfg: cfg,
		src: sources.Source{Name: cfg.Name, URL: cfg.URL, Scheme: cfg.Scheme, Allow: cfg.AllowAddresses},

		fetcher: fetcher,
		log:     log.With("source", cfg.Name),
		first:   make(chan struct{}),
	}
}

// fetch reads the list and offers what it names to the pools that draw on it.
// An error is said once for each change; the last good copy stays in use.
func (d *Daemon) fetch(ctx context.Context, s *source) {
	defer s.once.Do(func() { close(s.first) })
	list, err := s.fetcher.Fetch(ctx, s.src)
	if ctx.Err() != nil {
		return
	}
	copyGone := err != nil // there is no good copy, or none that is young enough
	if err == nil {
		err = list.Err
	}
	s.mu.Lock()
	changed := errorText(err) != errorText(s.err)
	s.err = err
	if copyGone {
		clear(s.claims)
	}
	s.mu.Unlock()
	if err != nil {
		if changed {
			s.log.Warn("the list is not usable; what it said before stays in use for a time", "err", err)
		}
		return
	}
	if changed {
		s.log.Info("the list is read again")
	}
	ok, refused := sources.Offerable(list, s.src)
	claims := make(map[proxyurl.Endpoint]schemeSet, len(ok))
	for _, c := range ok {
		claims[c.Endpoint] = newSchemeSet(c.Schemes)
	}
	list.Candidates = nil
	s.mu.Lock()
	s.list, s.claims, s.refused = list, claims, refused
	s.mu.Unlock()
	s.log.Info("fetched", "candidates", len(ok), "records", list.Records, "rejects", list.Rejects, "refused", refused)
	for _, p := range s.pools {
		p.offer(ctx, s)
	}
}

// claimed returns the schemes that the list claims for an endpoint; none if it
// does not name it.
func (s *source) claimed(e proxyurl.Endpoint) schemeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims[e]
}

// endpoints returns what the list names at present, in no order.
func (s *source) endpoints() []proxyurl.Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]proxyurl.Endpoint, 0, len(s.claims))
	for e := range s.claims {
		list = append(list, e)
	}
	return list
}

// read says whether the list was ever read.
func (s *source) read() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims != nil
}

func (s *source) status() api.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := api.Source{
		Name:        s.cfg.Name,
		URL:         redactURL(s.cfg.URL),
		FetchedAt:   s.list.FetchedAt.UTC(),
		Stale:       s.err != nil && s.claims != nil,
		Candidates:  len(s.claims),
		Rejects:     api.Counts{},
		Refused:     maps.Clone(api.Counts(s.refused)),
		NextFetchAt: s.cfg.Schedule.Next(time.Now()),
	}
	for reason, n := range s.list.Rejects {
		st.Rejects[string(reason)] = n
	}
	if s.err != nil {
		st.Error = proxyurl.Escape(s.err.Error(), 300)
	}
	return st
}

// errorText compares errors by what they say; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// schemeSet is a set of schemes: a bit for each place in proxyurl.Schemes. The
// lists of a daemon name a hundred thousand endpoints, so it is a byte.
type schemeSet uint8

func newSchemeSet(list []proxyurl.Scheme) (set schemeSet) {
	for i, s := range proxyurl.Schemes() {
		for _, have := range list {
			if have == s {
				set |= 1 << i
			}
		}
	}
	return set
}

func (set schemeSet) schemes() (list []proxyurl.Scheme) {
	for i, s := range proxyurl.Schemes() {
		if set&(1<<i) != 0 {
			list = append(list, s)
		}
	}
	return list
}
