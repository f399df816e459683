package api

import "time"

// Status answers GET /v1/status.
type Status struct {
	Version  string     `json:"version"`
	UptimeMS int64      `json:"uptime_ms"`
	Store    Store      `json:"store"`
	Pools    List[Pool] `json:"pools"` // in the order of the configuration
}

// Store says where the pools are kept and whether it can be reached.
type Store struct {
	// Kind is "redis" or "embedded".
	Kind string `json:"kind"`
	// URL is the server's, its password hidden; empty when embedded.
	URL       string `json:"url,omitempty"`
	Reachable bool   `json:"reachable"`
	// Since is when Reachable last changed.
	Since time.Time `json:"since,omitzero"`
	// Version is the server's name and version.
	Version string `json:"version,omitempty"`
	// Note is one sentence for the operator: why it is not reachable, or what
	// the embedded store is not meant for.
	Note string `json:"note,omitempty"`
}

// Pool answers GET /v1/pools/{pool}.
type Pool struct {
	Name string `json:"name"`
	// Members, Candidates (known endpoints that are no members) and Due (of both,
	// those whose time to be probed has come) are as of CountedAt. While the
	// store is away they are old, or 0 without a CountedAt: never known.
	Members    int64     `json:"members"`
	Candidates int64     `json:"candidates"`
	Due        int64     `json:"due"`
	CountedAt  time.Time `json:"counted_at,omitzero"`
	// Counts is how even the members' counts are; nil where that is not known.
	Counts *Evenness `json:"counts"`
	// LastCycle is nil before the first cycle of this daemon has ended.
	LastCycle   *Cycle       `json:"last_cycle"`
	NextCycleAt time.Time    `json:"next_cycle_at,omitzero"`
	Guard       Guard        `json:"guard"`
	Judges      List[Judge]  `json:"judges"`
	Sources     List[Source] `json:"sources"`
}

// Evenness is how alike the counts of a pool's members are, all 0 for an empty pool.
type Evenness struct {
	Lowest  int64   `json:"lowest"`
	Highest int64   `json:"highest"`
	Spread  int64   `json:"spread"` // highest less lowest
	Mean    float64 `json:"mean"`
	// Gini is the Gini coefficient: 0 where all counts are alike, towards 1 where one member has
	// everything.
	Gini float64 `json:"gini"`
	// CountedAt is when all members were looked at; at least a second, and in a large pool longer,
	// before that is done again.
	CountedAt time.Time `json:"counted_at"`
}

// Cycle is what one round of probing did.
type Cycle struct {
	StartedAt        time.Time `json:"started_at"`
	DurationMS       int64     `json:"duration_ms"`
	ProbedMembers    int       `json:"probed_members"`
	ProbedCandidates int       `json:"probed_candidates"`
	// Passed, Failed and Inconclusive count verdicts, Admitted and Retired what
	// became of them, Held those that failed enough to go and were kept by the
	// guard.
	Passed       int `json:"passed"`
	Failed       int `json:"failed"`
	Inconclusive int `json:"inconclusive"`
	Admitted     int `json:"admitted"`
	Retired      int `json:"retired"`
	Held         int `json:"held"`
	// VoidSlices counts the slices in which no judge was well, so that nothing
	// was decided.
	VoidSlices int `json:"void_slices"`
	// PutOff counts candidates that were not asked, since others of their address or
	// network were: their turn comes in a later cycle. Forgotten counts those that
	// nothing has spoken for in long.
	PutOff    int `json:"put_off"`
	Forgotten int `json:"forgotten"`
	// Outcomes counts results by outcome.
	Outcomes Counts `json:"outcomes"`
	// Error is why the cycle ended early, empty when it did not.
	Error string `json:"error,omitempty"`
}

// The states of a guard.
const (
	GuardNormal = "normal" // members are retired as they fail
	GuardVoid   = "void"   // no judge was well: nothing is admitted or retired
	GuardFrozen = "frozen" // too many members fail at once: nothing is retired
	GuardHeld   = "held"   // the cycle's budget of retirements is spent
)

// Guard is what keeps a pool from being emptied by a fault of the observer.
type Guard struct {
	// State is one of GuardNormal, GuardVoid, GuardFrozen, GuardHeld.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Why   string    `json:"why,omitempty"`
}

// Judge is what the newest control probe of one judge said of one capability.
type Judge struct {
	Name string `json:"name"`
	// Capability is what the judge shows: "http" or "tls".
	Capability string    `json:"capability"`
	Well       bool      `json:"well"`
	Outcome    string    `json:"outcome,omitempty"`
	Detail     string    `json:"detail,omitempty"`
	CheckedAt  time.Time `json:"checked_at,omitzero"`
}

// Sources answers GET /v1/sources.
type Sources struct {
	Sources List[Source] `json:"sources"` // in the order of the configuration
}

// Source is what one list gave when it was last fetched.
type Source struct {
	Name string `json:"name"`
	// URL is the list's, its password and query hidden.
	URL string `json:"url"`
	// Format is the one that most records are written in, empty before the first fetch.
	Format string `json:"format,omitempty"`
	// State is one of SourceNew, SourceGood, SourceStale, SourceFailed.
	State string `json:"state"`
	// TriedAt is when a fetch last ended, well or not; it is absent before the
	// first. FetchedAt is when the copy in use was fetched, or was last said to be
	// the newest; a restart keeps it.
	TriedAt   time.Time `json:"tried_at,omitzero"`
	FetchedAt time.Time `json:"fetched_at,omitzero"`
	// Stale says that the copy in use is the last good one, since a newer fetch was
	// not usable for the reason in Error.
	Stale bool `json:"stale"`
	// Candidates counts the endpoints of the copy in use that are offered to pools,
	// New those of them that the copy before did not name.
	Candidates int `json:"candidates"`
	New        int `json:"new"`
	// Duplicates counts records that said nothing new, Rejects records that are no
	// candidates, by reason, Refused candidates that are not offered to a pool, by
	// reason (ports that are never proxies, floods).
	Duplicates int    `json:"duplicates"`
	Rejects    Counts `json:"rejects"`
	Refused    Counts `json:"refused"`
	// Samples are the first few rejected records, escaped and without passwords.
	Samples     List[Sample] `json:"samples"`
	Error       string       `json:"error,omitempty"`
	NextFetchAt time.Time    `json:"next_fetch_at,omitzero"`
	// WaitUntil is until when the list's server has asked not to be asked.
	WaitUntil time.Time `json:"wait_until,omitzero"`
}

// The states of a source.
const (
	SourceNew    = "new"    // not fetched yet
	SourceGood   = "good"   // the last fetch gave what is in use
	SourceStale  = "stale"  // the last fetch failed, the good copy from before is in use
	SourceFailed = "failed" // the last fetch failed, and there is no good copy
)

// Sample is a record of a list that gave no candidate.
type Sample struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
}
