package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/alloc"
	"evenpool/alloc/simulate"
	"evenpool/daemon/config"
	"evenpool/sources/proxyurl"
)

// mostEvents is more than a pool keeps.
const mostEvents = 20_000

// eventsHistory gives the history of a pool in the time that --last names, as far back as its events
// go.
func eventsHistory(c *cli.Context, now time.Time) (*simulatedEvents, simulate.History, error) {
	last, every := c.Duration("last"), c.Duration("settle-every")
	if last <= 0 {
		return nil, simulate.History{}, usageError("--last %s: want more than 0, such as 24h", last)
	}
	cfg, err := loadConfig(c.String("config"), c.App.ErrWriter)
	if err != nil {
		return nil, simulate.History{}, err
	}
	name, err := simulatedPool(cfg, c.String("pool"))
	if err != nil {
		return nil, simulate.History{}, err
	}
	members, events, err := readPool(c.Context, cfg, name)
	if errors.Is(err, alloc.ErrUnavailable) {
		return nil, simulate.History{}, &exitError{exitUnavailable, err}
	}
	if err != nil {
		return nil, simulate.History{}, err
	}
	from := now.Add(-last)
	if n := len(events); n > 0 && events[n-1].At.After(from) {
		// The pool is younger, or has forgotten what was before.
		from = events[n-1].At
		fmt.Fprintf(c.App.ErrWriter, "the events of pool %s begin at %s: what was before is not known\n", name, from.Format(time.DateTime))
	}
	history, err := simulate.FromEvents(members, events, from, now, every)
	if err != nil {
		return nil, history, fmt.Errorf("pool %s since %s: %w; take a longer --last, or leave it out for a model", name, from.Format(time.DateTime), err)
	}
	return &simulatedEvents{Pool: name, From: from.UTC(), To: now.UTC()}, history, nil
}

// simulatedPool is the pool of that name, or the only one.
func simulatedPool(cfg *config.Config, name string) (string, error) {
	if name == "" && len(cfg.Pools) > 1 {
		return "", usageError("there are %d pools: name one by --pool", len(cfg.Pools))
	}
	for _, p := range cfg.Pools {
		if p.Name == cmp.Or(name, p.Name) {
			return p.Name, nil
		}
	}
	return "", usageError("--pool %s: the configuration has no such pool", proxyurl.Escape(name, 100))
}

// readPool reads a pool's members and events, the newest first: from Redis, or from a copy of what
// the embedded store has last saved, as the store itself is the daemon's.
func readPool(ctx context.Context, cfg *config.Config, name string) (members []alloc.Allocation, events []alloc.Event, err error) {
	var store *alloc.Store
	if cfg.Redis.URL == "" {
		scratch, err := alloc.OpenScratch(nil)
		if err != nil {
			return nil, nil, err
		}
		defer scratch.Close()
		if err := scratch.Load(cfg.StateDir); err != nil {
			return nil, nil, fmt.Errorf("the embedded store: %w", err)
		}
		store = scratch.Store
	} else {
		password, err := cfg.Redis.Password(os.Getenv("CREDENTIALS_DIRECTORY"))
		if err != nil {
			return nil, nil, &exitError{exitConfig, cfg.FilesIn("redis", err)}
		}
		store, err = alloc.Open(alloc.Options{URL: cfg.Redis.URL, Username: cfg.Redis.Username, Password: password})
		if err != nil {
			return nil, nil, err
		}
		defer store.Close()
	}
	pool := store.Pool(name)
	if members, err = pool.Members(ctx); err != nil {
		return nil, nil, err
	}
	if events, err = pool.Events(ctx, mostEvents); err != nil {
		return nil, nil, err
	}
	if len(members) == 0 && len(events) == 0 {
		return nil, nil, fmt.Errorf("pool %s has neither members nor events: has its daemon run yet?", name)
	}
	return members, events, nil
}
