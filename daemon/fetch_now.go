package daemon

import "context"

// fetchNow fetches a list through the gate of the schedule and waits for the end.
func (d *Daemon) fetchNow(ctx context.Context, name string) error {
	for _, s := range d.sources {
		if s.cfg.Name != name {
			continue
		}
		ended := make(chan struct{})
		job := d.cron.Entry(s.entry).WrappedJob
		d.jobs.start(func() { job.Run(); close(ended) })
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return errUnknownSource
}
