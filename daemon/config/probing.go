package config

import (
	"crypto/x509"
	"errors"
	"slices"

	"evenpool/probe"
	"evenpool/probe/judge"
)

// What the configuration is for probing.

// Rules returns the rules as package probe takes them, without Banned: whoever
// needs that opens BannedFile.
func (e Eligibility) Rules() probe.Rules {
	return probe.Rules{
		Schemes: e.Schemes, Require: e.Require,
		Networks: e.Networks, NotNetworks: e.NotNetworks, Ports: e.Ports,
		MinJudges: e.MinJudges, Anonymity: e.Anonymity, AcceptClaimed: e.AcceptClaimed,
		ExitCountries: e.ExitCountries, NotCountries: e.NotCountries,
		ExitASNs: e.ExitASNs, NotASNs: e.NotASNs, RequireTargets: e.RequireTargets,
		MaxLatency: e.MaxLatency, MinSuccess: e.MinSuccess, MaxExitChanges: e.MaxExitChanges,
		MaxAge: e.MaxAge, Quarantine: e.Quarantine, Rise: e.Rise, Fall: e.Fall,
	}
}

// Prober returns the judge as package probe takes it. It reads CAFile and KeyFile;
// an error is the *FileErrors of both, joined.
func (j Judge) Prober() (probe.Judge, error) {
	p := j.unopened()
	var rootsErr, keyErr error
	p.RootCAs, rootsErr = j.RootCAs()
	if j.KeyFile != "" {
		p.Key, keyErr = judge.ReadKey(j.KeyFile)
		keyErr = InKey("key_file", j.KeyFile, keyErr)
	}
	if err := errors.Join(rootsErr, keyErr); err != nil {
		return probe.Judge{}, err
	}
	return p, nil
}

// unopened is the judge without what its files hold.
func (j Judge) unopened() probe.Judge {
	p := probe.Judge{Name: j.Name, HTTP: j.HTTP, HTTPS: j.HTTPS, Allow: j.AllowAddresses}
	if j.Expect != nil {
		p.Expect = &probe.Expect{Status: j.Expect.Status, Contains: j.Expect.Contains}
	}
	if j.Echo != nil {
		echo := probe.Echo(*j.Echo)
		p.Echo = &echo
	}
	return p
}

// Prober returns the target as package probe takes it. It reads CAFile; an error is a
// *FileError.
func (t Target) Prober() (probe.Target, error) {
	roots, err := rootsFrom("ca_file", t.CAFile)
	if err != nil {
		return probe.Target{}, err
	}
	return probe.Target{Name: t.Name, URL: t.URL, Status: t.Status, Headers: t.Headers, Body: t.Body,
		Allow: t.AllowAddresses, RootCAs: roots}, nil
}

// ProxyRootCAs returns the roots for the certificates of https proxies: nil, the
// system's, without a ProxyCAFile; else the system's and those of the file. An error
// is a *FileError.
func (p Probe) ProxyRootCAs() (*x509.CertPool, error) {
	return rootsFrom("proxy_ca_file", p.ProxyCAFile)
}

// Means returns what a pool can find out with.
func (c *Config) Means(p Pool) probe.Means {
	m := probe.Means{Country: c.GeoIP.Country != "", ASN: c.GeoIP.ASN != ""}
	for _, j := range c.Judges {
		if p.Judges != nil && !slices.Contains(p.Judges, j.Name) {
			continue
		}
		tells := j.Expect == nil
		m.Judges = append(m.Judges, probe.JudgeMeans{Name: j.Name, HTTP: j.HTTP != nil, TLS: j.HTTPS != nil,
			Exit: tells, Headers: tells && (j.Echo == nil || j.Echo.Headers != ""), Signed: j.KeyFile != ""})
	}
	for _, t := range c.Targets {
		m.Targets = append(m.Targets, t.Name)
	}
	for _, s := range c.Sources {
		if p.Sources == nil || slices.Contains(p.Sources, s.Name) {
			m.Allow = append(m.Allow, s.AllowAddresses...)
		}
	}
	return m
}
