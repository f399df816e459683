package api

import "time"

// What a proxy is to a pool.
const (
	StateMember    = "member"
	StateCandidate = "candidate" // known, not a member
	StateRetired   = "retired"   // was a member; its count is remembered
	StateUnknown   = "unknown"   // no list named it
)

// Why answers GET /v1/pools/{pool}/proxies?url=: what is known of one proxy and
// which rule keeps it in or out.
type Why struct {
	// Proxy is the member's URL if it is a member, else its endpoint; the
	// password is hidden.
	Proxy string `json:"proxy"`
	// State is one of StateMember, StateCandidate, StateRetired, StateUnknown.
	State string `json:"state"`
	// Count is that of a member; absent otherwise.
	Count *int64 `json:"count,omitempty"`
	// Schemes are those that its sources claim ("any" for one that does not say),
	// Country and Anonymity what they claim beside that, empty where they say
	// nothing. Nothing of it is believed.
	Schemes     List[string] `json:"schemes"`
	Country     string       `json:"country,omitempty"`
	Anonymity   string       `json:"anonymity,omitempty"`
	Sources     List[string] `json:"sources"`
	FirstSeenAt time.Time    `json:"first_seen_at,omitzero"`
	// Passes and Fails are runs: how many verdicts in a row. One of them is 0.
	Passes      int       `json:"passes"`
	Fails       int       `json:"fails"`
	LastPassAt  time.Time `json:"last_pass_at,omitzero"`
	NextProbeAt time.Time `json:"next_probe_at,omitzero"`
	// OffendedAt is when it last broke a rule of safety, and QuarantineUntil how long
	// it stays out for that.
	OffendedAt      time.Time `json:"offended_at,omitzero"`
	QuarantineUntil time.Time `json:"quarantine_until,omitzero"`
	// Rules are all rules of the pool that are in force, in the order in which they are
	// looked at.
	Rules List[Rule] `json:"rules"`
	// Proven is what it showed when it last worked; nil when it never did, or not in
	// the rounds that are kept.
	Proven *Proven `json:"proven,omitempty"`
	// Exits are where its traffic came out, newest first.
	Exits List[Exit] `json:"exits"`
	// Targets are how it last reached each target that it was asked for.
	Targets List[TargetResult] `json:"targets"`
	// Rounds are those that told anything, newest first; of a proxy that did not work in
	// any of them, none is kept.
	Rounds List[Round] `json:"rounds"`
	// Reports is what workers said of a member; nil where nobody said anything.
	Reports *Reports `json:"reports,omitempty"`
	// Results are the last few, newest first.
	Results List[Result] `json:"results"`
	// Retired is nil when it was never retired, or that is forgotten.
	Retired *Retired `json:"retired,omitempty"`
	// Text says it all in a sentence or two, for people.
	Text string `json:"text"`
}

// The results of a rule.
const (
	RulePass     = "pass"
	RuleFail     = "fail"
	RuleNotKnown = "not known"
)

// Rule is one condition of eligibility and whether the proxy meets it.
type Rule struct {
	Rule string `json:"rule"`
	// Result is one of RulePass, RuleFail, RuleNotKnown.
	Result string `json:"result"`
	Text   string `json:"text"`
}

// Proven is what a proxy showed in a round in which it worked.
type Proven struct {
	At time.Time `json:"at"`
	// Capabilities are some of http, connect, tls, remote_dns, ipv6_exit.
	Capabilities List[string] `json:"capabilities"`
	// Anonymity is transparent, anonymous or elite; "" when it is not known.
	Anonymity string `json:"anonymity,omitempty"`
	// Verified: Anonymity rests on answers that were signed; else it is claimed.
	Verified bool `json:"verified"`
	// Judges is how many were content.
	Judges int `json:"judges"`
}

// Exit is an address at which a proxy's traffic came out.
type Exit struct {
	Address string `json:"address"`
	// Country is an ISO 3166-1 code, ASN the number of an autonomous system; "" and 0
	// when they are not known.
	Country string    `json:"country,omitempty"`
	ASN     uint32    `json:"asn,omitempty"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
}

// TargetResult is how a target was last reached.
type TargetResult struct {
	Target  string    `json:"target"`
	At      time.Time `json:"at"`
	Outcome string    `json:"outcome"`
}

// Round is one round of probing that told anything.
type Round struct {
	At time.Time `json:"at,omitzero"`
	// Worked: it did all that was asked for, whatever other rules made of it.
	Worked bool `json:"worked"`
	// ConnectMS, FirstByteMS and TotalMS are when the stages were done, of the slowest
	// check; absent for a round that did not work.
	ConnectMS   int64 `json:"connect_ms,omitempty"`
	FirstByteMS int64 `json:"first_byte_ms,omitempty"`
	TotalMS     int64 `json:"total_ms,omitempty"`
	// ExitChanges is how often the exit was another one than before.
	ExitChanges int `json:"exit_changes,omitempty"`
}

// Result is what one probe saw.
type Result struct {
	At time.Time `json:"at"`
	// Proxy is the URL that was tried, its password hidden.
	Proxy   string `json:"proxy"`
	Outcome string `json:"outcome"`
	// Stage is how far it came, Judge who was asked.
	Stage     string `json:"stage,omitempty"`
	Judge     string `json:"judge,omitempty"`
	LatencyMS int64  `json:"latency_ms,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// Retired is what is remembered of a former member.
type Retired struct {
	Count int64     `json:"count"`
	At    time.Time `json:"at"`
}
