package daemon

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// statusEvery is how often systemd is told how the pools are.
const statusEvery = 10 * time.Second

// notify tells systemd the truth until ctx ends: READY (the socket accepts by
// now), how the pools are, and the watchdog's sign of life while the scheduler
// and the socket move. The sign never depends on Redis, judges or the network.
// Without systemd it says nothing and waits.
func (d *Daemon) notify(ctx context.Context) error {
	every := statusEvery
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		d.log.Warn("the watchdog is off", "err", err)
	}
	if watchdog > 0 {
		every = min(every, watchdog/3)
	}
	d.sdNotify(daemon.SdNotifyReady + "\nSTATUS=" + d.statusLine())
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			d.sdNotify(daemon.SdNotifyStopping)
			return nil
		case <-ticker.C:
		}
		state := "STATUS=" + d.statusLine()
		if watchdog > 0 && d.moves(ctx) {
			state += "\n" + daemon.SdNotifyWatchdog
		}
		d.sdNotify(state)
	}
}

func (d *Daemon) sdNotify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		d.log.Debug("systemd was not told", "err", err)
	}
}

// moves says whether the scheduler and the accept loop answer.
func (d *Daemon) moves(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	scheduler := make(chan struct{})
	go func() { // ends with cron: Entries asks its loop
		d.cron.Entries()
		close(scheduler)
	}()
	select {
	case <-scheduler:
	case <-ctx.Done():
		return false
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.cfg.Socket.Path)
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://evenpool/v1/", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// statusLine is what `systemctl status` shows.
func (d *Daemon) statusLine() string {
	reachable, _, note := d.monitor.get()
	line := "store " + d.storeName()
	if !reachable {
		line += " unreachable: " + note
	}
	for _, p := range d.pools {
		counts, guard := p.glance()
		line += fmt.Sprintf("; %s: %d members, %d candidates, %s", p.cfg.Name, counts.members, counts.known-counts.members, guard.State)
	}
	return line
}
