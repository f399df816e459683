package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

func whyCommand() *cli.Command {
	return &cli.Command{
		Name:      "why",
		Usage:     "say why a proxy is, or is not, a member",
		ArgsUsage: "PROXY",
		Description: `PROXY is a URL or HOST:PORT. A proxy with a user and a password is named as
status shows it, with *** for the password: others can read a command line.

Examples:
   evenpool why 203.0.113.7:8080
   evenpool why 'http://user:***@203.0.113.7:8080' --pool web
   evenpool why 203.0.113.7:8080 -o json | jq '.results'`,
		Flags: []cli.Flag{poolFlag(), socketFlag(), timeoutFlag(5 * time.Second), outputFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usageError("why takes one proxy, as in: evenpool why 203.0.113.7:8080")
			}
			proxy := c.Args().First()
			if err := checkProxy(proxy); err != nil {
				return err
			}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				why, err := client.Why(ctx, c.String("pool"), proxy)
				if err != nil {
					return err
				}
				if wantsJSON(c) {
					return writeJSON(c.App.Writer, why)
				}
				return writeWhy(c.App.Writer, why, time.Now())
			})
		},
	}
}

// checkProxy refuses what the daemon would refuse, without asking it.
func checkProxy(text string) error {
	var u proxyurl.URL
	var err error
	if strings.Contains(text, "://") {
		u, err = proxyurl.ParseURL(text)
	} else {
		u.Endpoint, err = proxyurl.ParseEndpoint(text)
	}
	if err != nil {
		return usageError("%w; expected SCHEME://HOST:PORT or HOST:PORT", err)
	}
	if password := u.Endpoint.Password(); password != "" && password != "***" {
		return usageError("other users of this host can see arguments: write *** for the password, as status shows it")
	}
	return nil
}

// writeWhy writes an explanation for a person.
func writeWhy(w io.Writer, why api.Why, now time.Time) error {
	s := &screen{now: now}
	fmt.Fprintf(s, "%s: %s", show(why.Proxy), show(why.State))
	if why.Count != nil {
		fmt.Fprintf(s, ", allocated %d times", *why.Count)
	}
	s.WriteString("\n")
	if why.Text != "" {
		fmt.Fprintf(s, "%s\n", show(why.Text))
	}
	if why.State != api.StateUnknown {
		s.record(why)
	}
	label := "rules"
	for _, r := range why.Rules {
		mark := map[string]string{api.RulePass: "pass", api.RuleFail: "FAIL"}[r.Result]
		if mark == "" {
			mark = "?"
		}
		s.line(label, "%-4s %s: %s", mark, r.Rule, r.Text)
		label = ""
	}
	label = "results"
	for _, r := range why.Results {
		s.line(label, "%s, %s: %s", s.relative(r.At), r.Proxy, result(r))
		label = ""
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *screen) record(why api.Why) {
	if len(why.Schemes) > 0 || len(why.Sources) > 0 {
		s.line("listed as", "%s by %s%s", strings.Join(why.Schemes, ", "), strings.Join(why.Sources, ", "),
			s.when(", first seen ", why.FirstSeenAt))
	}
	if hints := filled(why.Country, why.Anonymity); len(hints) > 0 {
		s.line("claimed", "%s; lists say so, nobody has looked", strings.Join(hints, ", "))
	}
	run := "not decided yet"
	switch {
	case why.Passes > 0:
		run = fmt.Sprintf("%d %s in a row", why.Passes, pluralOf(why.Passes, "pass", "passes"))
	case why.Fails > 0:
		run = fmt.Sprintf("%d %s in a row", why.Fails, pluralOf(why.Fails, "failure", "failures"))
	}
	s.line("record", "%s%s", run, s.when("; next probe ", why.NextProbeAt))
	if why.Retired != nil {
		s.line("retired", "%s with count %d", s.relative(why.Retired.At), why.Retired.Count)
	}
}

// result writes what a probe saw, without its time and proxy.
func result(r api.Result) string {
	text := r.Outcome
	if r.Stage != "" {
		text += " at " + r.Stage
	}
	if r.Judge != "" {
		text += ", judge " + r.Judge
	}
	if r.LatencyMS > 0 {
		text += fmt.Sprintf(", %d ms", r.LatencyMS)
	}
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	return text
}

func pluralOf(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
