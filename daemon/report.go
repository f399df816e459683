package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// reportedRun is how long after a cycle began a report begins another one: what workers say makes
// probing sooner, and not without end.
const reportedRun = 30 * time.Second

// report answers POST reports.
func (rt *routes) report(ctx context.Context, c call) (reply, error) {
	if !c.query.has("proxy") {
		return reply{}, badRequest("of which proxy? add ?proxy=URL&outcome=OUTCOME, percent-encoded")
	}
	u, err := proxyurl.ParseURL(c.query.get("proxy"))
	if err != nil {
		return reply{}, badRequest("proxy: %v; expected the URL as it was allocated, percent-encoded as a whole", err)
	}
	outcome, target := c.query.get("outcome"), c.query.get("target")
	if !slices.Contains(alloc.ReportOutcomes(), outcome) {
		return reply{}, badRequest("outcome=%s: expected one of %s", proxyurl.Escape(outcome, 40), strings.Join(alloc.ReportOutcomes(), ", "))
	}
	if c.query.has("target") {
		if outcome != api.ReportBlocked {
			return reply{}, badRequest("target is for outcome=%s, by which target the proxy is blocked; leave it out", api.ReportBlocked)
		}
		if target, err = alloc.ParseReportTarget(target); err != nil {
			return reply{}, badRequest("target: %v", err)
		}
	}
	answer, err := rt.backend.report(ctx, c.pool, u, outcome, target)
	return reply{json: answer}, err
}

// report takes down a worker's word. A probe that it brings forward is carried out by a cycle that
// begins now, unless one began a moment ago: then by the next one.
func (d *Daemon) report(ctx context.Context, name string, u proxyurl.URL, outcome, target string) (api.Reported, error) {
	p, err := d.find(name)
	if err != nil {
		return api.Reported{}, err
	}
	if u.Endpoint, err = p.resolveHidden(ctx, u.Endpoint); err != nil {
		return api.Reported{}, err
	}
	r, err := p.store.Report(ctx, alloc.Report{Member: u.String(), Endpoint: u.Endpoint.String(), Outcome: outcome, Target: target})
	if err != nil {
		return api.Reported{}, err
	}
	if r.Forward && p.mayRunAgain() {
		d.runNow(p.entry)
	}
	return api.Reported{Member: r.Member, ProbeDue: r.Forward}, nil
}

// mayRunAgain says whether a cycle may begin between those of the schedule. While the pool is frozen,
// only what all members do together can end that.
func (p *pool) mayRunAgain() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.running.Load() && p.guard.State != api.GuardFrozen && p.last != nil && time.Since(p.last.StartedAt) >= reportedRun
}

// reports shows what workers said; nil where nobody said anything.
func (p *pool) reports(ctx context.Context, endpoint proxyurl.Endpoint) (*api.Reports, error) {
	r, err := p.store.Reports(ctx, endpoint.String())
	if err != nil || r.Last.IsZero() {
		return nil, err
	}
	shown := &api.Reports{OK: r.OK, Failed: r.Failed, Blocked: r.Blocked, LastAt: r.Last, BlockedBy: api.Counts{}}
	for target, n := range r.BlockedBy {
		shown.BlockedBy[target] = int(n)
	}
	return shown, nil
}
