package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/alloc"
	"evenpool/alloc/simulate"
	"evenpool/sources/proxyurl"
)

func policySimulateCommand() *cli.Command {
	return &cli.Command{
		Name:      "simulate",
		Usage:     "see what the start and restore policies do to the spread of allocations",
		ArgsUsage: " ",
		Description: `Plays the same history of members that come and go once for each policy, on a store
in memory: no pool is changed. All begin with count 0. Each count is given by the real
script; of the allocations between two changes, the last 64 are made by the real script
and the others worked out, and it is an error if the two do not agree.

The history is drawn from a model: those of public lists, where 85% of the members
are gone an hour later. Or it is what a pool has kept of itself, with --last: of
Redis, or of the embedded store, whose saved file is read. A pool keeps some 10,000
events, and none says how many allocations there were: name the --rate.

   LARGEST SHARE  of the allocations of one window that went to one proxy
   IN A ROW       the most allocations one after the other that went to one proxy
   SPREAD         the highest count less the lowest, at its largest
   GINI           of the counts at the windows' ends: 0 all alike, towards 1 one has
                  everything; at its largest

Time goes with the number of settlements and policies: 6 hours take some 10 s of
two CPUs, a day some 40 s.

Examples:
   evenpool policy simulate
   evenpool policy simulate --members 50 --hour-survival 0.9 --rate 5/s --hours 24
   evenpool policy simulate --policy min/floor --policy 0/keep --svg policies.svg
   evenpool policy simulate --last 24h --rate 20/s -c ./evenpool.yaml -o json`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "members", Value: 200, Usage: "`N` members, about: newcomers fill the pool up to that"},
			&cli.Float64Flag{Name: "hour-survival", Value: 0.15, Usage: "`SHARE` of the members that stay for an hour"},
			&cli.Float64Flag{Name: "returning", Value: 0.5, Usage: "`SHARE` of those that go that come back"},
			&cli.DurationFlag{Name: "away", Value: time.Hour, Usage: "for how much `TIME` these are away, on average"},
			&cli.Float64Flag{Name: "hours", Value: 6, Usage: "`HOURS` that are played"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`N`: another one draws another history, the same one the same"},
			&cli.DurationFlag{Name: "last", Usage: "play what came and went in the pool in the `TIME` until now, in place of the model"},
			poolFlag(),
			configFlag(),
			&cli.StringFlag{Name: "rate", Value: "50/s", Usage: "`RATE` of allocations, at an even pace: a number for each s, m or h"},
			&cli.DurationFlag{Name: "window", Value: time.Minute, Usage: "`TIME` that shares are of"},
			&cli.DurationFlag{Name: "settle-every", Value: 15 * time.Second, Usage: "`TIME` between two settlements of who came and went: a slice of probing"},
			&cli.StringSliceFlag{Name: "policy", Usage: "`START/RESTORE` to play, such as min/floor or 100/keep; may be repeated; default: ten that show what each word does"},
			&cli.StringFlag{Name: "svg", Usage: "also draw a picture into `FILE`"},
			outputFlag(),
		},
		Action: runPolicySimulate,
	}
}

// simulation is what was played, and what came of it; the JSON of -o json.
type simulation struct {
	Model   *simulatedModel   `json:"model,omitempty"`
	Events  *simulatedEvents  `json:"events,omitempty"`
	Hours   float64           `json:"hours"`
	Members int               `json:"members"` // at the beginning
	Came    int               `json:"came"`
	Went    int               `json:"went"`
	Rate    float64           `json:"rate_per_s"`
	WindowS float64           `json:"window_s"`
	SettleS float64           `json:"settle_every_s"`
	Results []simulate.Result `json:"policies"`
}

type simulatedModel struct {
	simulate.Churn
	AwayS float64 `json:"away_s"`
}

