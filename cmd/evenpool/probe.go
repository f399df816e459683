package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

func probeCommand() *cli.Command {
	return &cli.Command{
		Name:      "probe",
		Usage:     "try proxies once, and show what they can do",
		ArgsUsage: "[URL...]",
		Description: `Asks the judges of a configuration, or those given by flags, through each proxy,
for all that the judges can show, and directly before and after. Nothing is kept.
A proxy with a password is read from a list, where other users do not see it.
The status is 0 when all were tried, whatever was found.

Examples:
   evenpool probe http://203.0.113.7:8080 socks5://203.0.113.8:1080
   evenpool probe --list proxies.txt -o json
   evenpool probe --list - --judge-https https://example.org/robots.txt --expect User-agent`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "list", Usage: "`FILE` or URL of a list of proxies, in any format that a source may have; - is standard input"},
			&cli.StringFlag{Name: "judge-http", Usage: "`URL` of a judge in place of the configuration's; shows http"},
			&cli.StringFlag{Name: "judge-https", Usage: "`URL` of a judge in place of the configuration's; shows tls"},
			&cli.StringFlag{Name: "expect", Usage: "`TEXT` that the judge's page contains, with status 200; default: it is an evenpool judge"},
			&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with authorities in PEM for --judge-https, besides the system's"},
			&cli.StringSliceFlag{Name: "allow-address", Usage: "`PREFIX` that may be dialled although it is not public, for the proxies and for judges given by flags; may be repeated"},
			&cli.IntFlag{Name: "concurrency", Value: 64, Usage: "how many proxies are tried at once, `N` from 1 to 10000"},
			&cli.DurationFlag{Name: "timeout", Value: probe.DefaultTimeout, Usage: "`LIMIT` for each question, from dial to last byte"},
			outputFlag(),
		},
		Action: runProbe,
	}
}

func runProbe(c *cli.Context) error {
	if n := c.Int("concurrency"); n < 1 || n > 10000 {
		return usageError("--concurrency %d: want 1 to 10000", n)
	}
	if d := c.Duration("timeout"); d < 10*time.Millisecond || d > time.Minute {
		return usageError("--timeout %v: want 10ms to 1m", d)
	}
	allow, err := parseAllow(c.StringSlice("allow-address"))
	if err != nil {
		return err
	}
	judges, err := probeJudges(c, allow)
	if err != nil {
		return err
	}
	candidates, err := probeCandidates(c, allow)
	if err != nil {
		return err
	}
	observer := probe.NewObserver(probe.ObserverOptions{})
	watch, stop := context.WithCancel(c.Context)
	var watching sync.WaitGroup
	watching.Go(func() { _ = observer.Run(watch) })
	defer watching.Wait()
	defer stop()
	b := &bout{
		prober: probe.New(probe.Options{Timeout: c.Duration("timeout"), Observer: observer}),
		allow:  allow,
		judges: judges,
		rules:  probe.Rules{Schemes: probe.Schemes()},
		tried:  make([]tried, len(candidates)),
	}
	for i, candidate := range candidates {
		b.tried[i].candidate = candidate
	}
	err = b.run(c.Context, c.Int("concurrency"), c.App.ErrWriter)
	if !b.began {
		return err
	}
	write := b.writeText
	if wantsJSON(c) {
		write = b.writeJSON
	}
	return errors.Join(err, write(c.App.Writer))
}

// parseAllow reads prefixes and single addresses.
func parseAllow(texts []string) (proxyurl.Allow, error) {
	var allow proxyurl.Allow
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return nil, usageError("--allow-address %s: want a prefix, such as 127.0.0.0/8", proxyurl.Escape(text, 60))
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		allow = append(allow, prefix.Masked())
	}
	return allow, nil
}

