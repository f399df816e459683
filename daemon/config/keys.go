package config

import (
	"errors"
	"net/netip"
	"time"

	"evenpool/alloc"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// All keys of the file, with their limits, are here, those of eligibility in
// eligibility.go, and nowhere else: reading, showing and the test of the example go
// through these functions. Defaults are in defaults.go, what spans several keys is in
// check.go and checkrules.go.

func (c *Config) keys(s *section) {
	s.sub("redis", c.Redis.keys)
	s.sub("socket", c.Socket.keys)
	value(s, "state_dir", &c.StateDir, filePath(1, maxPathBytes))
	value(s, "max_dials_per_second", &c.MaxDialsPerSecond, whole(0, 100_000))
	s.sub("geoip", c.GeoIP.keys)
	items(s, "judges", &c.Judges, 1, defaultJudge, judgeKeys)
	items(s, "targets", &c.Targets, 0, defaultTarget, targetKeys)
	items(s, "sources", &c.Sources, 1, defaultSource, sourceKeys)
	items(s, "pools", &c.Pools, 1, defaultPool, poolKeys)
	s.need("judges", "who is asked through the proxies")
	s.need("sources", "where candidates come from")
	s.need("pools", "at least one, with a name")
}

func (r *Redis) keys(s *section) {
	value(s, "url", &r.URL, redisURL())
	value(s, "username", &r.Username, text(between(0, 256)))
	value(s, "password_file", &r.PasswordFile, filePath(0, maxPathBytes))
	value(s, "pool_size", &r.PoolSize, whole(1, 1000))
	s.refuse("password", "does not belong into this file; put it in a file of its own and name that in password_file")
}

func (u *Socket) keys(s *section) {
	value(s, "path", &u.Path, filePath(1, 107)) // sun_path of unix(7) has 108, and a zero
	value(s, "mode", &u.Mode, mode())
}

func judgeKeys(s *section, j *Judge) {
	value(s, "name", &j.Name, name())
	value(s, "http", &j.HTTP, judgeURL("http"))
	value(s, "https", &j.HTTPS, judgeURL("https"))
	if s.has("expect") {
		j.Expect = defaultExpect()
	}
	if s.knows("expect") && j.Expect != nil {
		s.sub("expect", j.Expect.keys)
	}
	if s.has("echo") {
		j.Echo = &Echo{Nonce: "query:nonce"}
	}
	if s.knows("echo") && j.Echo != nil {
		s.sub("echo", j.Echo.keys)
	}
	value(s, "key_file", &j.KeyFile, filePath(0, maxPathBytes))
	value(s, "ca_file", &j.CAFile, filePath(0, maxPathBytes))
	list(s, "allow_addresses", (*[]netip.Prefix)(&j.AllowAddresses), prefix())
	s.need("name", "one that pools can refer to")
	if s.r != nil && !s.has("http") && !s.has("https") {
		s.r.fail(s.at("http"), "is missing, and so is https; write at least one")
	}
}

func (e *Expect) keys(s *section) {
	value(s, "status", &e.Status, whole(200, 599))
	value(s, "contains", &e.Contains, text(between(1, 1024)))
	s.need("contains", "a text that the page has; a status alone proves nothing")
}

func (e *Echo) keys(s *section) {
	value(s, "nonce", &e.Nonce, text(func(s string) error {
		if (probe.Echo{Nonce: s, Format: "json", Address: "a"}).Check() != nil {
			return errors.New("expected query:NAME or header:NAME")
		}
		return nil
	}))
	value(s, "format", &e.Format, member([]string{"json", "env"}))
	value(s, "address", &e.Address, text(between(1, 100)))
	value(s, "headers", &e.Headers, text(between(0, 100)))
	s.need("format", "json or env")
	s.need("address", "where the asker's address stands, such as origin or REMOTE_ADDR")
}

func targetKeys(s *section, t *Target) {
	value(s, "name", &t.Name, name())
	value(s, "url", &t.URL, targetURL())
	value(s, "status", &t.Status, anyStatus())
	patterns(s, "headers", &t.Headers)
	value(s, "body", &t.Body, pattern())
	value(s, "min_interval", &t.MinInterval, duration(100*time.Millisecond, 24*time.Hour))
	value(s, "ca_file", &t.CAFile, filePath(0, maxPathBytes))
	list(s, "allow_addresses", (*[]netip.Prefix)(&t.AllowAddresses), prefix())
	s.need("name", "one that pools can refer to")
	s.need("url", "the page that is asked for")
}

func (g *GeoIP) keys(s *section) {
	value(s, "country", &g.Country, filePath(0, maxPathBytes))
	value(s, "asn", &g.ASN, filePath(0, maxPathBytes))
}

func sourceKeys(s *section, o *Source) {
	value(s, "name", &o.Name, name())
	value(s, "url", &o.URL, sourceURL())
	value(s, "format", &o.Format, member(sources.Formats()))
	value(s, "scheme", &o.Scheme, scheme(proxyurl.Claims(), true))
	value(s, "schedule", &o.Schedule, parsed(ParseSchedule))
	secrets(s, "headers", &o.Headers, header)
	value(s, "user_agent", &o.UserAgent, userAgent())
	value(s, "proxy", &o.Proxy, proxyURL())
	value(s, "timeout", &o.Timeout, duration(time.Second, 10*time.Minute))
	value(s, "max_bytes", &o.MaxBytes, whole(1<<10, 256<<20))
	value(s, "max_candidates", &o.MaxCandidates, whole(1, 1_000_000))
	list(s, "allow_addresses", (*[]netip.Prefix)(&o.AllowAddresses), prefix())
	s.need("name", "one that pools can refer to")
	s.need("url", "where the list is")
}

func poolKeys(s *section, p *Pool) {
	value(s, "name", &p.Name, name())
	list(s, "sources", &p.Sources, name())
	list(s, "judges", &p.Judges, name())
	value(s, "max_candidates", &p.MaxCandidates, whole(1, 2_000_000))
	s.sub("probe", p.Probe.keys)
	s.sub("eligibility", p.Eligibility.keys)
	s.sub("guard", p.Guard.keys)
	s.sub("allocation", p.Allocation.keys)
	s.need("name", "one for workers to ask for")
}

func (p *Probe) keys(s *section) {
	value(s, "schedule", &p.Schedule, parsed(ParseSchedule))
	value(s, "timeout", &p.Timeout, duration(100*time.Millisecond, 5*time.Minute))
	value(s, "connect_timeout", &p.ConnectTimeout, duration(100*time.Millisecond, 5*time.Minute))
	value(s, "proxy_ca_file", &p.ProxyCAFile, filePath(0, maxPathBytes))
	value(s, "confirm_after", &p.ConfirmAfter, duration(0, 10*time.Minute))
	value(s, "concurrency", &p.Concurrency, whole(1, 10_000))
}

func (g *Guard) keys(s *section) {
	value(s, "max_retired", &g.MaxRetired, percent())
	value(s, "panic_above", &g.PanicAbove, percent())
	value(s, "max_freeze", &g.MaxFreeze, duration(0, longestInterval))
}

func (a *Allocation) keys(s *section) {
	value(s, "start", &a.Start, policy(alloc.ParseStart, "min, median, max, zero"))
	value(s, "restore", &a.Restore, policy(alloc.ParseRestore, "floor, keep, min, median, max, zero"))
	value(s, "forget_after", &a.ForgetAfter, duration(0, longestInterval))
}
