package daemon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// offer puts what sources name into the pool's store. What cannot be offered now is
// offered when the store is back.
func (p *pool) offer(ctx context.Context, list ...*source) {
	err := p.offerSources(ctx, list)
	if err == nil {
		return
	}
	p.unoffered.Store(true)
	if !errors.Is(err, alloc.ErrUnavailable) && ctx.Err() == nil {
		p.log.Warn("offer candidates", "err", err)
	}
}

// offerSources looks once at what all sources name, and offers what is chosen of some
// of them.
func (p *pool) offerSources(ctx context.Context, list []*source) error {
	// Sources of one pool share its room, and take turns at looking how much there is.
	p.offering.Lock()
	defer p.offering.Unlock()
	if err := p.ensure(ctx); err != nil {
		return err
	}
	now := time.Now()
	others, err := p.others(ctx, now)
	if err != nil {
		return err
	}
	all := p.selection(others, now)
	for _, s := range list {
		if !s.usable() {
			continue
		}
		if err := p.offerSelected(ctx, s, all.of(s), now); err != nil {
			return fmt.Errorf("source %s: %w", s.cfg.Name, err)
		}
	}
	return nil
}

// offerSelected offers what is chosen of a source's list, and makes room in the store
// for what is new. What then finds no room waits for another fetch.
func (p *pool) offerSelected(ctx context.Context, s *source, o offering, now time.Time) error {
	if err := p.store.SetMeta(ctx, map[string]string{metaDemand + s.cfg.Name: demandText(o.demand, now)}); err != nil {
		return err
	}
	offered, err := p.store.OfferUpTo(ctx, o.offers, now, p.cfg.MaxCandidates)
	if err != nil {
		return err
	}
	crowdedOut := 0
	if left := offered.Left; len(left) > 0 {
		if crowdedOut, err = p.crowdOut(ctx, now, len(left), o.passedOver); err != nil {
			return err
		}
		if crowdedOut > 0 {
			again, err := p.store.OfferUpTo(ctx, left, now, p.cfg.MaxCandidates)
			if err != nil {
				return err
			}
			offered.New += again.New
			left = again.Left
		}
		if len(left) > 0 {
			o.cut[noRoom] += len(left)
		}
	}
	log := p.log.Debug
	if changed := s.setCut(p, o.cut); changed || crowdedOut > 0 {
		log = p.log.Info
	}
	log("offered", "source", s.cfg.Name, "candidates", len(o.offers), "new", offered.New, "cut", o.cut, "crowded_out", crowdedOut)
	return nil
}

// offering is what a pool does with one source's list.
type offering struct {
	offers []alloc.Offer // in the day's order
	cut    api.Counts    // what of the list is not offered
	demand int           // how many offers there were if there were room

	passedOver iter.Seq[string] // selection.passedOver
}

// selection is what is chosen of what all sources of a pool name.
type selection struct {
	pool    *pool
	lists   []named      // by source, as are the next; empty for one that is not usable
	barred  []api.Counts // what rules bar, by rule
	choice  choice
	records recorder
}

func (p *pool) selection(others []int, now time.Time) *selection {
	order := dayOrder(p.cfg.Name, now)
	all := &selection{pool: p, lists: make([]named, len(p.sources)), barred: make([]api.Counts, len(p.sources)),
		records: recorder{pool: p, first: now, known: map[string][]byte{}}}
	for i, s := range p.sources {
		if s.usable() {
			endpoints, barred := p.wanted(s.endpoints(), now)
			all.lists[i], all.barred[i] = named{rank(order, endpoints), s.cfg.AllowAddresses}, barred
		}
	}
	all.choice = choose(all.lists, others, p.cfg.MaxCandidates)
	return all
}

