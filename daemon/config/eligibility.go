package config

import (
	"net/netip"
	"time"

	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// Eligibility holds a pool's rules; probe.RuleTable says of each what it needs to be
// known and how fast it acts.
type Eligibility struct {
	// Schemes are those that members may speak, the most wanted first: http,
	// https (TLS to the proxy itself), socks4, socks4a, socks5. Default: [http,
	// socks5]. A proxy that speaks several is a member by the first that passes.
	Schemes []proxyurl.Scheme
	// Require is what a proxy must be proven to do: "http" (plain requests pass),
	// "tls" (tunnels pass, unbroken). Default: [http, tls]. Each needs a judge that
	// shows it.
	Require []probe.Capability

	// BannedFile is a list of proxies that are not wanted: HOST:PORT, a host, or a
	// prefix on each line; # begins a comment. It is read again when it changes.
	// Default: empty, none. A member that comes onto it is retired at once.
	BannedFile string
	// Networks are the prefixes that a proxy's own address must be in. Default: none,
	// any will do.
	Networks []netip.Prefix
	// NotNetworks are prefixes that neither a proxy's own address nor its exit may be
	// in. Default: none.
	NotNetworks []netip.Prefix
	// Ports are those that a proxy may listen on, such as 8080 or 8000-8999.
	// Default: none, any will do.
	Ports []probe.PortRange

	// MinJudges is how many judges have to be content before a proxy becomes a
	// member, from 1 to 10. Default: 2 where two of the pool's judges show something of
	// Require, else 1. At 1 a proxy that works for the judge and for no other host comes
	// in; above the number of judges that are well, none does.
	MinJudges int
	// Anonymity is the least that a proxy must be: "transparent" (known at all),
	// "anonymous" (our address is not told) or "elite" (not even that it is a
	// proxy). Default: empty, no matter. It needs a judge on http that tells headers.
	Anonymity probe.Anonymity
	// AcceptClaimed lets Anonymity rest on answers that nobody signed. Default:
	// false. A proxy may have written them.
	AcceptClaimed bool
	// ExitCountries and NotCountries are where traffic must, and must not, come out:
	// ISO 3166-1 codes in capitals. Default: none. An exit that the file of
	// Config.GeoIP does not know meets neither.
	ExitCountries, NotCountries []string
	// ExitASNs and NotASNs are the same for autonomous systems, from 1 to 4294967295.
	// Default: none.
	ExitASNs, NotASNs []uint32
	// RequireTargets are the names of the targets that a proxy must have reached when
	// it was last asked for them. Default: none.
	RequireTargets []string

	// MaxLatency is the most time that the stages of a probe may take: Connect,
	// FirstByte and Total, each from the beginning; 0 has no limit besides
	// Probe.Timeout. Of the last Over rounds that worked (1 to 20) the Quantile (p50,
	// p90, p95, max) counts. Default: no limits, over 1, p90. Lowering limits makes a
	// pool faster and smaller; raising Over forgives single slow rounds, and is slower
	// to notice. A single duration in the file is Total.
	MaxLatency probe.Latency
	// MinSuccess is the share of the last Over rounds (1 to 20) in which the proxy
	// must have worked, from 0 to 100 %. Default: 0 %, over 20: no rule. A single
	// percentage in the file is Percent.
	MinSuccess probe.Success
	// MaxExitChanges is how often the exit's address may have changed over the rounds
	// that are kept, from 0 to 19. Default: nil, "any" in the file: as often as it
	// likes.
	MaxExitChanges *int
	// MaxAge is how long a member may stay without a pass, from 0 to 30 days and
	// longer than the schedule's interval. Default: 0, as long as it does not fail.
	MaxAge time.Duration
	// Quarantine is how long a proxy stays out that broke a rule of safety: it
	// tampered, intercepted or forged. From 0 to 30 days. Default: 24h. Zero lets it
	// back in as soon as it passes again.
	Quarantine time.Duration

	// Rise is how many passes in a row admit a proxy, from 1 to 100. Default: 2.
	// At 1, every proxy that answers once comes in, and half of them fail next.
	Rise int
	// Fall is how many failures in a row retire a member, from 1 to 100.
	// Default: 2. Raising it keeps proxies that fail now and then, and dead ones
	// for longer.
	Fall int
}

// maxOver is how many rounds a record keeps.
const maxOver = 20

func (e *Eligibility) keys(s *section) {
	list(s, "schemes", &e.Schemes, scheme(probe.Schemes(), false))
	list(s, "require", &e.Require, member(probe.Capabilities()))
	value(s, "banned_file", &e.BannedFile, filePath(0, maxPathBytes))
	optional(s, "networks", &e.Networks, prefix())
	optional(s, "not_networks", &e.NotNetworks, prefix())
	optional(s, "ports", &e.Ports, ports())
	value(s, "min_judges", &e.MinJudges, whole(1, 10))
	value(s, "anonymity", &e.Anonymity, anonymity())
	value(s, "accept_claimed", &e.AcceptClaimed, truth())
	optional(s, "exit_countries", &e.ExitCountries, country())
	optional(s, "not_countries", &e.NotCountries, country())
	optional(s, "exit_asns", &e.ExitASNs, asn())
	optional(s, "not_asns", &e.NotASNs, asn())
	optional(s, "require_targets", &e.RequireTargets, name())
	limit := duration(0, 5*time.Minute)
	orSection(s, "max_latency", &e.MaxLatency.Total, limit, func(s *section) {
		value(s, "connect", &e.MaxLatency.Connect, limit)
		value(s, "first_byte", &e.MaxLatency.FirstByte, limit)
		value(s, "total", &e.MaxLatency.Total, limit)
		value(s, "over", &e.MaxLatency.Over, whole(1, maxOver))
		value(s, "quantile", &e.MaxLatency.Quantile, member(probe.Quantiles()))
	})
	orSection(s, "min_success", (*Percent)(&e.MinSuccess.Percent), percent(), func(s *section) {
		value(s, "percent", (*Percent)(&e.MinSuccess.Percent), percent())
		value(s, "over", &e.MinSuccess.Over, whole(1, maxOver))
	})
	value(s, "max_exit_changes", &e.MaxExitChanges, orAny(0, maxOver-1))
	value(s, "max_age", &e.MaxAge, duration(0, longestAge))
	value(s, "quarantine", &e.Quarantine, duration(0, longestAge))
	value(s, "rise", &e.Rise, whole(1, 100))
	value(s, "fall", &e.Fall, whole(1, 100))
}

const longestAge = 30 * 24 * time.Hour

func defaultEligibility() Eligibility {
	return Eligibility{
		Schemes:    []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS5},
		Require:    []probe.Capability{probe.HTTP, probe.TLS},
		MaxLatency: probe.Latency{Over: 1, Quantile: probe.P90},
		MinSuccess: probe.Success{Over: maxOver},
		Quarantine: probe.DefaultQuarantine,
		Rise:       2,
		Fall:       2,
	}
}
