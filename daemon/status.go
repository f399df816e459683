package daemon

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// What follows answers the socket's requests.

func (d *Daemon) poolNames() []string {
	names := make([]string, len(d.pools))
	for i, p := range d.pools {
		names[i] = p.cfg.Name
	}
	return names
}

func (d *Daemon) find(name string) (*pool, error) {
	for _, p := range d.pools {
		if p.cfg.Name == name {
			return p, nil
		}
	}
	return nil, errUnknownPool
}

func (d *Daemon) allocate(ctx context.Context, name string, n int) ([]alloc.Allocation, error) {
	p, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return p.store.Allocate(ctx, n)
}

// The bounds of what a worker is told to wait for an empty pool.
const (
	shortestEmptyRetry = time.Second
	longestEmptyRetry  = 30 * time.Second
)

// emptyRetry: while a cycle is under way a member may come any second; else the
// next cycle brings one.
func (d *Daemon) emptyRetry(name string) time.Duration {
	p, err := d.find(name)
	if err != nil || p.running.Load() {
		return shortestEmptyRetry
	}
	return min(max(time.Until(p.nextRun()), shortestEmptyRetry), longestEmptyRetry)
}

// probeNow starts a cycle that asks all members; the gate is the schedule's own.
func (d *Daemon) probeNow(ctx context.Context, name string) error {
	p, err := d.find(name)
	if err != nil {
		return err
	}
	if p.running.Load() {
		return fmt.Errorf("%w: a cycle of pool %s is under way", errBusy, name)
	}
	p.everything.Store(true)
	d.runNow(p.entry)
	return nil
}

func (d *Daemon) status(ctx context.Context) (api.Status, error) {
	st := api.Status{Version: d.opts.Version, UptimeMS: time.Since(d.started).Milliseconds(), Store: d.storeStatus()}
	for _, p := range d.pools {
		st.Pools = append(st.Pools, p.status(ctx))
	}
	return st, nil
}

func (d *Daemon) sourceStates(context.Context) ([]api.Source, error) {
	list := make([]api.Source, len(d.sources))
	for i, s := range d.sources {
		list[i] = s.status()
	}
	return list, nil
}

func (d *Daemon) storeStatus() api.Store {
	d.monitor.mu.Lock()
	defer d.monitor.mu.Unlock()
	st := api.Store{
		Kind:      d.storeName(),
		URL:       redactURL(d.cfg.Redis.URL),
		Reachable: d.monitor.reachable,
		Since:     d.monitor.since.UTC(),
		Version:   d.monitor.version,
		Note:      d.monitor.note,
	}
	if err := d.store.SaveError(); err != nil {
		st.Note = "not saved, a restart would lose what has changed: " + proxyurl.Escape(err.Error(), 200)
	} else if st.Note == "" && d.store.Embedded() {
		st.Note = fmt.Sprintf("for trying out and for one small host: at most %d members and %d candidates",
			alloc.EmbeddedMaxMembers, alloc.EmbeddedMaxCandidates)
	}
	return st
}

// redactURL hides what of a URL may be a secret: its user, of whom lists that are paid
// for make a key, its password, and its query, where others have it. That of a Unix
// socket names the database of Redis.
func redactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	if u.RawQuery != "" && u.Scheme != "unix" {
		u.RawQuery = "***"
	}
	u.Fragment = ""
	if u.User == nil {
		return u.String()
	}
	u.User = nil
	return strings.Replace(u.String(), "://", "://***@", 1)
}

func (d *Daemon) pool(ctx context.Context, name string) (api.Pool, error) {
	p, err := d.find(name)
	if err != nil {
		return api.Pool{}, err
	}
	return p.status(ctx), nil
}

// status asks the store for fresh numbers; when it is away, the old ones stand.
func (p *pool) status(ctx context.Context) api.Pool {
	if members, known, due, err := p.store.Size(ctx); err == nil {
		p.setCounts(poolCounts{members, known, due, time.Now()})
	}
	var lists []api.Source
	for _, s := range p.sources {
		lists = append(lists, s.statusIn(p))
	}
	counts := p.evenness.get(ctx, p.store)
	p.mu.Lock()
	defer p.mu.Unlock()
	return api.Pool{
		Name:        p.cfg.Name,
		Members:     p.counts.members,
		Candidates:  max(0, p.counts.known-p.counts.members),
		Due:         p.counts.due,
		CountedAt:   p.counts.at.UTC(),
		LastCycle:   p.last,
		NextCycleAt: p.nextRun(),
		Counts:      counts,
		Guard:       p.guard,
		Judges:      slices.Clone(p.controls),
		Sources:     lists,
	}
}

func (d *Daemon) members(ctx context.Context, name string) ([]api.Member, error) {
	p, err := d.find(name)
	if err != nil {
		return nil, err
	}
	members, err := p.store.Members(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]api.Member, len(members))
	endpoints := make([]string, len(members))
	for i, m := range members {
		list[i] = api.Member{Proxy: redactMember(m.Member), Count: m.Count}
		if u, err := proxyurl.ParseURL(m.Member); err == nil {
			endpoints[i] = u.Endpoint.String()
		}
	}
	records, err := p.store.Records(ctx, endpoints)
	if err != nil {
		return nil, err
	}
	for i, r := range records {
		rec, err := probe.DecodeRecord(r.Record)
		if err != nil || len(rec.Last) == 0 {
			continue
		}
		list[i].LastProbeAt = rec.LastProbe.UTC()
		list[i].LastOutcome = string(rec.Last[0].Outcome)
		for _, last := range rec.Last {
			if last.State == probe.Pass {
				list[i].LatencyMS = last.Latency.Milliseconds()
				break
			}
		}
	}
	return list, nil
}

