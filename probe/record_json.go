package probe

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	"evenpool/sources/proxyurl"
)

// storedRecord and what it holds are the JSON. Keys are short because there are
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
	Offended  int64             `json:"q,omitempty"`
	Last      []storedResult    `json:"l,omitempty"`
	Proven    *storedProven     `json:"w,omitempty"`
	Rounds    []storedRound     `json:"r,omitempty"`
	Exits     []storedExit      `json:"e,omitempty"`
	Targets   []storedTarget    `json:"g,omitempty"`
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

type storedProven struct {
	At        int64           `json:"t"`
	Scheme    proxyurl.Scheme `json:"u,omitempty"`
	Found     []Capability    `json:"h,omitempty"`
	Anonymity Anonymity       `json:"a,omitempty"`
	Verified  bool            `json:"v,omitempty"`
	Judges    int             `json:"j,omitempty"`
}

// storedRound is [at] for one that did not work, else connect, first byte and total
// in ms, the changes of the exit, and at. An earlier version stored no at.
type storedRound []int64

type storedExit struct {
	Addr    netip.Addr `json:"i"`
	Country string     `json:"c,omitempty"`
	ASN     uint32     `json:"n,omitempty"`
	Since   int64      `json:"s"`
	Until   int64      `json:"t"`
}

type storedTarget struct {
	Name    string  `json:"n"`
	At      int64   `json:"t"`
	Outcome Outcome `json:"o"`
}

// Encode returns the record as compact JSON, which DecodeRecord reads back.
func (r Record) Encode() []byte {
	s := storedRecord{Schemes: r.Schemes, Sources: r.Sources, Country: r.Country, Anonymity: r.Anonymity, FirstSeen: toMS(r.FirstSeen), Member: r.Member,
		Passes: r.Passes, Fails: r.Fails, LastProbe: toMS(r.LastProbe), LastPass: toMS(r.LastPass), Offended: toMS(r.Offended)}
	for _, l := range r.Last {
		s.Last = append(s.Last, storedResult{toMS(l.At), l.Scheme, l.State, l.Outcome, l.Stage, l.Judge,
			l.Capability, l.Shown, l.Latency.Milliseconds(), l.Detail})
	}
	if w := r.Proven; !w.At.IsZero() {
		s.Proven = &storedProven{toMS(w.At), w.Scheme, w.Found.List(), w.Anonymity, w.Verified, w.Judges}
	}
	for _, round := range r.Rounds {
		stored := storedRound{}
		if round.Worked {
			stored = append(stored, round.Connect.Milliseconds(), round.FirstByte.Milliseconds(), round.Total.Milliseconds(), int64(round.ExitChanges))
		}
		s.Rounds = append(s.Rounds, append(stored, toMS(round.At)))
	}
	for _, e := range r.Exits {
		s.Exits = append(s.Exits, storedExit{e.Addr, e.Place.Country, e.Place.ASN, toMS(e.Since), toMS(e.Until)})
	}
	for _, t := range r.Targets {
		s.Targets = append(s.Targets, storedTarget{t.Name, toMS(t.At), t.Outcome})
	}
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings and numbers always can be marshalled
	}
	return data
}

// DecodeRecord reads what Encode wrote, here or in an earlier version. What it does
// not know it ignores, so that hosts of different versions can share a pool; what
// can be no more than a mistake is left out. What it returns is within the limits
// that records keep.
func DecodeRecord(data []byte) (Record, error) {
	var s storedRecord
	if err := json.Unmarshal(data, &s); err != nil {
		return Record{}, fmt.Errorf("record: %w", err)
	}
	r := Record{Schemes: s.Schemes, Sources: s.Sources, Country: s.Country, Anonymity: s.Anonymity, FirstSeen: fromMS(s.FirstSeen), Member: s.Member,
		Passes: max(s.Passes, 0), Fails: max(s.Fails, 0), LastProbe: fromMS(s.LastProbe), LastPass: fromMS(s.LastPass), Offended: fromMS(s.Offended)}
	for _, l := range s.Last[:min(len(s.Last), keptResults)] {
		r.Last = append(r.Last, ResultSummary{fromMS(l.At), l.Scheme, l.State, l.Outcome, l.Stage, l.Judge,
			l.Capability, l.Shown, duration(l.LatencyMS), l.Detail})
	}
	if w := s.Proven; w != nil && w.At != 0 {
		r.Proven = Proven{fromMS(w.At), w.Scheme, NewCapabilitySet(w.Found...), w.Anonymity, w.Verified, max(w.Judges, 0)}
	}
	for _, stored := range s.Rounds[:min(len(s.Rounds), keptRounds)] {
		var round RoundSummary
		if len(stored) >= 3 {
			round = RoundSummary{Worked: true, Connect: duration(stored[0]), FirstByte: duration(stored[1]), Total: duration(stored[2])}
		}
		if len(stored) > 3 {
			round.ExitChanges = int(min(max(stored[3], 0), 1000))
		}
		if len(stored) == 1 || len(stored) > 4 {
			round.At = fromMS(stored[len(stored)-1])
		}
		r.Rounds = append(r.Rounds, round)
	}
	for _, e := range s.Exits[:min(len(s.Exits), keptExits)] {
		if e.Addr.IsValid() && e.Addr.Zone() == "" {
			r.Exits = append(r.Exits, Exit{e.Addr.Unmap(), Place{e.Country, e.ASN}, fromMS(e.Since), fromMS(e.Until)})
		}
	}
	for _, t := range s.Targets {
		if _, known := r.target(t.Name); !known {
			r.Targets = withTarget(r.Targets, TargetResult{t.Name, fromMS(t.At), t.Outcome})
		}
	}
	return r, nil
}

// duration is a number of ms that came from outside: from 0 to an hour.
func duration(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), time.Hour.Milliseconds())) * time.Millisecond
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
