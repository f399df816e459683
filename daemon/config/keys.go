package config

import (
	"net/netip"
	"time"

	"evenpool/alloc"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// All keys of the file, with their limits, are here and nowhere else: reading,
// showing and the test of the example go through these functions. Defaults are
// in defaults.go, what spans several keys is in check.go.

func (c *Config) keys(s *section) {
	s.sub("redis", c.Redis.keys)
	s.sub("socket", c.Socket.keys)
	value(s, "state_dir", &c.StateDir, filePath(1, maxPathBytes))
	items(s, "judges", &c.Judges, defaultJudge, judgeKeys)
	items(s, "sources", &c.Sources, defaultSource, sourceKeys)
	items(s, "pools", &c.Pools, defaultPool, poolKeys)
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
	value(s, "ca_file", &j.CAFile, filePath(0, maxPathBytes))
	list(s, "allow_addresses", (*[]netip.Prefix)(&j.AllowAddresses), prefix())
	s.notYet("key_file")
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
	value(s, "confirm_after", &p.ConfirmAfter, duration(0, 10*time.Minute))
	value(s, "concurrency", &p.Concurrency, whole(1, 10_000))
}

func (e *Eligibility) keys(s *section) {
	list(s, "schemes", &e.Schemes, scheme(probe.Schemes(), false))
	list(s, "require", &e.Require, member(probe.Capabilities()))
	value(s, "max_latency", &e.MaxLatency, duration(0, 5*time.Minute))
	value(s, "min_judges", &e.MinJudges, whole(1, 10))
	value(s, "rise", &e.Rise, whole(1, 100))
	value(s, "fall", &e.Fall, whole(1, 100))
	s.notYet("anonymity")
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
