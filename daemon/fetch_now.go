package daemon

import (
	"context"
	"fmt"
)

// fetchNow fetches a list through the gate of the schedule and waits for the end.
func (d *Daemon) fetchNow(ctx context.Context, name string) error {
	for _, s := range d.sources {
		if s.cfg.Name != name {
			continue
		}
		busy := fmt.Errorf("%w: a fetch of source %s is under way", errBusy, name)
		if s.fetching.Load() {
			return busy
		}
		s.wanted.Store(true)
		before := s.fetches.Load()
		ended := make(chan struct{})
		job := d.cron.Entry(s.entry).WrappedJob
		d.jobs.start(func() { defer close(ended); job.Run() })
		select {
		case <-ended:
			if s.fetches.Load() == before { // the gate was shut: another was quicker
				return busy
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errUnknownSource
}
