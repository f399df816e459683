package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
)

func sourcesCommand() *cli.Command {
	return &cli.Command{
		Name:      "sources",
		Usage:     "show how the lists of candidates are, fetch one now, or see what one gives",
		ArgsUsage: " ",
		Description: `Asks the daemon how its lists are:

   STATE       new (not fetched yet), good, stale (the last fetch failed, and the
               good copy from before is in use), or failed (and there is no copy)
   CANDIDATES  proxies of the copy in use that are offered to pools
   NEW         those of them that the copy before did not name
   REJECTED    records that gave no candidate, by reason below
   REFUSED     proxies that are not offered, such as those on port 25
   TRIED       when a fetch last ended, well or not
   COPY        the age of the copy in use
   NEXT        when the next fetch is due

Examples:
   evenpool sources
   evenpool sources -o json | jq '.sources[] | select(.stale)'
   evenpool sources fetch mylist
   evenpool sources check
   evenpool sources check proxies.txt --scheme http`,
		Flags:       []cli.Flag{socketFlag(), timeoutFlag(5 * time.Second), outputFlag()},
		Subcommands: []*cli.Command{sourcesFetchCommand(), sourcesCheckCommand()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("unknown command %q; 'evenpool sources --help' lists them", c.Args().First())
			}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				list, err := client.Sources(ctx)
				if err != nil {
					return err
				}
				if wantsJSON(c) {
					return writeJSON(c.App.Writer, api.Sources{Sources: list})
				}
				return writeSources(c.App.Writer, list, time.Now())
			})
		},
	}
}

func sourcesFetchCommand() *cli.Command {
	return &cli.Command{
		Name:      "fetch",
		Usage:     "have the daemon fetch a list now, and show what came of it",
		ArgsUsage: "NAME",
		Description: `Waits for the end of the fetch. It goes through the gate of the schedule: while a
fetch of the list is under way, and as long as the list's server has asked not to be
asked, nothing is fetched, and the status is 69. It is 1 when the list was not usable;
the last good copy stays in use.

Examples:
   evenpool sources fetch mylist
   evenpool sources fetch mylist -o json | jq .candidates`,
		Flags: []cli.Flag{
			socketFlag(),
			&cli.DurationFlag{Name: "timeout", Value: 2 * time.Minute, Usage: "`TIME` to wait for the end; the fetch goes on without you"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usageError("sources fetch takes the name of one source; 'evenpool sources' lists them")
			}
			if d := c.Duration("timeout"); d < 10*time.Millisecond || d > time.Hour {
				return usageError("--timeout %s: expected 10ms to 1h", d)
			}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				source, err := client.FetchSource(ctx, c.Args().First())
				if err != nil {
					return err
				}
				write := func() error { return writeSources(c.App.Writer, []api.Source{source}, time.Now()) }
				if wantsJSON(c) {
					write = func() error { return writeJSON(c.App.Writer, source) }
				}
				if err := write(); err != nil {
					return err
				}
				return fetchError(source, time.Now())
			})
		},
	}
}

// fetchError says that a fetch gave nothing to use.
func fetchError(s api.Source, now time.Time) error {
	switch {
	case s.Error == "":
		return nil
	case s.WaitUntil.After(now): // the error says so
		return &exitError{exitUnavailable, errors.New(show(s.Error))}
	}
	return &exitError{exitFailed, errors.New(show(s.Error))}
}

// writeSources writes how lists are: a table, and below it what is wrong.
func writeSources(w io.Writer, list []api.Source, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SOURCE\tSTATE\tCANDIDATES\tNEW\tREJECTED\tREFUSED\tTRIED\tCOPY\tNEXT")
	for _, s := range list {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", show(s.Name), show(s.State), s.Candidates, s.New,
			sum(s.Rejects), sum(s.Refused), since(s.TriedAt, now), since(s.FetchedAt, now), since(now, s.NextFetchAt))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if _, err := io.WriteString(w, wrongWith(s)); err != nil {
			return err
		}
	}
	return nil
}

// wrongWith writes what is to be said of a list beside its numbers, if anything.
func wrongWith(s api.Source) string {
	var b strings.Builder
	if s.Error != "" {
		fmt.Fprintf(&b, "  %s\n", show(s.Error))
	}
	if len(s.Rejects) > 0 {
		fmt.Fprintf(&b, "  rejected: %s\n", show(tally(s.Rejects)))
	}
	for _, sample := range s.Samples {
		fmt.Fprintf(&b, "    line %d: %s: %s\n", sample.Line, show(sample.Reason), show(sample.Text))
	}
	if len(s.Refused) > 0 {
		fmt.Fprintf(&b, "  refused: %s\n", show(tally(s.Refused)))
	}
	if b.Len() == 0 {
		return ""
	}
	what := show(s.Name)
	if s.Format != "" {
		what += " (" + show(s.Format) + ")"
	}
	return "\n" + what + "\n" + b.String()
}

// since is the time from one moment to another in its largest unit, to fit into a
// table: "3m"; "-" for a time that is not known.
func since(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "-"
	}
	text, _, _ := strings.Cut(length(max(0, to.Sub(from)).Truncate(time.Second)), " ")
	return text
}

func sum(counts api.Counts) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
