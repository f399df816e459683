package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/config"
	"evenpool/probe"
)

func policyExplainCommand() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say each rule of a pool in plain words, what it needs to be known, and how fast it acts",
		ArgsUsage: "[FILE]",
		Description: `Shows the rules that are in force, in the order in which they are looked at; why a
proxy meets them or not, says evenpool why. A warning goes to standard error where
nothing can ever meet a rule. Reads no file but the configuration.

Examples:
   evenpool policy explain
   evenpool policy explain ./evenpool.yaml --pool web
   evenpool policy explain ./evenpool.yaml -o json | jq -r '.pools[].rules[].sentence'`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "pool", Usage: "`NAME` of the pool; default: all of them, one after the other"},
			outputFlag(),
		},
		Action: explainPolicy,
	}
}

// policyExplain is what policy explain says; the JSON of -o json.
type policyExplain struct {
	Pools []poolExplain `json:"pools"`
}

type poolExplain struct {
	Pool  string        `json:"pool"`
	Rules []ruleExplain `json:"rules"` // in the order in which they are looked at
}

// ruleExplain is a sentence; a rule may have several.
type ruleExplain struct {
	Rule     string     `json:"rule"`
	Key      string     `json:"key,omitempty"` // below eligibility; none for a rule of every pool
	Sentence string     `json:"sentence"`
	Needs    string     `json:"needs"`
	Acts     probe.Acts `json:"acts"`
}

func explainPolicy(c *cli.Context) error {
	file, err := configFile(c)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(file, c.App.ErrWriter)
	if err != nil {
		return err
	}
	name := c.String("pool")
	var all policyExplain
	for _, p := range cfg.Pools {
		if name == "" || name == p.Name {
			all.Pools = append(all.Pools, explainPool(p))
		}
	}
	if len(all.Pools) == 0 {
		return usageError("--pool %s: there is none; %s has %s", name, file, poolNames(cfg))
	}
	if wantsJSON(c) {
		return writeJSON(c.App.Writer, all)
	}
	return all.write(c.App.Writer)
}

func poolNames(cfg *config.Config) string {
	var names []string
	for _, p := range cfg.Pools {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func explainPool(p config.Pool) poolExplain {
	rules := p.Eligibility.Rules()
	if p.Eligibility.BannedFile != "" {
		rules.Banned = &probe.Banned{} // it is in force, whoever is on it
	}
	pool := poolExplain{Pool: p.Name}
	for _, s := range rules.Sentences() {
		pool.Rules = append(pool.Rules, ruleExplain{s.Rule.Name, s.Rule.Key, s.Text, s.Rule.Needs, s.Rule.Acts})
	}
	return pool
}

func (e policyExplain) write(w io.Writer) error {
	var acts []probe.Acts
	for _, pool := range e.Pools {
		fmt.Fprintf(w, "pool %s\n\n", pool.Pool)
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for i, rule := range pool.Rules {
			name := rule.Rule
			if i > 0 && pool.Rules[i-1].Rule == name {
				name = ""
			}
			fmt.Fprintf(table, "%s\t%s\n", name, rule.Sentence)
			if i == len(pool.Rules)-1 || pool.Rules[i+1].Rule != rule.Rule {
				fmt.Fprintf(table, "\tacts %s; needs %s\n", rule.Acts, rule.Needs)
			}
			acts = append(acts, rule.Acts)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, a := range probe.AllActs() {
		if slices.Contains(acts, a) {
			fmt.Fprintf(w, "acts %s: %s.\n", a, a.Says())
		}
	}
	return nil
}