type simulatedEvents struct {
	Pool string    `json:"pool"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func runPolicySimulate(c *cli.Context) error {
	policies, rate, err := checkSimulateFlags(c)
	if err != nil {
		return err
	}
	var s simulation
	var history simulate.History
	if c.IsSet("last") {
		s.Events, history, err = eventsHistory(c, time.Now())
	} else {
		s.Model, history, err = modelHistory(c)
	}
	if err != nil {
		return err
	}
	options := simulate.Options{Rate: rate, Window: c.Duration("window"), Made: new(atomic.Int64)}
	if err := options.Check(history); err != nil {
		return usageError("%v", err)
	}
	picture := c.String("svg")
	if picture != "" {
		// What cannot be written is said now, not when all is played.
		file, err := os.OpenFile(picture, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
		file.Close()
	}
	s.describe(history, options, c.Duration("settle-every"))
	all := int64(rate * history.Length.Seconds() * float64(len(policies)))
	stop := showProgress(c.App.ErrWriter, func() string {
		return fmt.Sprintf("playing %d policies: %d%%", len(policies), 100*options.Made.Load()/max(1, all))
	})
	s.Results, err = simulate.Run(c.Context, history, policies, options)
	stop()
	if err != nil {
		return err
	}
	if picture != "" {
		if err := os.WriteFile(picture, []byte(s.svg()), 0o644); err != nil {
			return fmt.Errorf("--svg: %w", err)
		}
	}
	if wantsJSON(c) {
		return writeJSON(c.App.Writer, s)
	}
	return s.write(c.App.Writer)
}

func checkSimulateFlags(c *cli.Context) (policies []simulate.Policy, rate float64, err error) {
	if c.Args().Present() {
		return nil, 0, usageError("policy simulate takes no arguments, and got %q", proxyurl.Escape(c.Args().First(), 100))
	}
	for _, flag := range []string{"members", "hour-survival", "returning", "away", "hours", "seed"} {
		if c.IsSet("last") && c.IsSet(flag) {
			return nil, 0, usageError("--%s is of the model, and --last plays a pool's own events: leave out one of them", flag)
		}
	}
	for _, flag := range []string{"pool", "config"} {
		if c.IsSet(flag) && !c.IsSet("last") {
			return nil, 0, usageError("--%s is for a pool's own events: add --last, such as --last 24h", flag)
		}
	}
	for _, text := range c.StringSlice("policy") {
		p, err := parseStartRestore(text)
		if err != nil {
			return nil, 0, usageError("--policy %s: %v", proxyurl.Escape(text, 100), err)
		}
		policies = append(policies, p)
	}
	if policies == nil {
		policies = simulate.Policies()
	}
	if rate, err = parseRate(c.String("rate")); err != nil {
		return nil, 0, usageError("--rate %s: %v", proxyurl.Escape(c.String("rate"), 100), err)
	}
	return policies, rate, nil
}

func parseStartRestore(text string) (simulate.Policy, error) {
	start, restore, found := strings.Cut(text, "/")
	if !found {
		return simulate.Policy{}, fmt.Errorf("want START/RESTORE, such as min/floor")
	}
	s, err := alloc.ParseStart(start)
	if err != nil {
		return simulate.Policy{}, err
	}
	r, err := alloc.ParseRestore(restore)
	return simulate.Policy{Start: s, Restore: r}, err
}

// parseRate reads a number for each s, m or h, and gives that for a second.
func parseRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")
	seconds, known := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(rate > 0) || math.IsInf(rate, 0) {
		return 0, fmt.Errorf("want a number for each s, m or h, such as 50/s")
	}
	return rate / seconds, nil
}

// modelHistory draws a history by the command's flags.
func modelHistory(c *cli.Context) (*simulatedModel, simulate.History, error) {
	const mostHours = 10_000
	if hours := c.Float64("hours"); !(hours > 0 && hours <= mostHours) {
		return nil, simulate.History{}, usageError("--hours %g: want more than 0 and at most %d", hours, mostHours)
	}
	churn := simulate.Churn{
		Members:      c.Int("members"),
		HourSurvival: c.Float64("hour-survival"),
		Returning:    c.Float64("returning"),
		Away:         c.Duration("away"),
		Every:        c.Duration("settle-every"),
		Length:       time.Duration(c.Float64("hours") * float64(time.Hour)),
		Seed:         c.Uint64("seed"),
	}
	history, err := churn.History()
	if err != nil {
		return nil, history, usageError("%v", err)
	}
	return &simulatedModel{Churn: churn, AwayS: churn.Away.Seconds()}, history, nil
}

// describe notes what is played.
func (s *simulation) describe(h simulate.History, o simulate.Options, every time.Duration) {
	s.Hours, s.Members, s.Rate = h.Length.Hours(), len(h.Members), o.Rate
	s.WindowS, s.SettleS = o.Window.Seconds(), every.Seconds()
	for _, step := range h.Steps {
		for _, change := range step.Changes {
			if change.Joins {
				s.Came++
			} else {
				s.Went++
			}
		}
	}
}

// title says in a line what is played.
func (s simulation) title() string {
	text := fmt.Sprintf("%d members, %d went and %d came in %.4g h, at %.4g allocations a second", s.Members, s.Went, s.Came, s.Hours, s.Rate)
	if s.Events != nil {
		return fmt.Sprintf("pool %s: %s", s.Events.Pool, text)
	}
	return text
}

// runColumns is how many characters the runs over time take.
const runColumns = 48

// write prints a table for people.
func (s simulation) write(w io.Writer) error {
	even := ""
	if s.Members > 0 {
		even = fmt.Sprintf("; an even one of %d is %.1f%%", s.Members, 100/float64(s.Members))
	}
	fmt.Fprintf(w, "%s.\nShares are of %s%s.\n\n", s.title(), seconds(s.WindowS), even)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	most := s.longestRun()
	fmt.Fprintf(table, "START\tRESTORE\tLARGEST SHARE\tIN A ROW\tSPREAD\tGINI\tIN A ROW OVER TIME (▁ 1, █ %d, logarithmic)\n", max(most, 2))
	for _, r := range s.Results {
		fmt.Fprintf(table, "%s\t%s\t%.1f%%\t%d\t%d\t%.3f\t%s\n", r.Start, r.Restore, 100*r.LargestShare, r.LongestRun, r.MaxSpread, r.MaxGini,
			blocks(simulate.Fewer(r.OverTime, runColumns), most))
	}
	return table.Flush()
}

// seconds writes a time without its empty parts: 1m, not 1m0s.
func seconds(s float64) string {
	text := time.Duration(s * float64(time.Second)).String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, empty) {
			text = strings.TrimSuffix(text, empty[1:])
		}
	}
	return text
}

// pointSeconds is how long a point of the results over time is.
func (s simulation) pointSeconds() (long float64) {
	for _, r := range s.Results {
		long = s.WindowS * float64(r.PointWindows)
	}
	return long
}

func (s simulation) longestRun() (most int64) {
	for _, r := range s.Results {
		most = max(most, r.LongestRun)
	}
	return most
}

// blocks draws runs as columns of eighths, on a scale of logarithms from 1 to most.
func blocks(points []simulate.Point, most int64) string {
	const eighths = "▁▂▃▄▅▆▇█"
	var out strings.Builder
	for _, p := range points {
		height := 0
		if p.Run > 1 {
			height = int(math.Round(7 * math.Log(float64(p.Run)) / math.Log(float64(most))))
		}
		out.WriteRune([]rune(eighths)[height])
	}
	return out.String()
}
