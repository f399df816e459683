package main

import (
	"io"
	"time"

	"evenpool/daemon/api"
	"evenpool/probe"
)

// The JSON of -o json. Times of stages are whole milliseconds since the question
// began; a stage that was not reached has none.
type (
	probeReport struct {
		Pool    string          `json:"pool,omitempty"` // whose rules are applied
		Judges  []controlReport `json:"judges"`
		Targets []controlReport `json:"targets,omitempty"`
		Proxies []triedReport   `json:"proxies"`
		Passed  int             `json:"passed"`
	}
	controlReport struct {
		Judge      string           `json:"judge,omitempty"`
		Target     string           `json:"target,omitempty"`
		Capability probe.Capability `json:"capability"`
		Well       bool             `json:"well"`
		Before     probe.Outcome    `json:"before"`
		After      probe.Outcome    `json:"after"`
		Detail     string           `json:"detail,omitempty"`
	}
	triedReport struct {
		Endpoint string         `json:"endpoint"` // password hidden
		Verdict  probe.State    `json:"verdict"`
		Proxy    string         `json:"proxy,omitempty"`   // as it passed; password hidden
		Barred   bool           `json:"barred,omitempty"`  // by rules that need no probe: it was not tried
		Reasons  []string       `json:"reasons,omitempty"` // what speaks against it, or is not known
		Rules    []api.Rule     `json:"rules,omitempty"`   // all of the pool
		Results  []resultReport `json:"results"`
		Said     []talkReport   `json:"said,omitempty"` // with -v
	}
	resultReport struct {
		Scheme    string             `json:"scheme"`
		Outcome   probe.Outcome      `json:"outcome"`
		Class     probe.Class        `json:"class"`
		LatencyMS int64              `json:"latency_ms"`
		Found     []probe.Capability `json:"found"`
		Exit      *exitReport        `json:"exit,omitempty"`
		Anonymity probe.Anonymity    `json:"anonymity,omitempty"`
		Verified  bool               `json:"verified"` // exit and anonymity; else they are claimed
		Checks    []checkReport      `json:"checks"`
		Targets   []checkReport      `json:"targets,omitempty"`
	}
	exitReport struct {
		Address string `json:"address"`
		Country string `json:"country,omitempty"`
		ASN     uint32 `json:"asn,omitempty"`
	}
	checkReport struct {
		Judge       string             `json:"judge,omitempty"`
		Target      string             `json:"target,omitempty"`
		Capability  probe.Capability   `json:"capability"`
		Outcome     probe.Outcome      `json:"outcome"`
		Stage       probe.Stage        `json:"stage,omitempty"`
		Detail      string             `json:"detail,omitempty"`
		ConnectMS   *int64             `json:"connect_ms,omitempty"`
		HandshakeMS *int64             `json:"handshake_ms,omitempty"`
		TLSMS       *int64             `json:"tls_ms,omitempty"`
		FirstByteMS *int64             `json:"first_byte_ms,omitempty"`
		TotalMS     int64              `json:"total_ms"`
		Found       []probe.Capability `json:"found,omitempty"`
		Exit        string             `json:"exit,omitempty"`
		Anonymity   probe.Anonymity    `json:"anonymity,omitempty"`
		Verified    bool               `json:"verified"`
	}
	talkReport struct {
		Scheme     string           `json:"scheme"`
		Judge      string           `json:"judge,omitempty"`
		Target     string           `json:"target,omitempty"`
		Capability probe.Capability `json:"capability"`
		Lines      []string         `json:"lines"` // "> " sent, "< " received; escaped
	}
)

func (b *bout) writeJSON(w io.Writer) error {
	report := probeReport{Pool: b.pool, Judges: []controlReport{}, Proxies: []triedReport{}}
	for _, c := range b.controls {
		kind, name := c.what()
		one := controlReport{Capability: c.before.Capability, Well: c.well(), Before: c.before.Outcome, After: c.after.Outcome, Detail: c.detail()}
		if kind == "target" {
			one.Target = name
			report.Targets = append(report.Targets, one)
		} else {
			one.Judge = name
			report.Judges = append(report.Judges, one)
		}
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
	report := triedReport{Endpoint: t.candidate.Endpoint.Redacted(), Verdict: t.verdict.State, Barred: t.barred,
		Rules: shownRules(t.rules), Results: []resultReport{}}
	if !t.verdict.URL.IsZero() {
		report.Proxy = t.verdict.URL.Redacted()
	}
	for _, reason := range t.verdict.Reasons {
		report.Reasons = append(report.Reasons, reason.String())
	}
	for _, r := range t.results {
		result := resultReport{Scheme: string(r.Proxy.Scheme), Outcome: r.Outcome, Class: r.Outcome.Class(), LatencyMS: r.Latency.Milliseconds(),
			Found: append([]probe.Capability{}, r.Found.List()...), Anonymity: r.Anonymity, Verified: r.Verified, Checks: []checkReport{}}
		if r.Exit.IsValid() {
			result.Exit = t.exitOf(r)
		}
		for _, c := range r.Checks {
			result.Checks = append(result.Checks, reportCheck(c))
		}
		for _, c := range r.Targets {
			result.Targets = append(result.Targets, reportCheck(c))
		}
		report.Results = append(report.Results, result)
	}
	for _, talk := range t.talks {
		q := talk.question
		report.Said = append(report.Said, talkReport{string(talk.scheme), q.Judge, q.Target, q.Capability, talk.lines(t.candidate.Endpoint)})
	}
	return report
}

// exitOf is where a result's traffic came out.
func (t tried) exitOf(r probe.Result) *exitReport {
	for _, e := range t.exits {
		if e.Addr == r.Exit.Unmap() {
			return &exitReport{e.Addr.String(), e.Place.Country, e.Place.ASN}
		}
	}
	return &exitReport{Address: r.Exit.String()}
}

func reportCheck(c probe.Check) checkReport {
	report := checkReport{Judge: c.Judge, Target: c.Target, Capability: c.Capability, Outcome: c.Outcome, Stage: c.Stage, Detail: c.Detail,
		ConnectMS: reached(c.Connect), HandshakeMS: reached(c.Handshake), TLSMS: reached(c.Secured), FirstByteMS: reached(c.FirstByte),
		TotalMS: c.Total.Milliseconds(), Found: c.Found.List(), Anonymity: c.Anonymity, Verified: c.Verified}
	if c.Exit.IsValid() {
		report.Exit = c.Exit.String()
	}
	return report
}

// reached is when a stage was done; nil for one that was not.
func reached(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
