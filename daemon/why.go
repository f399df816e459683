package daemon

import (
	"evenpool/daemon/api"
	"evenpool/probe"
)

// showSeen writes what a record has of rounds before the last.
func showSeen(why *api.Why, rec probe.Record) {
	if proven := rec.Proven; !proven.At.IsZero() {
		why.Proven = &api.Proven{At: proven.At, Anonymity: string(proven.Anonymity), Verified: proven.Verified, Judges: proven.Judges}
		for _, c := range proven.Found.List() {
			why.Proven.Capabilities = append(why.Proven.Capabilities, string(c))
		}
	}
	for _, e := range rec.Exits {
		why.Exits = append(why.Exits, api.Exit{Address: e.Addr.String(), Country: e.Place.Country, ASN: e.Place.ASN, Since: e.Since, Until: e.Until})
	}
	for _, t := range rec.Targets {
		why.Targets = append(why.Targets, api.TargetResult{Target: t.Name, At: t.At, Outcome: string(t.Outcome)})
	}
	for _, r := range rec.Rounds {
		why.Rounds = append(why.Rounds, api.Round{At: r.At, Worked: r.Worked, ConnectMS: r.Connect.Milliseconds(),
			FirstByteMS: r.FirstByte.Milliseconds(), TotalMS: r.Total.Milliseconds(), ExitChanges: r.ExitChanges})
	}
}
