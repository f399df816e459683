package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// What a worker may say of a proxy.
const (
	ReportOK      = "ok"      // it did its work
	ReportFailed  = "failed"  // it did not
	ReportBlocked = "blocked" // it did, and the target would not have it
)

// Report is a worker's word on a proxy, in POST /v1/pools/{pool}/reports.
type Report struct {
	Proxy   string // as it was allocated, or as it is shown: with *** for the password
	Outcome string // ReportOK, ReportFailed or ReportBlocked
	// Target is by which target it is blocked: a host's name or a word, 1 to 64 of letters, digits,
	// '.', '_' and '-'. It may be left out.
	Target string
}

// Reported answers a Report.
type Reported struct {
	// Member says whether the proxy is a member; of others nothing is kept.
	Member bool `json:"member"`
	// ProbeDue says that the report had the proxy's next probe brought forward. Once a minute at most
	// anything does.
	ProbeDue bool `json:"probe_due"`
}

// Reports is what workers said of a member since it became one. Of more than two hundred, the older
// ones count for less.
type Reports struct {
	OK      int64     `json:"ok"`
	Failed  int64     `json:"failed"`
	Blocked int64     `json:"blocked"`
	LastAt  time.Time `json:"last_at"`
	// BlockedBy counts those that named a target, of up to 8 targets.
	BlockedBy Counts `json:"blocked_by"`
}

// Report says how a proxy did. It never retires a proxy by itself: probes do. Workers need not
// report at all.
func (c *Client) Report(ctx context.Context, pool string, r Report) (Reported, error) {
	query := url.Values{"proxy": {r.Proxy}, "outcome": {r.Outcome}}
	if r.Target != "" {
		query.Set("target", r.Target)
	}
	var answer Reported
	err := c.doPool(ctx, http.MethodPost, pool, "/reports", query, &answer)
	return answer, err
}