// of gives what is done with one source's list.
func (all *selection) of(s *source) offering {
	at := slices.Index(all.pool.sources, s)
	o := offering{offers: make([]alloc.Offer, 0, len(all.lists[at].list)), cut: api.Counts{}, demand: all.choice.demand[at],
		passedOver: all.passedOver}
	maps.Copy(o.cut, all.barred[at])
	for reason, n := range all.choice.cut[at] {
		o.cut[reason] += n
	}
	for _, r := range all.lists[at].list {
		if _, ok := all.choice.chosen[r.rank]; ok {
			o.offers = append(o.offers, alloc.Offer{Endpoint: r.endpoint.String(), Record: all.records.of(r.endpoint)})
		}
	}
	return o
}

// passedOver gives what the pool's lists name and today is not offered, those that came
// nearest to it first.
func (all *selection) passedOver(yield func(string) bool) {
	for _, list := range all.lists {
		for _, r := range list.list {
			if _, ok := all.choice.chosen[r.rank]; !ok && !yield(r.endpoint.String()) {
				return
			}
		}
	}
}

// recorder makes the first records of candidates. Most are alike: each kind is
// encoded once.
type recorder struct {
	pool  *pool
	first time.Time
	known map[string][]byte
	key   []byte
}

func (r *recorder) of(e proxyurl.Endpoint) []byte {
	r.key = r.key[:0]
	for i, s := range r.pool.sources {
		if set, hint := s.claimed(e); set != 0 {
			r.key = strconv.AppendInt(append(r.key, byte(set)), int64(i), 10)
			r.key = append(append(append(append(r.key, ' '), hint.Country...), 0), hint.Anonymity...)
			r.key = append(r.key, 0)
		}
	}
	record, ok := r.known[string(r.key)]
	if !ok {
		record = r.pool.named(e, probe.Record{FirstSeen: r.first}).Encode()
		r.known[string(r.key)] = record
	}
	return record
}

// named writes into a record what the lists say of its endpoint at present:
// which of them name it, and what they claim. What lists said before stays, as
// does all when none names it any more: absence from a list means nothing.
func (p *pool) named(e proxyurl.Endpoint, rec probe.Record) probe.Record {
	claims := newSchemeSet(rec.Schemes)
	var said sources.Hint
	for _, s := range p.sources {
		set, hint := s.claimed(e)
		if set == 0 {
			continue
		}
		claims |= set
		if !slices.Contains(rec.Sources, s.cfg.Name) {
			rec.Sources = append(rec.Sources[:len(rec.Sources):len(rec.Sources)], s.cfg.Name)
		}
		if said.Country == "" {
			said.Country = hint.Country
		}
		if said.Anonymity == "" {
			said.Anonymity = hint.Anonymity
		}
	}
	if said.Country != "" {
		rec.Country = said.Country
	}
	if said.Anonymity != "" {
		rec.Anonymity = said.Anonymity
	}
	rec.Schemes = claims.schemes()
	return rec
}

// metaDemand begins the fields of the pool's meta by which hosts tell one another
// how much each source would offer: "COUNT|MS". What was said longer than demandAge
// ago is of a host that is gone.
const (
	metaDemand = "offers:"
	demandAge  = 48 * time.Hour
)

func demandText(n int, now time.Time) string { return strconv.Itoa(n) + "|" + timeMeta(now) }

// others returns how much is offered to the pool by sources that this host does
// not have.
func (p *pool) others(ctx context.Context, now time.Time) (demands []int, err error) {
	meta, err := p.store.Meta(ctx)
	if err != nil {
		return nil, err
	}
	for field, value := range meta {
		name, ok := strings.CutPrefix(field, metaDemand)
		if !ok || slices.ContainsFunc(p.sources, func(s *source) bool { return s.cfg.Name == name }) {
			continue
		}
		count, ms, _ := strings.Cut(value, "|")
		n, err := strconv.Atoi(count)
		at, err2 := strconv.ParseInt(ms, 10, 64)
		if err == nil && err2 == nil && n > 0 && now.Sub(time.UnixMilli(at)) < demandAge {
			demands = append(demands, n)
		}
	}
	slices.Sort(demands) // a map's order is another each time
	return demands, nil
}
