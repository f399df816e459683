package daemon

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
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
	first   chan struct{} // closed when the first copy was offered, or there is none
	once    sync.Once

	wanted   atomic.Bool  // somebody wants it fetched now, whatever copy there is
	fetching atomic.Bool  // a fetch is under way
	fetches  atomic.Int64 // how many have ended

	mu      sync.Mutex
	list    sources.List // the copy in use; its Candidates are in claims
	claims  map[proxyurl.Endpoint]claim
	gone    bool                 // the copy is too old to be offered; its claims stand
	hints   []sources.Hint       // what claims say, each once
	fresh   int                  // of claims: those that the copy before did not name
	refused map[string]int       // what is offered to no pool
	cut     map[*pool]api.Counts // and to this one
	err     error                // why there is no list, or why it is stale
	copyErr error                // why the copy is not on disk
	tried   time.Time
}

func newSource(cfg config.Source, fetcher *sources.Fetcher, log *slog.Logger) *source {
	return &source{
		cfg: cfg, src: cfg.List(), fetcher: fetcher,
		log:   log.With("source", cfg.Name),
		first: make(chan struct{}),
		cut:   map[*pool]api.Counts{},
	}
}

// refresh is the source's job: it has the list fetched and offers what it names to
// the pools that draw on it. At the start a copy on disk that is younger than the
// schedule's interval does as well: restarts ask nobody for what he gave just now.
// A file asks nobody and is always read.
func (d *Daemon) refresh(ctx context.Context, s *source) {
	defer s.once.Do(func() { close(s.first) })
	s.fetching.Store(true)
	defer s.fetching.Store(false)
	defer s.fetches.Add(1)
	wanted := s.wanted.Swap(false)
	if !wanted && !s.read() && !strings.HasPrefix(s.cfg.URL, "file:") {
		list, ok := s.fetcher.Load(s.src)
		if age := time.Since(list.FetchedAt); ok && age >= 0 && age < s.cfg.Schedule.Interval() {
			s.log.Info("the last good copy is recent, waiting for the schedule", "age", age.Round(time.Second))
			s.use(list)
			s.offer(ctx)
			return
		}
	}
	list, err := s.fetcher.Fetch(ctx, s.src)
	if ctx.Err() != nil {
		return
	}
	if s.note(list, err) {
		s.use(list)
		s.offer(ctx)
	}
}

// note writes down how a fetch ended, and says whether it brought a copy that is
// not in use. An error is said once for each change.
func (s *source) note(list sources.List, err error) (use bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = time.Now()
	s.gone = err != nil // there is no good copy, or none that is young enough
	if err == nil {
		err = list.Err
		// The copy of an earlier fetch is offered once: that it still lies here says
		// nothing for those it names.
		use = !list.Stale || s.claims == nil || !list.FetchedAt.Equal(s.list.FetchedAt)
	}
	before, beforeCopy := errorText(s.err), errorText(s.copyErr)
	s.err, s.copyErr = err, list.CopyErr
	if s.claims == nil && s.gone {
		s.list = list // to show what was wrong
		s.list.Candidates = nil
	}
	switch now := errorText(err); {
	case now != "" && now != before:
		s.log.Warn("the list is not usable; what it said before stays in use for a time", "err", err)
	case now == "" && before != "":
		s.log.Info("the list is read again")
	}
	if now := errorText(list.CopyErr); now != "" && now != beforeCopy {
		s.log.Warn("the good copy is not on disk", "err", list.CopyErr)
	}
	return use
}

// maxHints bounds how many different hints of one list are kept: there are some
// 250 countries and three kinds of anonymity.
const maxHints = 4096

