package main

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"evenpool/daemon"
	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// means are what proxies are tried with: of a pool, or of flags.
type means struct {
	pool     string // "": of flags, or all judges of a configuration
	judges   []probe.Judge
	require  []probe.Capability // to be asked for, as far as judges show it
	targets  []probe.Target
	rules    probe.Rules
	geo      probe.Geo
	allow    proxyurl.Allow // for the proxies
	options  probe.Options
	dialRate float64 // 0: no limit
}

// judgeByFlags are the flags for a judge that no configuration has.
func judgeByFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "judge-http", Usage: "`URL` of a judge in place of the configuration's; shows http"},
		&cli.StringFlag{Name: "judge-https", Usage: "`URL` of a judge in place of the configuration's; shows tls"},
		&cli.StringFlag{Name: "judge-key-file", Usage: "`FILE` with the key by which that judge signs its answers; default: it does not sign"},
		&cli.StringFlag{Name: "expect", Usage: "`TEXT` that the judge's page contains, with status 200; default: it is an evenpool judge"},
		&cli.StringFlag{Name: "echo", Usage: "`FORMAT,ADDRESS[,HEADERS]` of a judge of others that tells what it received, such as json,origin,headers or env,REMOTE_ADDR,HTTP_; the nonce goes into the query"},
		&cli.StringFlag{Name: "ca-file", Usage: "`FILE` with authorities in PEM for --judge-https, besides the system's"},
		&cli.StringFlag{Name: "proxy-ca-file", Usage: "`FILE` with authorities in PEM for https proxies, besides the system's; default: the pool's"},
	}
}

// probeMeans reads the flags, and the configuration if they name no judge.
func probeMeans(c *cli.Context, allow proxyurl.Allow) (m means, err error) {
	ofPool := c.IsSet("policy") || c.IsSet("pool")
	if c.IsSet("policy") && c.IsSet("config") {
		return m, usageError("--policy and --config both name the configuration: give one of them")
	}
	switch byFlags := c.IsSet("judge-http") || c.IsSet("judge-https"); {
	case byFlags && ofPool:
		return m, usageError("a pool has its own judges: give --policy and --pool, or --judge-http and --judge-https")
	case byFlags:
		m, err = flagMeans(c, allow)
	default:
		for _, name := range []string{"expect", "echo", "ca-file", "judge-key-file"} {
			if c.IsSet(name) {
				return m, usageError("--%s is for a judge given by --judge-http or --judge-https", name)
			}
		}
		file := c.String("config")
		if c.IsSet("policy") {
			file = c.String("policy")
		}
		cfg, loadErr := loadConfig(file, c.App.ErrWriter)
		if loadErr != nil {
			return m, loadErr
		}
		if !ofPool {
			m, err = judgeMeans(cfg)
			break
		}
		pool, poolErr := choosePool(cfg, c.String("pool"))
		if poolErr != nil {
			return m, poolErr
		}
		m, err = poolMeans(cfg, pool)
		if c.Args().Present() { // named by the operator, and not by whoever writes a list
			for _, s := range cfg.Sources {
				if slices.Contains(pool.Sources, s.Name) {
					m.allow = append(m.allow, s.AllowAddresses...)
				}
			}
		}
	}
	if err != nil {
		return m, err
	}
	m.allow = append(m.allow, allow...)
	if m.pool == "" {
		m.require = probe.Capabilities()
		m.rules.Schemes = probe.Schemes()
	}
	if m.pool == "" || c.IsSet("timeout") {
		m.options.Timeout = c.Duration("timeout")
	}
	if file := c.String("proxy-ca-file"); file != "" {
		m.options.ProxyRootCAs, err = config.Probe{ProxyCAFile: file}.ProxyRootCAs()
		if err != nil {
			return m, config.InKey("--proxy-ca-file", file, err)
		}
	}
	return m, nil
}

