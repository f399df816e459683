package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"evenpool/daemon/api"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// sourceCheck is what one list gave, as -o json shows it.
type sourceCheck struct {
	Name       string         `json:"name"`
	Format     string         `json:"format"`     // that of most records; empty without records
	Candidates int            `json:"candidates"` // unique by scheme, host and port
	Duplicates int            `json:"duplicates"`
	Rejected   int            `json:"rejected"`
	Rejects    api.Counts     `json:"rejects"` // by reason
	Records    int            `json:"records"`
	Endpoints  int            `json:"endpoints"` // unique by host, port, user and password
	Refused    api.Counts     `json:"refused"`   // endpoints, by why they are never probed
	Samples    []sourceSample `json:"samples"`   // the first few rejected records
	Error      string         `json:"error,omitempty"`
}

type sourceSample struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"` // escaped, without a password
}

func newSourceCheck(l sources.List, src sources.Source, err error) *sourceCheck {
	_, refused := sources.Offerable(l, src)
	check := &sourceCheck{
		Name: proxyurl.Escape(src.Name, 200), Format: l.Format, Records: l.Records,
		Candidates: l.Pairs, Endpoints: len(l.Candidates), Duplicates: l.Duplicates,
		Rejected: l.Rejected(), Rejects: api.Counts{}, Refused: api.Counts{}, Samples: []sourceSample{},
	}
	for reason, n := range l.Rejects {
		check.Rejects[string(reason)] = n
	}
	for why, n := range refused {
		check.Refused[why] = n
	}
	for _, s := range l.Samples {
		check.Samples = append(check.Samples, sourceSample{s.Line, string(s.Reason), s.Text})
	}
	if err != nil {
		check.Error = err.Error()
	}
	return check
}

// writeSourceLines writes each check on a line of its own, so that one list gives
// one JSON value, and many are read one by one.
func writeSourceLines(w io.Writer, checks []*sourceCheck) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, check := range checks {
		if err := enc.Encode(check); err != nil {
			return err
		}
	}
	return nil
}

// writeSourceTable writes the numbers as a table, and below it what was wrong.
func writeSourceTable(w io.Writer, checks []*sourceCheck) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SOURCE\tFORMAT\tRECORDS\tCANDIDATES\tENDPOINTS\tDUPLICATES\tREJECTED\tREFUSED\tUSABLE")
	for _, c := range checks {
		usable, refused := "yes", 0
		if c.Error != "" {
			usable = "no"
		}
		for _, n := range c.Refused {
			refused += n
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", c.Name, orDash(c.Format), c.Records,
			c.Candidates, c.Endpoints, c.Duplicates, c.Rejected, refused, usable)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, c := range checks {
		if len(c.Rejects)+len(c.Refused) == 0 {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "\n%s\n", c.Name)
		if len(c.Rejects) > 0 {
			fmt.Fprintf(&b, "  rejected: %s\n", tally(c.Rejects))
		}
		for _, s := range c.Samples {
			fmt.Fprintf(&b, "    line %d: %s: %s\n", s.Line, s.Reason, s.Text)
		}
		if len(c.Refused) > 0 {
			fmt.Fprintf(&b, "  refused: %s\n", tally(c.Refused))
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}
