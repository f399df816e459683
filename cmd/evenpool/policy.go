package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/urfave/cli/v2"

	"evenpool/daemon"
	"evenpool/daemon/config"
)

func policyCommand() *cli.Command {
	return &cli.Command{
		Name:  "policy",
		Usage: "check a configuration, show it as it takes effect, say what its rules mean, play its policies",
		Description: `Examples:
   evenpool policy check ./evenpool.yaml
   evenpool policy show
   evenpool policy explain --pool web
   evenpool policy simulate`,
		Subcommands: []*cli.Command{policyCheckCommand(), policyShowCommand(), policyExplainCommand(), policySimulateCommand()},
	}
}

// configFile is the configuration that is meant: the argument, else that of --config.
func configFile(c *cli.Context) (string, error) {
	switch {
	case c.NArg() > 1 || c.NArg() == 1 && c.IsSet("config"):
		return "", usageError("%s takes one FILE at the most", strings.TrimPrefix(c.Command.HelpName, "evenpool "))
	case c.NArg() == 1:
		return c.Args().First(), nil
	}
	return c.String("config"), nil
}

func policyCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say all that is wrong with a configuration, and when it would run",
		ArgsUsage: "[FILE]",
		Description: `Reads the file, and those that it names: keys, certificates, the password, lists of
banned proxies, databases of places. It asks no source, judge, Redis or daemon. What
is wrong goes to standard error, a line each, and the exit code is 78. Root may read
what the service may not: runuser -u evenpool shows what the service would see.

Examples:
   evenpool policy check
   evenpool policy check ./evenpool.yaml -o json
   evenpool policy check --alone ./evenpool.yaml`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.BoolFlag{Name: "alone", Usage: "read no other file: for a configuration of another host"},
			outputFlag(),
		},
		Action: func(c *cli.Context) error {
			file, err := configFile(c)
			if err != nil {
				return err
			}
			return checkPolicy(c, file, time.Now())
		},
	}
}

func policyShowCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show a configuration as it takes effect, defaults included",
		ArgsUsage: "[FILE]",
		Description: `Users, passwords and keys in URLs are shown as ***.

Examples:
   evenpool policy show
   evenpool policy show ./evenpool.yaml -o json`,
		Flags: []cli.Flag{configFlag(), outputFlag()},
		Action: func(c *cli.Context) error {
			file, err := configFile(c)
			if err != nil {
				return err
			}
			cfg, err := loadConfig(file, c.App.ErrWriter)
			if err != nil {
				return err
			}
			if wantsJSON(c) {
				return writeJSON(c.App.Writer, cfg)
			}
			text, err := yaml.Marshal(cfg)
			if err != nil {
				return err
			}
			_, err = c.App.Writer.Write(text)
			return err
		},
	}
}

// policyCheck is what policy check has to say about a file.
type policyCheck struct {
	File      string           `json:"file"`
	OK        bool             `json:"ok"`
	Problems  []config.Problem `json:"problems"`
	Warnings  []config.Warning `json:"warnings"`
	Schedules []policySchedule `json:"schedules"`
}

// policySchedule says when a pool or source is next due.
type policySchedule struct {
	Kind     string      `json:"kind"` // pool or source
	Name     string      `json:"name"`
	Schedule string      `json:"schedule"`
	Next     []time.Time `json:"next"` // in UTC, without the run at the daemon's start
}

// shownRuns is how many runs of each schedule are shown: enough to see its step
// and whether it is the one that was meant.
const shownRuns = 5

func checkPolicy(c *cli.Context, file string, now time.Time) error {
	check := policyCheck{File: file, Problems: []config.Problem{}, Warnings: []config.Warning{}, Schedules: []policySchedule{}}
	cfg, warnings, err := config.Load(file, configDefaults())
	check.Warnings = append(check.Warnings, warnings...)
	for _, w := range warnings {
		fmt.Fprintf(c.App.ErrWriter, "warning: %s\n", w)
	}
	if err == nil && !c.Bool("alone") {
		err = checkFiles(cfg)
	}
	if err != nil {
		fmt.Fprintln(c.App.ErrWriter, err)
		if problems := (config.Errors)(nil); errors.As(err, &problems) {
			check.Problems = problems
		}
		if wantsJSON(c) {
			if err := writeJSON(c.App.Writer, check); err != nil {
				return err
			}
		}
		return &exitError{code: exitConfig}
	}
	check.OK = true
	for _, p := range cfg.Pools {
		check.Schedules = append(check.Schedules, schedule("pool", p.Name, p.Probe.Schedule, now))
	}
	for _, s := range cfg.Sources {
		check.Schedules = append(check.Schedules, schedule("source", s.Name, s.Schedule, now))
	}
	if wantsJSON(c) {
		return writeJSON(c.App.Writer, check)
	}
	return writeCheck(c.App.Writer, check)
}

// checkFiles reads what the configuration names, as serve would.
func checkFiles(cfg *config.Config) error {
	_, err := cfg.Redis.Password(os.Getenv("CREDENTIALS_DIRECTORY"))
	wrong := cfg.FilesIn("redis", err)
	if of := (config.Errors)(nil); errors.As(daemon.CheckFiles(cfg), &of) {
		wrong = append(wrong, of...)
	}
	if len(wrong) == 0 {
		return nil
	}
	wrong.Sort()
	return wrong
}

func schedule(kind, name string, s config.Schedule, now time.Time) policySchedule {
	out := policySchedule{Kind: kind, Name: name, Schedule: s.String()}
	for range shownRuns {
		now = s.Next(now)
		if now.IsZero() {
			break
		}
		out.Next = append(out.Next, now)
	}
	return out
}

func writeCheck(w io.Writer, check policyCheck) error {
	fmt.Fprintf(w, "%s: sound\n\n", check.File)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "WHAT\tNAME\tSCHEDULE\tNEXT RUNS (UTC), BESIDES THE DAEMON'S START\n")
	for _, s := range check.Schedules {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", s.Kind, s.Name, s.Schedule, runs(s.Next))
	}
	return table.Flush()
}

// runs writes times in one line, each day once.
func runs(times []time.Time) string {
	text, day := "", ""
	for _, t := range times {
		if d := t.Format(time.DateOnly); d != day {
			day = d
			text += "  " + d
		}
		text += " " + t.Format(time.TimeOnly)
	}
	return text[min(2, len(text)):]
}
