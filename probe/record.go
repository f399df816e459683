package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"evenpool/sources/proxyurl"
)

// keptResults is how many results a record keeps: at least one round by every
// scheme.
const keptResults = 5

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
	Last      []ResultSummary // newest first, at most 5
}

// ResultSummary is what a record keeps of a result.
type ResultSummary struct {
	At         time.Time // of the round: the results of one round have the same
	Scheme     proxyurl.Scheme
	State      State // what the rules made of it
	Outcome    Outcome
	Stage      Stage        // "" when ok
	Judge      string       // whom the last check asked
	Capability Capability   // what the last check asked for
	Shown      []Capability // what was shown before or by it
	Latency    time.Duration
	Detail     string // escaped
}

// Round is what one slice learned of one endpoint.
type Round struct {
	At      time.Time
	Results []Result     // one for each scheme tried, in that order
	Verdict RoundVerdict // of Rules.Judge on these results
}

// After returns the record with a round added: a pass or a failure lengthens its
// streak and ends the other, an inconclusive round leaves both as they are.
// Member is not touched: the pool decides that.
func (r Record) After(round Round) Record {
	at := round.At.Truncate(time.Millisecond)
	r.LastProbe = at
	switch round.Verdict.State {
	case Pass:
		r.Passes, r.Fails, r.LastPass = r.Passes+1, 0, at
	case Fail:
		r.Passes, r.Fails = 0, r.Fails+1
	}
	last := make([]ResultSummary, 0, keptResults)
	for i, result := range slices.Backward(round.Results) {
		state := Inconclusive
		if i < len(round.Verdict.Each) {
			state = round.Verdict.Each[i]
		}
		last = append(last, summarize(at, result, state))
	}
	last = append(last, r.Last...)
	r.Last = last[:min(len(last), keptResults)]
	return r
}

func summarize(at time.Time, r Result, state State) ResultSummary {
	c := r.Last()
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

// storedRecord and storedResult are the JSON. Keys are short because there are
// as many of them as there are candidates; what is missing is zero.
type storedRecord struct {
	Schemes   []proxyurl.Scheme `json:"c,omitempty"`
	Sources   []string          `json:"f,omitempty"`
	Country   string            `json:"y,omitempty"`
	Anonymity string            `json:"a,omitempty"`
	FirstSeen int64             `json:"n,omitempty"` // ms since the epoch, as all times
	Member    string            `json:"m,omitempty"`
	Passes    int               `json:"p,omitempty"`
	Fails     int               `json:"x,omitempty"`
	LastProbe int64             `json:"t,omitempty"`
	LastPass  int64             `json:"k,omitempty"`
	Last      []storedResult    `json:"l,omitempty"`
}

type storedResult struct {
	At         int64           `json:"t"`
	Scheme     proxyurl.Scheme `json:"u"`
	State      State           `json:"v"`
	Outcome    Outcome         `json:"o"`
	Stage      Stage           `json:"s,omitempty"`
	Judge      string          `json:"j,omitempty"`
	Capability Capability      `json:"a,omitempty"`
	Shown      []Capability    `json:"h,omitempty"`
	LatencyMS  int64           `json:"latency_ms,omitempty"`
	Detail     string          `json:"d,omitempty"`
}

// Encode returns the record as compact JSON, which DecodeRecord reads back.
func (r Record) Encode() []byte {
	s := storedRecord{Schemes: r.Schemes, Sources: r.Sources, Country: r.Country, Anonymity: r.Anonymity, FirstSeen: toMS(r.FirstSeen), Member: r.Member,
		Passes: r.Passes, Fails: r.Fails, LastProbe: toMS(r.LastProbe), LastPass: toMS(r.LastPass)}
	for _, l := range r.Last {
		s.Last = append(s.Last, storedResult{toMS(l.At), l.Scheme, l.State, l.Outcome, l.Stage, l.Judge,
			l.Capability, l.Shown, l.Latency.Milliseconds(), l.Detail})
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers always can be marshalled
	}
	return data
}

// DecodeRecord reads what Encode wrote. What it does not know it ignores, so that
// hosts of different versions can share a pool.
func DecodeRecord(data []byte) (Record, error) {
	var s storedRecord
	if err := json.Unmarshal(data, &s); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	r := Record{Schemes: s.Schemes, Sources: s.Sources, Country: s.Country, Anonymity: s.Anonymity, FirstSeen: fromMS(s.FirstSeen), Member: s.Member,
		Passes: max(s.Passes, 0), Fails: max(s.Fails, 0), LastProbe: fromMS(s.LastProbe), LastPass: fromMS(s.LastPass)}
	for _, l := range s.Last[:min(len(s.Last), keptResults)] {
		r.Last = append(r.Last, ResultSummary{fromMS(l.At), l.Scheme, l.State, l.Outcome, l.Stage, l.Judge,
			l.Capability, l.Shown, time.Duration(l.LatencyMS) * time.Millisecond, l.Detail})
	}
	return r, nil
}

func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
