package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
)

// firstFetchWait bounds how long a pool's first cycle waits for its sources:
// what they give later joins the cycle under way, or the next.
const firstFetchWait = 15 * time.Second

// schedule puts every source and every pool on cron. The chain's order matters:
// with Recover outside, a job that panicked once would count as running for ever.
func (d *Daemon) schedule(ctx context.Context) {
	logger := cronLogger{d.log}
	d.cron = cron.New(cron.WithLocation(time.UTC), cron.WithLogger(logger),
		cron.WithChain(cron.SkipIfStillRunning(logger), cron.Recover(logger)))
	for _, s := range d.sources {
		s.entry = d.cron.Schedule(s.cfg.Schedule, cron.FuncJob(func() { d.refresh(ctx, s) }))
	}
	for _, p := range d.pools {
		p.entry = d.cron.Schedule(p.cfg.Probe.Schedule, cron.FuncJob(func() { p.cycle(ctx) }))
		p.nextRun = func() time.Time { return d.cron.Entry(p.entry).Next.UTC() }
	}
}

// runJobs runs the schedules until ctx ends and every job under way has ended.
func (d *Daemon) runJobs(ctx context.Context) error {
	d.cron.Start()
	for _, s := range d.sources {
		d.runNow(s.entry)
	}
	for _, p := range d.pools {
		d.jobs.start(func() { d.firstCycle(ctx, p) })
	}
	<-ctx.Done()
	<-d.cron.Stop().Done()
	d.jobs.stop()
	return nil
}

// runNow runs a job through the same gates as the schedule: it is skipped while
// the job is under way, and a panic ends in the log.
func (d *Daemon) runNow(id cron.EntryID) {
	job := d.cron.Entry(id).WrappedJob
	d.jobs.start(job.Run)
}

// jobs are goroutines that somebody waits for, as long as more may be started.
type jobs struct {
	mu      sync.Mutex
	stopped bool
	group   sync.WaitGroup
}

// start runs a job, unless the jobs are being stopped.
func (j *jobs) start(run func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.stopped {
		j.group.Go(run)
	}
}

// stop lets no more start, and waits for those that run.
func (j *jobs) stop() {
	j.mu.Lock()
	j.stopped = true
	j.mu.Unlock()
	j.group.Wait()
}

// firstCycle starts a pool: nobody waits for the first tick, unless a cycle ran
// less than an interval ago, before a restart.
func (d *Daemon) firstCycle(ctx context.Context, p *pool) {
	wait, cancel := context.WithTimeout(ctx, firstFetchWait)
	defer cancel()
	for _, s := range p.sources {
		select {
		case <-s.first:
		case <-wait.Done():
		}
	}
	if ctx.Err() != nil {
		return
	}
	if last, err := p.lastCycle(ctx); err == nil && time.Since(last) < p.cfg.Probe.Schedule.Interval() {
		p.log.Info("the last cycle is recent, waiting for the schedule", "next", p.nextRun())
		return
	}
	d.runNow(p.entry)
}

// cronLogger gives cron's words the form of ours.
type cronLogger struct{ log *slog.Logger }

func (l cronLogger) Info(msg string, _ ...any) {
	if msg == "skip" {
		l.log.Warn("skipped: the run before is still under way")
	}
}

func (l cronLogger) Error(err error, msg string, keysAndValues ...any) {
	l.log.Error("a scheduled job failed", append([]any{"err", err, "what", msg}, keysAndValues...)...)
}