// choosePool returns the pool of that name, or the only one.
func choosePool(cfg *config.Config, name string) (config.Pool, error) {
	if name == "" && len(cfg.Pools) == 1 {
		return cfg.Pools[0], nil
	}
	var names []string
	for _, p := range cfg.Pools {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	if name == "" {
		return config.Pool{}, usageError("which pool? give --pool; configured: %s", strings.Join(names, ", "))
	}
	return config.Pool{}, usageError("no pool %s; configured: %s", proxyurl.Escape(name, 40), strings.Join(names, ", "))
}

// judgeMeans are all judges of a configuration.
func judgeMeans(cfg *config.Config) (m means, err error) {
	for i, j := range cfg.Judges {
		judge, err := j.Prober()
		if err != nil {
			return m, &exitError{exitConfig, cfg.FilesIn(fmt.Sprintf("judges[%d]", i), err)}
		}
		m.judges = append(m.judges, judge)
	}
	return m, nil
}

// poolMeans are what a pool's probes have.
func poolMeans(cfg *config.Config, pool config.Pool) (m means, err error) {
	var wrong config.Errors
	note := func(section string, err error) { wrong = append(wrong, cfg.FilesIn(section, err)...) }
	for i, j := range cfg.Judges {
		if slices.Contains(pool.Judges, j.Name) {
			judge, err := j.Prober()
			note(fmt.Sprintf("judges[%d]", i), err)
			m.judges = append(m.judges, judge)
		}
	}
	for i, t := range cfg.Targets {
		if slices.Contains(pool.Eligibility.RequireTargets, t.Name) {
			target, err := t.Prober()
			note(fmt.Sprintf("targets[%d]", i), err)
			m.targets = append(m.targets, target)
		}
	}
	section := fmt.Sprintf("pools[%d]", slices.IndexFunc(cfg.Pools, func(p config.Pool) bool { return p.Name == pool.Name }))
	m.pool, m.require, m.rules = pool.Name, pool.Eligibility.Require, pool.Eligibility.Rules()
	if file := pool.Eligibility.BannedFile; file != "" {
		banned, err := daemon.OpenBanned(file)
		note(section+".eligibility", config.InKey("banned_file", file, err))
		m.rules.Banned = banned
	}
	geo, err := daemon.OpenGeoIP(cfg.GeoIP.Country, cfg.GeoIP.ASN)
	note("", err)
	m.geo = geo.Geo()
	m.options = probe.Options{Timeout: pool.Probe.Timeout, ConnectTimeout: pool.Probe.ConnectTimeout,
		Admit: func(_ context.Context, addr netip.Addr) error { return m.rules.Admit(addr) }}
	m.options.ProxyRootCAs, err = pool.Probe.ProxyRootCAs()
	note(section+".probe", err)
	m.dialRate = float64(cfg.MaxDialsPerSecond)
	if len(wrong) > 0 {
		wrong.Sort()
		return m, &exitError{exitConfig, wrong}
	}
	return m, nil
}

// flagMeans is the judge that flags describe.
func flagMeans(c *cli.Context, allow proxyurl.Allow) (m means, err error) {
	j := config.Judge{Name: "flags", CAFile: c.String("ca-file"), AllowAddresses: allow}
	if j.HTTP, err = judgeURL(c, "judge-http", "http"); err != nil {
		return m, err
	}
	if j.HTTPS, err = judgeURL(c, "judge-https", "https"); err != nil {
		return m, err
	}
	kinds := 0
	for _, name := range []string{"expect", "echo", "judge-key-file"} {
		if c.IsSet(name) {
			kinds++
		}
	}
	if kinds > 1 {
		return m, usageError("--expect, --echo and --judge-key-file are for judges of different kinds: give one of them")
	}
	if c.IsSet("expect") {
		j.Expect = &config.Expect{Status: 200, Contains: c.String("expect")}
	}
	if text := c.String("echo"); text != "" {
		parts := append(strings.SplitN(text, ",", 3), "", "")
		j.Echo = &config.Echo{Nonce: "query:nonce", Format: parts[0], Address: parts[1], Headers: parts[2]}
		if err := probe.Echo(*j.Echo).Check(); err != nil {
			return m, usageError("--echo %s: %w; want FORMAT,ADDRESS[,HEADERS], such as json,origin,headers", proxyurl.Escape(text, 100), err)
		}
	}
	asked, err := j.Prober()
	if err != nil {
		return m, config.InKey("--ca-file", j.CAFile, err)
	}
	if file := c.String("judge-key-file"); file != "" {
		if asked.Key, err = judge.ReadKey(file); err != nil {
			return m, config.InKey("--judge-key-file", file, err)
		}
	}
	m.judges = []probe.Judge{asked}
	return m, nil
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
