package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"evenpool/probe"
	"evenpool/sources"
)

// bout is one run of the command.
type bout struct {
	means
	prober   *probe.Prober
	verbose  bool
	controls []control
	tried    []tried // in the order given
	began    bool    // a judge was well, so that proxies were tried
	done     atomic.Int64
	passed   atomic.Int64

	reachable []string // targets that are
}

// control is one judge or target, asked directly before and after.
type control struct {
	name          string // of a target it is its TargetName
	ask           func(context.Context) (probe.Check, probe.Seen)
	before, after probe.Check
}

func (c control) well() bool { return c.before.Outcome == probe.OK && c.after.Outcome == probe.OK }

// tried is a candidate and what was seen of it; no results: it was not reached.
type tried struct {
	candidate sources.Candidate
	barred    bool // by rules that need no probe: it was not asked
	at        time.Time
	results   []probe.Result
	talks     []*talk // what was said, question by question
	verdict   probe.RoundVerdict
	exits     []probe.Exit
	rules     []probe.Reason // all of them; nil without a pool
}

func newBout(m means, candidates []sources.Candidate, verbose bool) *bout {
	b := &bout{means: m, prober: probe.New(m.options), verbose: verbose, tried: make([]tried, len(candidates))}
	for i, candidate := range candidates {
		b.tried[i].candidate = candidate
	}
	for _, j := range m.judges {
		for _, c := range m.require {
			if j.Shows(c) {
				b.controls = append(b.controls, control{name: j.Name, ask: func(ctx context.Context) (probe.Check, probe.Seen) {
					return b.prober.Control(ctx, j, c)
				}})
			}
		}
	}
	for _, t := range m.targets {
		b.controls = append(b.controls, control{name: probe.TargetName(t.Name), ask: func(ctx context.Context) (probe.Check, probe.Seen) {
			return b.prober.ControlTarget(ctx, t), probe.Seen{}
		}})
	}
	return b
}

func (b *bout) run(ctx context.Context, concurrency int, progress io.Writer) error {
	var seen probe.Seen
	for i := range b.controls {
		var saw probe.Seen
		b.controls[i].before, saw = b.controls[i].ask(ctx)
		seen.Add(saw)
	}
	wellBefore := func(name string, c probe.Capability) bool {
		return b.control(name, c).before.Outcome == probe.OK
	}
	options := probe.PlanOptions{Judges: b.judges, Require: b.require, MinJudges: b.rules.MinJudges, Seen: seen, Well: wellBefore, Targets: b.targets}
	plan, missing, err := probe.NewPlan(options)
	if err != nil {
		return err
	}
	if len(missing) == len(options.Require) {
		return fmt.Errorf("no judge answers as it should: %s", b.ills())
	}
	for _, c := range options.Require {
		if b.pool == "" && !slices.Contains(missing, c) {
			b.rules.Require = append(b.rules.Require, c)
		}
	}
	for _, t := range b.targets {
		if slices.ContainsFunc(b.controls, func(c control) bool { return c.name == probe.TargetName(t.Name) && c.before.Outcome == probe.OK }) {
			b.reachable = append(b.reachable, t.Name)
		}
	}
	b.began = true
	b.probeAll(ctx, plan, concurrency, progress)
	for i := range b.controls {
		b.controls[i].after, _ = b.controls[i].ask(ctx)
	}
	for i := range b.tried {
		b.judge(&b.tried[i])
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d proxies", b.done.Load(), len(b.tried))
	}
	return nil
}

// judge gives the verdict on a candidate, as on one of which nothing else is known.
func (b *bout) judge(t *tried) {
	record := probe.Record{Schemes: t.candidate.Schemes}
	if t.barred {
		t.verdict = probe.RoundVerdict{State: probe.Fail, Reasons: b.rules.Bar(t.candidate.Endpoint, record, t.at).Reasons}
	} else {
		round := probe.Round{At: t.at, Results: t.results, Geo: b.geo}
		round.Verdict = b.rules.Judge(record, round, func(name string, c probe.Capability) bool { return b.control(name, c).well() })
		t.verdict = round.Verdict
		record = record.After(round)
	}
	t.exits = record.Exits
	if b.pool == "" {
		return
	}
	t.rules = b.rules.Explain(t.candidate.Endpoint, record, t.at).Reasons
	for _, r := range t.verdict.Reasons { // such as control, which is no condition
		if !slices.ContainsFunc(t.rules, func(known probe.Reason) bool { return known.Rule == r.Rule }) {
			t.rules = append(t.rules, r)
		}
	}
}

func (b *bout) control(name string, c probe.Capability) control {
	for _, control := range b.controls {
		if control.name == name && control.before.Capability == c {
			return control
		}
	}
	return control{}
}

// ills says what is wrong with the judges.
func (b *bout) ills() string {
	var texts []string
	for _, c := range b.controls {
		if c.before.Outcome != probe.OK {
			texts = append(texts, fmt.Sprintf("%s (%s): %s at %s: %s", c.name, c.before.Capability, c.before.Outcome, c.before.Stage, c.before.Detail))
		}
	}
	return strings.Join(texts, "; ")
}

// probeAll tries all, a number of them at once, and shows how far it has come if
// progress is a terminal.
func (b *bout) probeAll(ctx context.Context, plan probe.Plan, concurrency int, progress io.Writer) {
	next := make(chan *tried)
	var workers sync.WaitGroup
	for range min(concurrency, len(b.tried)) {
		workers.Go(func() {
			for t := range next {
				b.probeOne(ctx, plan, t)
			}
		})
	}
	stop := showProgress(progress, func() string {
		return fmt.Sprintf("%d of %d tried, %d pass", b.done.Load(), len(b.tried), b.passed.Load())
	})
	for i := range b.tried {
		if ctx.Err() != nil {
			break
		}
		next <- &b.tried[i]
	}
	close(next)
	workers.Wait()
	stop()
}

func (b *bout) probeOne(ctx context.Context, plan probe.Plan, t *tried) {
	record := probe.Record{Schemes: t.candidate.Schemes}
	t.at = time.Now()
	if b.rules.Bar(t.candidate.Endpoint, record, t.at).Bars() {
		t.barred = true
		b.done.Add(1)
		return
	}
	job := probe.Job{Endpoint: t.candidate.Endpoint, Schemes: b.rules.TryOrder(record), Allow: b.allow, Targets: b.reachable}
	if b.verbose {
		job.Trace = t.listen
	}
	results := b.prober.Round(ctx, plan, job)
	if ctx.Err() != nil {
		return // cut short: nothing was learned
	}
	t.results = results
	if len(results) > 0 && results[len(results)-1].Outcome == probe.OK {
		b.passed.Add(1)
	}
	b.done.Add(1)
}
