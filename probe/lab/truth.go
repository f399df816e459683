package lab

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// Truth is what a right prober finds in one round of questions, by the schemes
// http, https, socks4, socks4a and socks5 as far as the list's claim leaves them
// open, with http and tls required, a timeout of 2 s, and judges that are named
// localhost. It speaks of a proxy that was not told to fail. The words are those
// of package probe, which this package does not import: its tests run labs.
type Truth struct {
	Eligible     bool     `json:"eligible"`     // the verdict: it may become a member
	Outcome      string   `json:"outcome"`      // of the probe that decides: the last one of the round
	Class        string   `json:"class"`        // who is answerable for it: ok, proxy, security
	Stage        string   `json:"stage"`        // where it ended; "" when ok
	Rule         string   `json:"rule"`         // that speaks against it: require http, require tls, safety; "" when eligible
	Anonymity    string   `json:"anonymity"`    // transparent, anonymous, elite; "" where no answer tells
	Capabilities []string `json:"capabilities"` // that the round shows, in the order http, connect, tls, remote_dns, ipv6_exit; may be empty
	Schemes      []string `json:"schemes"`      // by which it can be spoken to, in the order of proxyurl.Schemes; may be empty
	Needs        []string `json:"needs"`        // what the prober must have to see it: the constants Need...; may be empty
	Note         string   `json:"note"`         // what it does, a phrase for people
}

// What a prober must have, beyond one judge on 127.0.0.1, to find the truth about
// a proxy.
const (
	NeedKey    = "key"           // a judge that signs its answers
	NeedJudges = "two judges"    // the second one at another address than localhost's
	NeedName   = "judge by name" // for it to be asked for a name
	NeedIPv6   = "IPv6"          // ::1 on this host, opened for source and judge; the prober knows it for its own
	NeedCA     = "lab's CA"      // the lab's authority, trusted for proxies: Lab.CA
)

// Kind is a behaviour with its truth: what is documented about the lab.
type Kind struct {
	Behaviour Behaviour `json:"behaviour"`
	Claimed   string    `json:"claimed"` // the scheme in the list
	Truth
}

// Kinds returns all behaviours, in the order of the table.
func Kinds() []Kind {
	var all []Kind
	for _, k := range table() {
		all = append(all, Kind{k.Behaviour, string(k.claimed), k.truth})
	}
	return all
}

// eligible is the truth about a good proxy. Capabilities and schemes are words
// with spaces between.
func eligible(anonymity, can, schemes, note string) Truth {
	return Truth{Eligible: true, Outcome: "ok", Class: "ok", Anonymity: anonymity,
		Capabilities: words(can), Schemes: words(schemes), Needs: []string{}, Note: note}
}

// fails is the truth about a bad one; its probe ends with an outcome at a stage,
// and breaks a rule.
func fails(outcome, stage, rule, anonymity, can, schemes, note string) Truth {
	class := "proxy"
	if rule == safety {
		class = "security"
	}
	return Truth{Outcome: outcome, Class: class, Stage: stage, Rule: rule, Anonymity: anonymity,
		Capabilities: words(can), Schemes: words(schemes), Needs: []string{}, Note: note}
}

// The rules that a proxy may break.
const (
	requireHTTP = "require http"
	requireTLS  = "require tls"
	safety      = "safety"
)

// needs says what the truth rests on.
func (t Truth) needs(what ...string) Truth {
	t.Needs = what
	return t
}

// words is never nil: programs read an empty list, not null.
func words(text string) []string { return append([]string{}, strings.Fields(text)...) }

// spokenScheme is the first of the schemes, or what was claimed where nobody speaks.
func (k kind) spokenScheme() proxyurl.Scheme {
	if len(k.truth.Schemes) == 0 {
		return k.claimed
	}
	return proxyurl.Scheme(k.truth.Schemes[0])
}
