package main

import (
	"encoding/json"
	"strings"
	"testing"

	"evenpool/probe"
)

// explained has two pools: one with every rule there is, one with defaults.
const explained = `geoip: {country: /srv/country.mmdb, asn: /srv/asn.mmdb}
judges:
  - {name: mine, http: "http://judge.example.org/", https: "https://judge.example.org/", key_file: /etc/evenpool/judge.key}
  - {name: page, https: "https://www.example.org/robots.txt", expect: {contains: User-agent}}
targets:
  - {name: shop, url: "https://shop.example.org/"}
sources:
  - {name: mylist, url: "https://www.example.org/http.txt"}
pools:
  - name: strict
    eligibility:
      banned_file: /etc/evenpool/banned.txt
      networks: [9.0.0.0/8]
      not_networks: [9.1.0.0/16]
      ports: [8080]
      anonymity: elite
      exit_countries: [DE]
      not_countries: [US]
      exit_asns: [3320]
      not_asns: [3215]
      require_targets: [shop]
      max_latency: 3s
      min_success: 80%
      max_exit_changes: 0
      max_age: 1h
  - name: web
    judges: [mine]
    eligibility: {require: [tls], max_latency: {first_byte: 1s, total: 2s, over: 10}}
`

func TestPolicyExplain(t *testing.T) {
	file := writeFile(t, explained)
	const want = `pool web

schemes      It speaks one of http, socks5; the first that works is used.
             acts at once; needs nothing; which of them works is found out by probing
quarantine   One that broke safety is not probed again for 24h.
             acts at once; needs nothing
safety       It does not tamper, intercept, forge, or lead to an address that may not be dialled.
             acts at once; needs a probe
control      A round counts only if its judge was well when it was asked without a proxy, before and after.
             acts never; needs the judge's answers before and after the slice
require      It brings a TLS connection to the judge, unbroken (tls), each time it is asked.
             acts by fall; needs a judge that shows it
max_latency  The first byte of the answer is there within 1s, in 90% of its last 10 rounds that worked (p90).
             The answer is complete within 2s, in 90% of its last 10 rounds that worked (p90).
             acts by fall; needs a round that worked
rise         2 rounds in a row that meet all of this admit it.
             acts on admission; needs rounds that passed
fall         2 rounds in a row that break any of it retire it.
             acts on members; needs rounds that failed

acts at once: who breaks it is neither probed nor admitted, and a member is retired with its next turn, whatever the guard says.
acts by fall: a round that breaks it is a failure; enough in a row for the rule fall retire a member, within what the guard allows.
acts on admission: it keeps others from becoming members, and members are not measured by it.
acts on members: it retires members, within what the guard allows.
acts never: it admits and retires nobody; it only sets rounds aside.
`
	for _, args := range [][]string{{file, "--pool", "web"}, {"-c", file, "--pool=web"}} {
		code, stdout, stderr := runCLI(t, append([]string{"policy", "explain"}, args...)...)
		if code != exitDone || stdout != want || stderr != "" {
			t.Errorf("%v: exit %d, stderr %s\n%s", args, code, stderr, stdout)
		}
	}
}

// Every rule that there is, is explained: what a configuration sets reaches the rules.
func TestPolicyExplainSaysEveryRule(t *testing.T) {
	code, stdout, stderr := runCLI(t, "policy", "explain", writeFile(t, explained), "-o", "json")
	var got policyExplain
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitDone || stderr != "" {
		t.Fatalf("exit %d, %v, stderr %s in\n%s", code, err, stderr, stdout)
	}
	if len(got.Pools) != 2 || got.Pools[0].Pool != "strict" || got.Pools[1].Pool != "web" {
		t.Fatalf("pools are %+v", got.Pools)
	}
	said := map[string]ruleExplain{}
	for _, rule := range got.Pools[0].Rules {
		said[rule.Rule] = rule
	}
	for _, rule := range probe.RuleTable() {
		if s := said[rule.Name]; s.Key != rule.Key || s.Sentence == "" || s.Needs != rule.Needs || s.Acts != rule.Acts || rule.Acts.Says() == "" {
			t.Errorf("%s is explained by %+v", rule.Name, s)
		}
	}
}

func TestPolicyExplainErrors(t *testing.T) {
	file := writeFile(t, explained)
	impossible := writeFile(t, strings.Replace(explained, ", key_file: /etc/evenpool/judge.key", "", 1))
	for _, tc := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"no such pool", []string{file, "--pool", "wbe"}, exitUsage, "evenpool: --pool wbe: there is none; " + file + " has strict, web\n"},
		{"two files", []string{file, file}, exitUsage, "evenpool: policy explain takes one FILE at the most\n"},
		{"a file twice", []string{file, "-c", file}, exitUsage, "evenpool: policy explain takes one FILE at the most\n"},
		{"missing", []string{file + ".missing"}, exitConfig, "evenpool: " + file + ".missing: no such file or directory\n"},
		{"nothing meets it", []string{impossible}, exitDone, "warning: " + impossible + `:16:18: pools[0].eligibility.anonymity: "elite": nothing can ever become a member: ` +
			"no judge on http signs its answers; give yours a key_file, or accept what is claimed\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, append([]string{"policy", "explain"}, tc.args...)...)
			if code != tc.code || stderr != tc.stderr || (stdout == "") != (code != exitDone) {
				t.Errorf("exit %d, stderr\n%s\nstdout\n%s", code, stderr, stdout)
			}
		})
	}
}
