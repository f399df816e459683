package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
)

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:      "status",
		Usage:     "show how the daemon, its store and its pools are",
		ArgsUsage: " ",
		Description: `Examples:
   evenpool status
   evenpool status -o json | jq '.pools[] | {name, members}'`,
		Flags: []cli.Flag{socketFlag(), timeoutFlag(5 * time.Second), outputFlag()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("status takes no arguments")
			}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				status, err := client.Status(ctx)
				if err != nil {
					return err
				}
				if wantsJSON(c) {
					return writeJSON(c.App.Writer, status)
				}
				return writeStatus(c.App.Writer, status, time.Now())
			})
		},
	}
}

// screen collects lines of a label and a text.
type screen struct {
	strings.Builder
	now time.Time
}

// line writes a text of the daemon behind a label; an empty label goes on with
// what was before.
func (s *screen) line(label, format string, args ...any) {
	fmt.Fprintf(s, "  %-12s %s\n", label, show(fmt.Sprintf(format, args...)))
}

// writeStatus writes a status for a person.
func writeStatus(w io.Writer, st api.Status, now time.Time) error {
	s := &screen{now: now}
	fmt.Fprintf(s, "evenpool %s, up %s\n", show(st.Version), length(time.Duration(st.UptimeMS)*time.Millisecond))
	s.store(st.Store)
	for _, p := range st.Pools {
		s.pool(p)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *screen) store(st api.Store) {
	what := st.Kind
	if st.URL != "" {
		what += " " + st.URL
	}
	if st.Version != "" && st.Version != st.Kind {
		what += " (" + st.Version + ")"
	}
	state := "reachable"
	if !st.Reachable {
		state = "NOT REACHABLE"
	}
	s.line("store", "%s, %s%s", what, state, s.when(" since ", st.Since))
	if st.Note != "" {
		s.line("", "%s", st.Note)
	}
}

func (s *screen) pool(p api.Pool) {
	fmt.Fprintf(s, "\npool %s: %d %s, %d %s, %d due%s\n", show(p.Name), p.Members, plural(p.Members, "member"),
		p.Candidates, plural(p.Candidates, "candidate"), p.Due, s.counted(p.CountedAt))
	if e := p.Counts; e != nil && p.Members > 0 {
		s.line("counts", "%d to %d, mean %.1f, spread %d, Gini %.3f", e.Lowest, e.Highest, e.Mean, e.Spread, e.Gini)
	}
	s.cycle(p.LastCycle)
	if !p.NextCycleAt.IsZero() {
		s.line("next cycle", "%s", s.relative(p.NextCycleAt))
	}
	guard := p.Guard.State
	if p.Guard.State != api.GuardNormal {
		guard = strings.ToUpper(guard) + s.when(" since ", p.Guard.Since)
	}
	if p.Guard.Why != "" {
		guard += ": " + p.Guard.Why
	}
	s.line("guard", "%s", guard)
	label := "judges"
	for _, j := range p.Judges {
		state := "well"
		if !j.Well {
			state = "NOT WELL: " + strings.Join(filled(j.Outcome, j.Detail), ": ")
		}
		if j.CheckedAt.IsZero() {
			state = "not asked yet"
		}
		s.line(label, "%s %s %s%s", j.Name, j.Capability, state, s.when(", asked ", j.CheckedAt))
		label = ""
	}
	label = "sources"
	for _, src := range p.Sources {
		s.source(label, src)
		label = ""
	}
}

// counted says that numbers are old, which they are while the store is away.
func (s *screen) counted(at time.Time) string {
	if at.IsZero() {
		return " (not counted yet)"
	}
	if s.now.Sub(at) < time.Minute {
		return ""
	}
	return " (counted " + s.relative(at) + ")"
}

func (s *screen) cycle(c *api.Cycle) {
	if c == nil {
		s.line("last cycle", "none has ended yet")
		return
	}
	s.line("last cycle", "%s, took %s: probed %d %s and %d %s", s.relative(c.StartedAt), length(time.Duration(c.DurationMS)*time.Millisecond),
		c.ProbedMembers, plural(int64(c.ProbedMembers), "member"), c.ProbedCandidates, plural(int64(c.ProbedCandidates), "candidate"))
	s.line("", "%d passed, %d failed, %d inconclusive; %d admitted, %d retired%s%s%s", c.Passed, c.Failed, c.Inconclusive,
		c.Admitted, c.Retired, some(c.Held, ", %d held by the guard"), some(c.PutOff, ", %d put off as a flood"), some(c.VoidSlices, ", %d void slices"))
	if len(c.Outcomes) > 0 {
		s.line("", "%s", tally(c.Outcomes))
	}
	if c.Error != "" {
		s.line("", "ended early: %s", c.Error)
	}
}

func (s *screen) source(label string, src api.Source) {
	if src.FetchedAt.IsZero() {
		s.line(label, "%s: %s%s", src.Name, cmp.Or(src.Error, "not fetched yet"), s.when(", next ", src.NextFetchAt))
		return
	}
	s.line(label, "%s: %d %s, fetched %s%s", src.Name, src.Candidates, plural(int64(src.Candidates), "candidate"),
		s.relative(src.FetchedAt), s.when(", next ", src.NextFetchAt))
	if len(src.Rejects) > 0 {
		s.line("", "  records rejected: %s", tally(src.Rejects))
	}
	if len(src.Refused) > 0 {
		s.line("", "  candidates refused: %s", tally(src.Refused))
	}
	if src.Stale {
		s.line("", "  STALE, the last good copy is used: %s", src.Error)
	}
}

// when gives a time behind a word, or nothing for a time that is not known.
func (s *screen) when(word string, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return word + s.relative(t)
}

// relative says how far away a time is: "3m ago", "in 20s", "now".
func (s *screen) relative(t time.Time) string {
	switch d := t.Sub(s.now).Round(time.Second); {
	case d < 0:
		return length(-d) + " ago"
	case d > 0:
		return "in " + length(d)
	}
	return "now"
}

// length writes a duration with its two largest units: 350ms, 14s, 3h 12m.
func length(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/day, d%day/time.Hour)
}

// tally writes counts, the largest first: "timeout 12, refused 3".
func tally(counts api.Counts) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

// some writes a number that is worth a word.
func some(n int, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func plural(n int64, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// filled leaves out empty texts.
func filled(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}