// probeJudges gives the judges of the flags or else of the configuration.
func probeJudges(c *cli.Context, allow proxyurl.Allow) ([]probe.Judge, error) {
	byFlags := c.IsSet("judge-http") || c.IsSet("judge-https")
	if !byFlags {
		if c.IsSet("expect") || c.IsSet("ca-file") {
			return nil, usageError("--expect and --ca-file are for a judge given by --judge-http or --judge-https")
		}
		cfg, err := loadConfig(c.String("config"), c.App.ErrWriter)
		if err != nil {
			return nil, err
		}
		var judges []probe.Judge
		for _, j := range cfg.Judges {
			judge, err := probeJudge(j)
			if err != nil {
				return nil, &exitError{exitConfig, err}
			}
			judges = append(judges, judge)
		}
		return judges, nil
	}
	j := config.Judge{Name: "flags", CAFile: c.String("ca-file"), AllowAddresses: allow}
	var err error
	if j.HTTP, err = judgeURL(c, "judge-http", "http"); err != nil {
		return nil, err
	}
	if j.HTTPS, err = judgeURL(c, "judge-https", "https"); err != nil {
		return nil, err
	}
	if c.IsSet("expect") {
		j.Expect = &config.Expect{Status: 200, Contains: c.String("expect")}
	}
	judge, err := probeJudge(j)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	return []probe.Judge{judge}, nil
}

func judgeURL(c *cli.Context, flag, scheme string) (*url.URL, error) {
	if !c.IsSet(flag) {
		return nil, nil
	}
	u, err := url.Parse(c.String(flag))
	if err != nil || u.Scheme != scheme || u.Hostname() == "" || u.User != nil {
		return nil, usageError("--%s %s: want a URL such as %s://judge.example.org/", flag, proxyurl.Escape(c.String(flag), 100), scheme)
	}
	return u, nil
}

func probeJudge(j config.Judge) (probe.Judge, error) {
	roots, err := j.RootCAs()
	if err != nil {
		return probe.Judge{}, err
	}
	judge := probe.Judge{Name: j.Name, HTTP: j.HTTP, HTTPS: j.HTTPS, Allow: j.AllowAddresses, RootCAs: roots}
	if j.Expect != nil {
		judge.Expect = &probe.Expect{Status: j.Expect.Status, Contains: j.Expect.Contains}
	}
	return judge, nil
}

// probeCandidates reads the arguments, or the list.
func probeCandidates(c *cli.Context, allow proxyurl.Allow) ([]sources.Candidate, error) {
	if name := c.String("list"); name != "" {
		if c.Args().Present() {
			return nil, usageError("give proxies as arguments or by --list, not both")
		}
		return listCandidates(c, name, allow)
	}
	if !c.Args().Present() {
		return nil, usageError("no proxy to try: give URLs, or --list FILE")
	}
	var candidates []sources.Candidate
	for _, text := range c.Args().Slice() {
		u, err := proxyurl.ParseURL(text)
		if err != nil {
			return nil, usageError("%v; want a URL such as http://203.0.113.7:8080", err)
		}
		if u.Endpoint.HasUser() {
			return nil, usageError("%s has a password, and other users of this host can see arguments: put it in a file and use --list FILE, or --list - for standard input", u.Redacted())
		}
		candidates = append(candidates, sources.Candidate{Endpoint: u.Endpoint, Said: &sources.Said{Schemes: []proxyurl.Scheme{u.Scheme}}})
	}
	return candidates, nil
}

// listCandidates reads the list as a source is read. A record that names no scheme
// is tried by all.
func listCandidates(c *cli.Context, name string, allow proxyurl.Allow) ([]sources.Candidate, error) {
	address, ok := listURL(name)
	if !ok {
		return nil, usageError("--list %s: no such file", proxyurl.Escape(name, 200))
	}
	src := sources.Source{Name: listName(name), URL: address, Scheme: proxyurl.Any, Allow: allow}
	list, err := readList(c.Context, src, c.App.Reader)
	offered, refused := sources.Offerable(list, src)
	for why, n := range refused {
		fmt.Fprintf(c.App.ErrWriter, "%d left out: %s\n", n, why)
	}
	for _, sample := range list.Samples {
		fmt.Fprintf(c.App.ErrWriter, "line %d: %s: %s\n", sample.Line, sample.Reason, sample.Text)
	}
	if n := list.Rejected(); n > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%d of %d records give no proxy\n", n, list.Records)
	}
	if err != nil {
		return nil, fmt.Errorf("--list: %w", err)
	}
	return offered, nil
}
