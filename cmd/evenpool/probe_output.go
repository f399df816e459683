package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"evenpool/daemon/api"
	"evenpool/probe"
)

// writeText prints all of a few proxies, a line for each of many, and what the
// judges were like.
func (b *bout) writeText(w io.Writer) error {
	write := b.writeTable
	if b.verbose || len(b.tried) <= maxDetailed {
		write = b.writeDetails
	}
	if err := write(w); err != nil {
		return err
	}
	for _, c := range b.controls {
		if !c.well() {
			kind, name := c.what()
			if _, err := fmt.Fprintf(w, "\n%s %s (%s): %s before, %s after%s\n", kind, name, c.before.Capability, c.before.Outcome, c.after.Outcome, behind(": ", c.detail())); err != nil {
				return err
			}
		}
	}
	passed := 0
	for _, t := range b.tried {
		if t.verdict.State == probe.Pass {
			passed++
		}
	}
	by := ""
	if b.pool != "" {
		by = " by the rules of pool " + b.pool
	}
	_, err := fmt.Fprintf(w, "\n%d of %d pass%s\n", passed, len(b.tried), by)
	return err
}

// what says what is asked, and its name.
func (c control) what() (kind, name string) {
	if name, isTarget := strings.CutPrefix(c.name, probe.TargetName("")); isTarget {
		return "target", name
	}
	return "judge", c.name
}

func (c control) detail() string {
	if c.before.Detail != "" {
		return c.before.Detail
	}
	return c.after.Detail
}

func (b *bout) writeTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROXY\tVERDICT\tSCHEME\tOUTCOME\tSTAGE\tMS\tDETAIL")
	for _, t := range b.tried {
		where := t.candidate.Endpoint.Redacted()
		if len(t.results) == 0 {
			fmt.Fprintf(table, "%s\t%s\t\tnot tried\t\t\t%s\n", where, t.verdict.State, t.bar())
		}
		for i, r := range t.results {
			last := r.Last()
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
				where, t.verdict.Each[i], r.Proxy.Scheme, r.Outcome, orDash(string(last.Stage)), r.Latency.Milliseconds(), orDash(t.detail(i)))
			where = "" // the other schemes of the same endpoint
		}
	}
	return table.Flush()
}

// bar is the rule by which a proxy was not tried; "" for none.
func (t tried) bar() string {
	if !t.barred {
		return ""
	}
	return t.verdict.Reasons[0].Rule + ": " + t.verdict.Reasons[0].Text
}

// detail is what there is to say of a result beside its outcome.
func (t tried) detail(i int) string {
	r, state := t.results[i], t.verdict.Each[i]
	class := r.Outcome.Class()
	if state == probe.Pass || class == probe.ClassLocal || class == probe.ClassJudge || state == probe.Fail && class != probe.ClassOK {
		return r.Last().Detail
	}
	// It is not the outcome that speaks against it.
	for _, reason := range t.verdict.Reasons {
		text, ofScheme := strings.CutPrefix(reason.Text, string(r.Proxy.Scheme)+": ")
		if ofScheme || class == probe.ClassOK {
			return reason.Rule + ": " + text
		}
	}
	return ""
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// behind puts a word before a text, if there is one.
func behind(word, text string) string {
	if text == "" {
		return ""
	}
	return word + text
}

// writeDetails prints a block for each proxy.
func (b *bout) writeDetails(w io.Writer) error {
	s := &screen{now: time.Now()}
	for i, t := range b.tried {
		if i > 0 {
			s.WriteString("\n")
		}
		b.detailed(s, t)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

func (b *bout) detailed(s *screen, t tried) {
	where := t.candidate.Endpoint.Redacted()
	if !t.verdict.URL.IsZero() {
		where = t.verdict.URL.Redacted()
	}
	fmt.Fprintf(s, "%s: %s\n", where, t.verdict.State)
	if len(t.results) == 0 {
		s.line("not tried", "%s", orDash(t.bar()))
	}
	for i, r := range t.results {
		text := string(r.Outcome)
		if detail := t.detail(i); detail != "" {
			text += ": " + detail
		}
		s.line(string(r.Proxy.Scheme), "%s", text)
		if found := r.Found.String(); found != "" {
			s.line("  found", "%s", strings.ReplaceAll(found, " ", ", "))
		}
		if r.Exit.IsValid() {
			e := t.exitOf(r)
			s.line("  exit", "%s (%s)", exit(e.Address, e.Country, e.ASN), proven(r.Verified))
		}
		if r.Anonymity != "" {
			s.line("  anonymity", "%s (%s)", r.Anonymity, proven(r.Verified))
		}
		s.checks(r)
	}
	if b.pool == "" {
		for _, reason := range t.verdict.Reasons {
			s.line("against", "%s", reason)
		}
	}
	label := "rules"
	for _, r := range shownRules(t.rules) {
		s.rule(label, r)
		label = ""
	}
	for _, talk := range t.talks {
		s.line("said", "%s to %s", talk.scheme, asked(talk.question))
		for _, line := range talk.lines(t.candidate.Endpoint) {
			s.line("", "%s", line)
		}
	}
}

// asked says whom a check asked, for what.
func asked(c probe.Check) string {
	if c.Target != "" {
		return fmt.Sprintf("target %s (%s)", c.Target, c.Capability)
	}
	return fmt.Sprintf("judge %s (%s)", c.Judge, c.Capability)
}

// checks writes a line for each question, with when its stages were done.
func (s *screen) checks(r probe.Result) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ASKED\tCONNECT\tHANDSHAKE\tTLS\tFIRST BYTE\tTOTAL\tOUTCOME")
	for _, c := range append(r.Checks[:len(r.Checks):len(r.Checks)], r.Targets...) {
		outcome := string(c.Outcome)
		if c.Stage != "" {
			outcome += " at " + string(c.Stage)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", asked(c), millis(c.Connect), millis(c.Handshake), millis(c.Secured), millis(c.FirstByte), millis(c.Total), outcome+behind(": ", c.Detail))
	}
	table.Flush()
	for line := range strings.Lines(text.String()) {
		s.line("", "%s", strings.TrimSpace(line))
	}
}

func millis(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// shownRules are reasons as the daemon tells them.
func shownRules(reasons []probe.Reason) (rules []api.Rule) {
	for _, r := range reasons {
		result := map[probe.State]string{probe.Pass: api.RulePass, probe.Fail: api.RuleFail, probe.Inconclusive: api.RuleNotKnown}[r.State]
		rules = append(rules, api.Rule{Rule: r.Rule, Result: result, Text: r.Text})
	}
	return rules
}
