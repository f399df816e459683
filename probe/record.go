package probe

import (
	"net/netip"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// Limits on what a record keeps. Of an endpoint that has not worked for as long as
// its rounds are kept, or never, there is one round of results with short details
// and nothing else: nearly all candidates are dead.
const (
	keptResults = 5  // at least one round by every scheme
	keptRounds  = 20 // the most that a rule may look at
	keptExits   = 5
	keptTargets = 16

	deadDetail = 40 // bytes of a dead endpoint's details
)

// Record is what is known of one endpoint between rounds. It is stored as JSON;
// times are whole milliseconds there. Methods never change the record they are
// called on, nor what its slices point to.
type Record struct {
	Schemes   []proxyurl.Scheme // claimed by the sources, proxyurl.Any among them; empty: nothing is claimed, anything is possible
	Sources   []string          // names of the sources that listed it
	Country   string            // as the sources claim it: shown, never believed; "" for none, at most 40 bytes
	Anonymity string            // likewise
	FirstSeen time.Time
	Member    string    // the URL under which it is a member, with its password; "" when it is none
	Passes    int       // rounds passed in a row; 0 after a failure
	Fails     int       // rounds failed in a row; 0 after a pass
	LastProbe time.Time // of any kind, inconclusive ones too
	LastPass  time.Time
	Offended  time.Time       // when it last broke a rule of safety; zero: never
	Last      []ResultSummary // newest first, at most 5

	Proven  Proven         // what it showed when it last worked
	Rounds  []RoundSummary // those that told anything, newest first, at most 20
	Exits   []Exit         // where its traffic came out, newest first, at most 5
	Targets []TargetResult // the last of each target, by name, at most 16
}

// ResultSummary is what a record keeps of a result.
type ResultSummary struct {
	At         time.Time // of the round: the results of one round have the same
	Scheme     proxyurl.Scheme
	State      State // what the rules made of it
	Outcome    Outcome
	Stage      Stage        // "" when ok
	Judge      string       // whom the check asked that decided
	Capability Capability   // what it asked for
	Shown      []Capability // what was shown before or by it
	Latency    time.Duration
	Detail     string // escaped
}

// Proven is what an endpoint showed in a round in which it worked.
type Proven struct {
	At        time.Time // zero: it never worked, or that is long ago
	Scheme    proxyurl.Scheme
	Found     CapabilitySet
	Anonymity Anonymity // "": unknown
	Verified  bool      // Anonymity rests on signed answers
	Judges    int       // how many were content with it
}

// Exit is an address at which an endpoint's traffic came out. Each family of
// addresses has its own: a judge on both may be asked by either.
type Exit struct {
	Addr  netip.Addr
	Place Place     // as it was looked up at Until
	Since time.Time // when it was first seen there
	Until time.Time // when last
}

// TargetResult is how a target was last reached.
type TargetResult struct {
	Name    string
	At      time.Time
	Outcome Outcome
}

// RoundSummary is what a record keeps of a round that told anything.
type RoundSummary struct {
	At          time.Time     // zero: not known, it is of an earlier version
	Worked      bool          // it did all that was asked for
	Connect     time.Duration // 0 for a round that did not work, as the next two
	FirstByte   time.Duration
	Total       time.Duration
	ExitChanges int // how often the exit was another one than before
}

// Round is what one slice learned of one endpoint.
type Round struct {
	At      time.Time
	Results []Result     // one for each scheme tried, in that order
	Geo     Geo          // looks exits up; nil: where they are is not known
	Verdict RoundVerdict // of Rules.Judge
}

// After returns the record with a round added: a pass or a failure lengthens its
// streak and ends the other, an inconclusive round leaves both as they are.
// Member is not touched: the pool decides that.
func (r Record) After(round Round) Record {
	at := atMS(round.At)
	r = r.seen(round, round.Verdict.worked)
	r.LastProbe = at
	switch round.Verdict.State {
	case Pass:
		r.Passes, r.Fails, r.LastPass = r.Passes+1, 0, at
	case Fail:
		r.Passes, r.Fails = 0, r.Fails+1
	}
	if round.Verdict.Security {
		r.Offended = at
	}
	last := make([]ResultSummary, 0, keptResults)
	for i, result := range slices.Backward(round.Results) {
		state := Inconclusive
		if i < len(round.Verdict.Each) {
			state = round.Verdict.Each[i]
		}
		last = append(last, summarize(at, result, state))
	}
	if r.dead() {
		for i := range last {
			last[i].Detail = proxyurl.Escape(last[i].Detail, deadDetail)
		}
	} else {
		last = append(last, r.Last...)
	}
	r.Last = last[:min(len(last), keptResults)]
	return r
}

// dead says whether nothing is known of an endpoint that ever worked.
func (r Record) dead() bool { return r.Member == "" && r.Proven.At.IsZero() && r.Passes == 0 }

func summarize(at time.Time, r Result, state State) ResultSummary {
	c := r.deciding()
	s := ResultSummary{At: at, Scheme: r.Proxy.Scheme, State: state, Outcome: r.Outcome, Stage: c.Stage,
		Judge: c.Judge, Capability: c.Capability, Latency: r.Latency, Detail: c.Detail}
	for _, c := range r.Checks {
		if c.Outcome == OK && !slices.Contains(s.Shown, c.Capability) {
			s.Shown = append(s.Shown, c.Capability)
		}
	}
	return s
}

// lastRound returns the summaries of the newest round, as they were tried.
func (r Record) lastRound() []ResultSummary {
	n := 0
	for n < len(r.Last) && r.Last[n].At.Equal(r.Last[0].At) {
		n++
	}
	round := slices.Clone(r.Last[:n])
	slices.Reverse(round)
	return round
}
