package alloc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Report is a worker's word on a member.
type Report struct {
	Member   string // its URL
	Endpoint string
	Outcome  string // one of ReportOutcomes
	Target   string // by which target it is blocked, see ParseReportTarget; "" is not told
}

// ReportOutcomes is the closed list of what a worker may say.
func ReportOutcomes() []string { return []string{"ok", "failed", "blocked"} }

// ParseReportTarget checks the name of a target in a report: a host name or a word, 1 to 64 of
// letters, digits, '.', '_' and '-'.
func ParseReportTarget(text string) (string, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`).MatchString(text) {
		return "", fmt.Errorf("%.80q is no target; write a host's name or a word, 1 to 64 of letters, digits, '.', '_' and '-'", text)
	}
	return text, nil
}

// reportPause is how long a proxy's probes are not brought forward again: whoever reports without end
// cannot have it probed more often.
const reportPause = time.Minute

// Reported is what became of a report.
type Reported struct {
	Member  bool // it is one; else nothing was done
	Forward bool // its next probe is due now
}

// Report takes down a worker's word on a member. A failure brings its next probe forward, once a
// minute at most whoever reports; nobody is retired by it.
func (p *Pool) Report(ctx context.Context, r Report) (Reported, error) {
	reply, err := p.run(ctx, p.store.scripts.report, []string{p.keys.eligible, p.keys.reports, p.keys.due},
		r.Member, r.Endpoint, r.Outcome, r.Target, p.store.now().UnixMilli(), reportPause.Milliseconds())
	if err != nil {
		return Reported{}, err
	}
	return Reported{Member: reply != "none", Forward: reply == "forward"}, nil
}

// Reports is what workers said of a member since it became one. Of more than two hundred, older
// ones count for less.
type Reports struct {
	OK, Failed, Blocked int64
	Last                time.Time        // zero: nobody said anything
	BlockedBy           map[string]int64 // up to 8 targets; nil for none
}

// Reports gives what workers said of an endpoint.
func (p *Pool) Reports(ctx context.Context, endpoint string) (Reports, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	text, err := p.store.client.HGet(ctx, p.keys.reports, endpoint).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return Reports{}, fmt.Errorf("reports in pool %s: %w", p.name, readError(err))
	}
	return parseReports(text), nil
}

// parseReports reads what the script wrote; anything else is as nothing.
func parseReports(text string) (r Reports) {
	fields := strings.Split(text, "|")
	if len(fields) != 6 {
		return Reports{}
	}
	r.OK, r.Failed, r.Blocked = parseCount(fields[0]), parseCount(fields[1]), parseCount(fields[2])
	r.Last = time.UnixMilli(parseCount(fields[3])).UTC()
	for pair := range strings.SplitSeq(fields[5], ",") {
		name, count, found := strings.Cut(pair, "=")
		n, err := strconv.ParseInt(count, 10, 64)
		if !found || err != nil {
			continue
		}
		if r.BlockedBy == nil {
			r.BlockedBy = map[string]int64{}
		}
		r.BlockedBy[name] = n
	}
	return r
}
