package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// sourceCheck is what one list gave, as -o json shows it.
type sourceCheck struct {
	Name       string         `json:"name"`
	Format     string         `json:"format"` // that of most records: "plain", "scheme"; empty without records
	Records    int            `json:"records"`
	Candidates int            `json:"candidates"` // unique by scheme, host and port
	Endpoints  int            `json:"endpoints"`  // unique by host, port, user and password
	Duplicates int            `json:"duplicates"`
	Rejected   int            `json:"rejected"`
	Rejects    map[string]int `json:"rejects"` // by reason
	Refused    map[string]int `json:"refused"` // endpoints, by why they are never probed
	Samples    []sourceSample `json:"samples"` // the first few rejected records
	Error      string         `json:"error,omitempty"`
}

type sourceSample struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"` // escaped, without a password
}

func newSourceCheck(l sources.List, src sources.Source, err error) sourceCheck {
	_, refused := sources.Offerable(l, src)
	check := sourceCheck{
		Name: proxyurl.Escape(src.Name, 200), Format: l.Format, Records: l.Records,
		Candidates: l.Pairs, Endpoints: len(l.Candidates), Duplicates: l.Duplicates,
		Rejected: l.Rejected(), Rejects: map[string]int{}, Refused: map[string]int{}, Samples: []sourceSample{},
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
func writeSourceLines(w io.Writer, checks []sourceCheck) error {
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
func writeSourceTable(w io.Writer, checks []sourceCheck) error {
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
			fmt.Fprintf(&b, "  rejected: %s\n", mostFirst(c.Rejects))
		}
		for _, s := range c.Samples {
			fmt.Fprintf(&b, "    line %d: %s: %s\n", s.Line, s.Reason, s.Text)
		}
		if len(c.Refused) > 0 {
			fmt.Fprintf(&b, "  refused: %s\n", mostFirst(c.Refused))
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// mostFirst writes counts as "private 2, bad-port 1".
func mostFirst(counts map[string]int) string {
	var words []string
	for word := range counts {
		words = append(words, word)
	}
	slices.SortFunc(words, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, word := range words {
		words[i] = fmt.Sprintf("%s %d", word, counts[word])
	}
	return strings.Join(words, ", ")
}
