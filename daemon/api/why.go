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
	NextProbeAt time.Time `json:"next_probe_at,omitzero"`
	// Rules are all rules of the pool in the order of the configuration.
	Rules List[Rule] `json:"rules"`
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
