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
		Description: `Shows the proxy's record as the daemon keeps it, and each rule of the pool: met
(pass), broken (FAIL) or not known (?). "verified" is what a judge signed or told
within its own TLS, "claimed" what a proxy could have written.

PROXY is a URL or HOST:PORT. A proxy with a user and a password is named as
status shows it, with *** for the password: others can read a command line.

Examples:
   evenpool why 203.0.113.7:8080
   evenpool why 'http://user:***@203.0.113.7:8080' --pool web
   evenpool why 203.0.113.7:8080 -o json | jq '.rules[] | select(.result != "pass")'`,
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
		s.rule(label, r)
		label = ""
	}
	s.seen(why)
	if r := why.Reports; r != nil {
		s.line("reports", "%d ok, %d failed, %d blocked%s; the last one %s", r.OK, r.Failed, r.Blocked, blockedBy(r.BlockedBy), s.relative(r.LastAt))
	}
	label = "results"
	for _, r := range why.Results {
		s.line(label, "%s, %s: %s", s.relative(r.At), r.Proxy, result(r))
		label = ""
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (s *screen) rule(label string, r api.Rule) {
	mark := map[string]string{api.RulePass: "pass", api.RuleFail: "FAIL"}[r.Result]
	if mark == "" {
		mark = "?"
	}
	s.line(label, "%-4s %s: %s", mark, r.Rule, r.Text)
}

// seen writes what was seen in the rounds that are kept.
func (s *screen) seen(why api.Why) {
	if p := why.Proven; p != nil {
		s.line("showed", "%s, %d %s content, %s", strings.Join(p.Capabilities, ", "), p.Judges, pluralOf(p.Judges, "judge was", "judges were"), s.relative(p.At))
		if p.Anonymity != "" {
			s.line("anonymity", "%s (%s)", p.Anonymity, proven(p.Verified))
		}
	}
	label := "exits"
	for _, e := range why.Exits {
		s.line(label, "%s, last %s, first %s", exit(e.Address, e.Country, e.ASN), s.relative(e.Until), s.relative(e.Since))
		label = ""
	}
	label = "targets"
	for _, t := range why.Targets {
		s.line(label, "%s: %s, %s", t.Target, t.Outcome, s.relative(t.At))
		label = ""
	}
	label = "rounds"
	for _, r := range why.Rounds {
		text := "did not work"
		if r.Worked {
			text = fmt.Sprintf("worked: connected after %d ms, first byte %d ms, all %d ms", r.ConnectMS, r.FirstByteMS, r.TotalMS)
		}
		if r.ExitChanges > 0 {
			text += fmt.Sprintf("; the exit changed %d %s", r.ExitChanges, pluralOf(r.ExitChanges, "time", "times"))
		}
		if !r.At.IsZero() {
			text = s.relative(r.At) + ", " + text
		}
		s.line(label, "%s", text)
		label = ""
	}
}

// blockedBy names the targets that workers named, the most named first.
func blockedBy(targets api.Counts) string {
	if len(targets) == 0 {
		return ""
	}
	return " (" + tally(targets) + ")"
}

// proven says how far what a judge told is to be believed.
func proven(verified bool) string {
	if verified {
		return "verified"
	}
	return "claimed"
}

// exit writes where traffic came out, as far as it is known.
func exit(address, country string, asn uint32) string {
	system := ""
	if asn > 0 {
		system = fmt.Sprintf("AS%d", asn)
	}
	return strings.Join(filled(address, country, system), ", ")
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
	s.line("record", "%s%s%s", run, s.when("; last passed ", why.LastPassAt), s.when("; next probe ", why.NextProbeAt))
	if !why.OffendedAt.IsZero() {
		s.line("offended", "it broke a rule of safety %s%s", s.relative(why.OffendedAt), s.when("; quarantine ends ", why.QuarantineUntil))
	}
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
