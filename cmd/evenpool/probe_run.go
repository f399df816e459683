package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// bout is one run of the command.
type bout struct {
	prober   *probe.Prober
	allow    proxyurl.Allow
	judges   []probe.Judge
	rules    probe.Rules
	controls []control
	tried    []tried // in the order given
	began    bool    // a judge was well, so that proxies were tried
	done     atomic.Int64
	passed   atomic.Int64
}

// control is one judge, asked directly before and after.
type control struct {
	judge         probe.Judge
	capability    probe.Capability
	before, after probe.Check
}

func (c control) well() bool { return c.before.Outcome == probe.OK && c.after.Outcome == probe.OK }

// tried is a candidate and what was seen of it; no results: it was not reached.
type tried struct {
	candidate sources.Candidate
	results   []probe.Result
	verdict   probe.RoundVerdict
}

func (b *bout) run(ctx context.Context, concurrency int, progress io.Writer) error {
	var seen probe.Seen
	for _, j := range b.judges {
		for _, c := range probe.Capabilities() {
			if j.Shows(c) {
				before, saw := b.prober.Control(ctx, j, c)
				seen.Add(saw)
				b.controls = append(b.controls, control{judge: j, capability: c, before: before})
			}
		}
	}
	wellBefore := func(name string, c probe.Capability) bool {
		return b.control(name, c).before.Outcome == probe.OK
	}
	options := probe.PlanOptions{Judges: b.judges, Require: probe.Capabilities(), Seen: seen, Well: wellBefore}
	plan, missing, err := probe.NewPlan(options)
	if err != nil {
		return err
	}
	if len(missing) == len(options.Require) {
		return fmt.Errorf("no judge answers as it should: %s", b.ills())
	}
	for _, c := range options.Require {
		if !slices.Contains(missing, c) {
			b.rules.Require = append(b.rules.Require, c)
		}
	}
	b.began = true
	b.probeAll(ctx, plan, concurrency, progress)
	for i := range b.controls {
		b.controls[i].after, _ = b.prober.Control(ctx, b.controls[i].judge, b.controls[i].capability)
	}
	for i := range b.tried {
		t := &b.tried[i]
		t.verdict = b.rules.Judge(probe.Record{}, probe.Round{Results: t.results}, func(name string, c probe.Capability) bool { return b.control(name, c).well() })
	}
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d proxies", b.done.Load(), len(b.tried))
	}
	return nil
}

func (b *bout) control(name string, c probe.Capability) control {
	for _, control := range b.controls {
		if control.judge.Name == name && control.capability == c {
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
			texts = append(texts, fmt.Sprintf("%s (%s): %s at %s: %s", c.judge.Name, c.capability, c.before.Outcome, c.before.Stage, c.before.Detail))
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
				order := b.rules.TryOrder(probe.Record{Schemes: t.candidate.Schemes})
				results := b.prober.Round(ctx, plan, probe.Job{Endpoint: t.candidate.Endpoint, Schemes: order, Allow: b.allow})
				if ctx.Err() != nil {
					continue // cut short: nothing was learned
				}
				t.results = results
				if len(results) > 0 && results[len(results)-1].Outcome == probe.OK {
					b.passed.Add(1)
				}
				b.done.Add(1)
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