// use takes a copy of the list in.
func (s *source) use(list sources.List) {
	ok, refused := sources.Offerable(list, s.src)
	claims := make(map[proxyurl.Endpoint]claim, len(ok))
	hints := []sources.Hint{{}}
	places := map[sources.Hint]uint16{{}: 0}
	sets := schemeSets{}
	fresh := 0
	for _, c := range ok {
		at, known := places[c.Hint]
		if !known && len(hints) < maxHints {
			at = uint16(len(hints))
			places[c.Hint] = at
			hints = append(hints, c.Hint)
		}
		claims[c.Endpoint] = claim{sets.of(c.Schemes), at}
		if _, before := s.claims[c.Endpoint]; !before { // nobody else writes it
			fresh++
		}
	}
	list.Candidates = nil
	s.mu.Lock()
	if list.NotModified && s.claims != nil {
		fresh = s.fresh
	}
	s.list, s.claims, s.hints, s.refused, s.fresh, s.gone = list, claims, hints, refused, fresh, false
	s.mu.Unlock()
	s.log.Info("list", "candidates", len(ok), "new", fresh, "records", list.Records, "duplicates", list.Duplicates,
		"rejects", list.Rejects, "refused", refused, "fetched_at", list.FetchedAt.UTC())
}

// offer offers what the list names to its pools.
func (s *source) offer(ctx context.Context) {
	for _, p := range s.pools {
		p.offer(ctx, s)
	}
}

// claimed returns what the list claims of an endpoint; no schemes if it does not
// name it.
func (s *source) claimed(e proxyurl.Endpoint) (schemeSet, sources.Hint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.claims[e]
	if !ok {
		return 0, sources.Hint{}
	}
	return c.schemes, s.hints[c.hint]
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

// read says whether there is a copy of the list, or was.
func (s *source) read() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims != nil
}

// usable says whether there is a copy that may be offered.
func (s *source) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims != nil && !s.gone
}

// setCut notes what was not offered to a pool, and says whether it is a change.
func (s *source) setCut(p *pool, cut api.Counts) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = !maps.Equal(s.cut[p], cut)
	s.cut[p] = cut
	return changed
}

// status is how the list is for all of its pools: of each reason to offer less of
// it, what it costs in the pool where it costs most.
func (s *source) status() api.Source { return s.statusIn(s.pools...) }

// statusIn is how the list is for some of its pools.
func (s *source) statusIn(pools ...*pool) api.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := api.Source{
		Name: s.cfg.Name, URL: redactURL(s.cfg.URL), Format: s.list.Format, State: s.stateLocked(),
		TriedAt: s.tried.UTC(), FetchedAt: s.list.FetchedAt.UTC(),
		Duplicates: s.list.Duplicates, Rejects: api.Counts{}, Refused: api.Counts{},
		NextFetchAt: s.cfg.Schedule.Next(time.Now()),
	}
	st.Stale = st.State == api.SourceStale
	for reason, n := range s.list.Rejects {
		st.Rejects[string(reason)] = n
	}
	maps.Copy(st.Refused, s.refused)
	for _, sample := range s.list.Samples {
		st.Samples = append(st.Samples, api.Sample{Line: sample.Line, Reason: string(sample.Reason), Text: sample.Text})
	}
	if !s.gone {
		most := 0
		for _, p := range pools {
			cut := 0
			for reason, n := range s.cut[p] {
				st.Refused[reason] = max(st.Refused[reason], n)
				cut += n
			}
			most = max(most, cut)
		}
		st.Candidates, st.New = max(0, len(s.claims)-most), s.fresh
	}
	if s.err != nil {
		st.Error = s.err.Error() // escaped where it arose, once
	}
	if wait := (*sources.WaitError)(nil); errors.As(s.err, &wait) && wait.Until.After(time.Now()) {
		st.WaitUntil = wait.Until.UTC()
	}
	return st
}

func (s *source) stateLocked() string {
	switch {
	case s.err == nil && s.claims != nil:
		return api.SourceGood
	case s.err == nil:
		return api.SourceNew
	case s.claims != nil && !s.gone:
		return api.SourceStale
	}
	return api.SourceFailed
}

// errorText compares errors by what they say; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
