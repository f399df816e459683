package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"evenpool/probe/lab"
)

// labReport is what the lab says once it runs; the JSON of -o json.
type labReport struct {
	ListURL     string    `json:"list_url"`
	ControlURL  string    `json:"control_url"`
	Judge       *labJudge `json:"judge,omitempty"`
	SecondJudge *labJudge `json:"second_judge,omitempty"`
	Left        []string  `json:"left,omitempty"` // what was not started, and why
	Proxies     []lab.Row `json:"proxies"`
}

// labJudge is where a judge of the lab's is and whom to trust for it.
type labJudge struct {
	HTTP    string `json:"http"`
	HTTPS   string `json:"https"`
	CAFile  string `json:"ca_file"`
	KeyFile string `json:"key_file,omitempty"`
}

// write prints the report for people.
func (r labReport) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	counts := r.counts()
	if len(counts) == len(r.Proxies) {
		fmt.Fprintln(table, "NAME\tURL\tCLAIMED\tVERDICT\tOUTCOME\tWHAT IT DOES")
	} else {
		fmt.Fprintln(table, "NAME\tCOUNT\tFIRST URL\tCLAIMED\tVERDICT\tOUTCOME\tWHAT IT DOES")
	}
	ipv6 := false
	for _, p := range r.Proxies {
		ipv6 = ipv6 || slices.Contains(p.Needs, lab.NeedIPv6)
		switch n, first := counts[p.Behaviour]; {
		case len(counts) == len(r.Proxies):
			fmt.Fprintf(table, "%s\t", p.Name)
		case first:
			fmt.Fprintf(table, "%s\t%d\t", p.Behaviour, n)
			delete(counts, p.Behaviour)
		default:
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.URL, p.Claimed, verdictText(p.Truth), p.Outcome, p.Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	for _, left := range r.Left {
		fmt.Fprintf(&text, "not started: %s\n", left)
	}
	allowed := "[127.0.0.0/8]"
	if ipv6 {
		allowed = "[127.0.0.0/8, \"::1\"]"
	}
	fmt.Fprintf(&text, `
The verdict is for schemes [http, https, socks4, socks4a, socks5], require [http, tls]
and a timeout of 2s; evenpool lab --explain has more. In a configuration:

sources:
  - name: lab
    url: %s
    allow_addresses: %s
`, r.ListURL, allowed)
	for i, j := range []*labJudge{r.Judge, r.SecondJudge} {
		if j == nil {
			continue
		}
		if i == 0 {
			fmt.Fprintf(&text, "judges:\n")
		}
		fmt.Fprintf(&text, `  - name: %s
    http: %s
    https: %s
    ca_file: %s
    allow_addresses: %s
`, []string{"lab", "lab2"}[i], j.HTTP, j.HTTPS, j.CAFile, allowed)
		if j.KeyFile != "" {
			fmt.Fprintf(&text, "    key_file: %s\n", j.KeyFile)
		}
	}
	name := r.Proxies[0].Name
	if slices.ContainsFunc(r.Proxies, func(p lab.Row) bool { return p.Name == "flaky" }) {
		name = "flaky"
	}
	fmt.Fprintf(&text, `
To make a proxy fail, and to let it recover:

curl -X POST %[1]sproxies/%[2]s/fail
curl -X POST %[1]sproxies/%[2]s/recover
`, r.ControlURL, name)
	_, err := io.WriteString(w, text.String())
	return err
}

func (r labReport) counts() map[lab.Behaviour]int {
	counts := make(map[lab.Behaviour]int)
	for _, p := range r.Proxies {
		counts[p.Behaviour]++
	}
	return counts
}

// explainLab prints the table of behaviours.
func explainLab(c *cli.Context) error {
	if wantsJSON(c) {
		return writeJSON(c.App.Writer, lab.Kinds())
	}
	table := tabwriter.NewWriter(c.App.Writer, 0, 0, 2, ' ', 0)
	for _, row := range labTable() {
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(c.App.Writer, labLegend)
	return err
}

const labLegend = `
What a right prober finds with schemes [http, https, socks4, socks4a, socks5], require
[http, tls], a timeout of 2s and a judge named localhost. VERDICT: in, or the rule that
speaks against it. CAN: what a round shows. NEEDS: without it the proxy looks otherwise.
`

// labTable is the table of behaviours, heading first: what README has, too.
func labTable() [][]string {
	table := [][]string{{"NAME", "LISTED AS", "SPEAKS", "VERDICT", "OUTCOME", "CLASS", "STAGE", "ANONYMITY", "CAN", "NEEDS", "WHAT IT DOES"}}
	for _, k := range lab.Kinds() {
		row := []string{string(k.Behaviour), k.Claimed, strings.Join(k.Schemes, ", "), verdictText(k.Truth), k.Outcome, k.Class, k.Stage, k.Anonymity,
			strings.Join(k.Capabilities, ", "), strings.Join(k.Needs, ", "), k.Note}
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		table = append(table, row)
	}
	return table
}

// verdictText is in, or out with the rule.
func verdictText(t lab.Truth) string {
	if t.Eligible {
		return "in"
	}
	return "out: " + t.Rule
}
