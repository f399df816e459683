package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"evenpool/probe"
)

// writeText prints a line for each proxy, and what the judges were like.
func (b *bout) writeText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROXY\tVERDICT\tSCHEME\tOUTCOME\tSTAGE\tMS\tDETAIL")
	for _, t := range b.tried {
		where := t.candidate.Endpoint.Redacted()
		if len(t.results) == 0 {
			fmt.Fprintf(table, "%s\t%s\t\tnot tried\t\t\t\n", where, probe.Inconclusive)
		}
		for i, r := range t.results {
			last := r.Last()
			detail := last.Detail
			if t.verdict.Each[i] == probe.Inconclusive && r.Outcome.Class() != probe.ClassLocal {
				detail = "the judge was not well"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
				where, t.verdict.Each[i], r.Proxy.Scheme, r.Outcome, orDash(string(last.Stage)), r.Latency.Milliseconds(), orDash(detail))
			where = "" // the other schemes of the same endpoint
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range b.controls {
		if !c.well() {
			if _, err := fmt.Fprintf(w, "\njudge %s (%s): %s before, %s after\n", c.judge.Name, c.capability, c.before.Outcome, c.after.Outcome); err != nil {
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
	_, err := fmt.Fprintf(w, "\n%d of %d pass\n", passed, len(b.tried))
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// The JSON of -o json.
type (
	probeReport struct {
		Judges  []judgeReport `json:"judges"`
		Proxies []triedReport `json:"proxies"`
		Passed  int           `json:"passed"`
	}
	judgeReport struct {
		Judge      string           `json:"judge"`
		Capability probe.Capability `json:"capability"`
		Well       bool             `json:"well"`
		Before     probe.Outcome    `json:"before"`
		After      probe.Outcome    `json:"after"`
		Detail     string           `json:"detail,omitempty"`
	}
	triedReport struct {
		Endpoint string         `json:"endpoint"` // password hidden
		Verdict  probe.State    `json:"verdict"`
		Proxy    string         `json:"proxy,omitempty"` // as it passed; password hidden
		Reasons  []string       `json:"reasons,omitempty"`
		Results  []resultReport `json:"results"`
	}
	resultReport struct {
		Scheme    string        `json:"scheme"`
		Outcome   probe.Outcome `json:"outcome"`
		Class     probe.Class   `json:"class"`
		LatencyMS int64         `json:"latency_ms"`
		Checks    []checkReport `json:"checks"`
	}
	checkReport struct {
		Judge       string           `json:"judge"`
		Capability  probe.Capability `json:"capability"`
		Outcome     probe.Outcome    `json:"outcome"`
		Stage       probe.Stage      `json:"stage,omitempty"`
		Detail      string           `json:"detail,omitempty"`
		ConnectMS   int64            `json:"connect_ms"`
		FirstByteMS int64            `json:"first_byte_ms"`
		TotalMS     int64            `json:"total_ms"`
		SeenAddress string           `json:"seen_address,omitempty"`
	}
)

func (b *bout) writeJSON(w io.Writer) error {
	report := probeReport{Judges: []judgeReport{}, Proxies: []triedReport{}}
	for _, c := range b.controls {
		detail := c.before.Detail
		if detail == "" {
			detail = c.after.Detail
		}
		report.Judges = append(report.Judges, judgeReport{c.judge.Name, c.capability, c.well(), c.before.Outcome, c.after.Outcome, detail})
	}
	for _, t := range b.tried {
		if t.verdict.State == probe.Pass {
			report.Passed++
		}
		report.Proxies = append(report.Proxies, t.report())
	}
	return writeJSON(w, report)
}

func (t tried) report() triedReport {
	report := triedReport{Endpoint: t.candidate.Endpoint.Redacted(), Verdict: t.verdict.State, Results: []resultReport{}}
	if !t.verdict.URL.IsZero() {
		report.Proxy = t.verdict.URL.Redacted()
	}
	for _, reason := range t.verdict.Reasons {
		report.Reasons = append(report.Reasons, reason.String())
	}
	for _, r := range t.results {
		result := resultReport{Scheme: string(r.Proxy.Scheme), Outcome: r.Outcome, Class: r.Outcome.Class(),
			LatencyMS: r.Latency.Milliseconds(), Checks: []checkReport{}}
		for _, c := range r.Checks {
			seen := ""
			if c.Exit.IsValid() {
				seen = c.Exit.String()
			}
			result.Checks = append(result.Checks, checkReport{c.Judge, c.Capability, c.Outcome, c.Stage, c.Detail,
				c.Connect.Milliseconds(), c.FirstByte.Milliseconds(), c.Total.Milliseconds(), seen})
		}
		report.Results = append(report.Results, result)
	}
	return report
}