// redactMember hides a member's password; what others put into the set and is no
// proxy's URL is escaped.
func redactMember(text string) string {
	u, err := proxyurl.ParseURL(text)
	if err != nil {
		return proxyurl.Escape(text, 120)
	}
	return u.Redacted()
}

func (d *Daemon) why(ctx context.Context, name string, endpoint proxyurl.Endpoint) (api.Why, error) {
	p, err := d.find(name)
	if err != nil {
		return api.Why{}, err
	}
	if endpoint, err = p.resolveHidden(ctx, endpoint); err != nil {
		return api.Why{}, err
	}
	known, err := p.store.Look(ctx, endpoint.String())
	if err != nil {
		return api.Why{}, err
	}
	why := api.Why{Proxy: endpoint.Redacted(), State: api.StateUnknown, NextProbeAt: known.Due}
	rec := probe.Record{}
	if known.Version > 0 {
		if rec, err = probe.DecodeRecord(known.Record); err != nil {
			return api.Why{}, err
		}
		why.State = api.StateCandidate
	}
	if known.Retired != nil {
		why.State = api.StateRetired
		why.Retired = &api.Retired{Count: known.Retired.Count, At: known.Retired.At}
	}
	// By whichever scheme: others may have put it into the set, unknown to its record.
	for _, scheme := range proxyurl.Schemes() {
		u := proxyurl.URL{Scheme: scheme, Endpoint: endpoint}
		count, member, err := p.store.Score(ctx, u.String())
		if err != nil {
			return api.Why{}, err
		}
		if member {
			why.State, why.Proxy, why.Count = api.StateMember, u.Redacted(), &count
		}
	}
	if why.Reports, err = p.reports(ctx, endpoint); err != nil {
		return api.Why{}, err
	}
	p.explain(&why, rec, endpoint)
	return why, nil
}

// explain writes the record and what the rules make of it.
func (p *pool) explain(why *api.Why, rec probe.Record, endpoint proxyurl.Endpoint) {
	for _, s := range rec.Schemes {
		why.Schemes = append(why.Schemes, string(s))
	}
	why.Sources, why.Country, why.Anonymity = rec.Sources, rec.Country, rec.Anonymity
	why.FirstSeenAt, why.Passes, why.Fails, why.LastPassAt = rec.FirstSeen, rec.Passes, rec.Fails, rec.LastPass
	if why.OffendedAt = rec.Offended; !rec.Offended.IsZero() && p.rules.Quarantine > 0 {
		why.QuarantineUntil = rec.Offended.Add(p.rules.Quarantine)
	}
	showSeen(why, rec)
	for _, r := range rec.Last {
		why.Results = append(why.Results, api.Result{
			At: r.At.UTC(), Proxy: proxyurl.URL{Scheme: r.Scheme, Endpoint: endpoint}.Redacted(), Outcome: string(r.Outcome),
			Stage: string(r.Stage), Judge: r.Judge, LatencyMS: r.Latency.Milliseconds(), Detail: r.Detail,
		})
	}
	var against []string
	for _, r := range p.rules.Explain(endpoint, rec, time.Now()).Reasons {
		result := map[probe.State]string{probe.Pass: api.RulePass, probe.Fail: api.RuleFail}[r.State]
		if result == "" {
			result = api.RuleNotKnown
		}
		if why.State != api.StateUnknown {
			why.Rules = append(why.Rules, api.Rule{Rule: r.Rule, Result: result, Text: r.Text})
		}
		if r.State == probe.Fail {
			against = append(against, r.Rule+" ("+r.Text+")")
		}
	}
	switch {
	case why.State == api.StateUnknown:
		why.Text = "no list has named it"
	case why.State == api.StateMember:
		why.Text = "it is a member"
	case len(against) > 0:
		why.Text = "it is not a member: " + strings.Join(against, "; ")
	default:
		why.Text = "it is not a member: not all is known yet"
	}
}

// resolveHidden finds the password of a proxy that was named the way it is shown,
// "user:***@host:port".
func (p *pool) resolveHidden(ctx context.Context, endpoint proxyurl.Endpoint) (proxyurl.Endpoint, error) {
	if endpoint.Password() != "***" {
		return endpoint, nil
	}
	members, err := p.store.Members(ctx)
	if err != nil {
		return endpoint, err
	}
	same := func(e proxyurl.Endpoint) bool {
		return e.HostPort() == endpoint.HostPort() && e.User() == endpoint.User()
	}
	for _, m := range members {
		if u, err := proxyurl.ParseURL(m.Member); err == nil && same(u.Endpoint) {
			return u.Endpoint, nil
		}
	}
	for _, s := range p.sources {
		for _, e := range s.endpoints() {
			if same(e) {
				return e, nil
			}
		}
	}
	return endpoint, nil
}
