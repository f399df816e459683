package probe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// mood is what a judge does from now on.
type mood int32

const (
	tellsTruth mood = iota
	diesNow         // for everybody
	tellsLies       // to proxies, and answers controls rightly
)

// TestH3_MembersWhenJudgesDieOrLie: a slice of members, real judges and a real proxy
// that is good; in mid-slice the judges change.
func TestH3_MembersWhenJudgesDieOrLie(t *testing.T) {
	tests := []struct {
		name   string
		judges [2]mood // in mid-slice
		dies   bool    // the proxy does, too
		void   bool    // no judge was well at both ends
		want   State
	}{
		{"all is well", [2]mood{tellsTruth, tellsTruth}, false, false, Pass},
		{"the proxy dies", [2]mood{tellsTruth, tellsTruth}, true, false, Fail},
		{"both judges die", [2]mood{diesNow, diesNow}, false, true, Inconclusive},
		{"both judges die, and the proxy", [2]mood{diesNow, diesNow}, true, true, Inconclusive},
		{"the first judge dies", [2]mood{diesNow, tellsTruth}, false, false, Inconclusive},
		{"the second judge dies", [2]mood{tellsTruth, diesNow}, false, false, Pass},
		{"the first judge dies, and the proxy", [2]mood{diesNow, tellsTruth}, true, false, Inconclusive},
		{"the first judge lies", [2]mood{tellsLies, tellsTruth}, false, false, Inconclusive},
		{"the second judge lies", [2]mood{tellsTruth, tellsLies}, false, false, Pass},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var (
				moods  [2]atomic.Int32
				broken atomic.Bool
				judges []Judge
			)
			for i, name := range []string{"a", "b"} {
				h := &judge.Handler{Key: testKey}
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch m := mood(moods[i].Load()); {
					case m == diesNow, m == tellsLies && r.Header.Get("Via") != "":
						http.Error(w, "no", http.StatusInternalServerError)
					default:
						h.ServeHTTP(w, r)
					}
				}))
				defer s.Close()
				judges = append(judges, Judge{Name: name, HTTP: mustURL(t, s.URL), Key: testKey, Allow: loopback()})
			}
			proxy := serverProxy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if broken.Load() {
					http.Error(w, "no", http.StatusBadGateway)
					return
				}
				r.Header.Set("Via", "1.1 x")
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					http.Error(w, "no", http.StatusBadGateway)
					return
				}
				defer resp.Body.Close()
				w.WriteHeader(resp.StatusCode)
				_, _ = io.Copy(w, resp.Body)
			}))
			p, rules := New(Options{}), Rules{Schemes: Schemes()[:1], Require: []Capability{HTTP}, Rise: 1, Fall: 1}
			control := func() func(string, Capability) bool {
				well := map[string]bool{}
				for _, j := range judges {
					check, _ := p.Control(t.Context(), j, HTTP)
					well[j.Name] = check.Outcome == OK
				}
				return func(judge string, _ Capability) bool { return well[judge] }
			}
			options := PlanOptions{Judges: judges, Require: rules.Require, Well: control()}
			plan, missing, err := NewPlan(options)
			if err != nil || len(missing) > 0 {
				t.Fatal(missing, err)
			}
			for i := range moods {
				moods[i].Store(int32(test.judges[i]))
			}
			broken.Store(test.dies)
			results := p.Round(t.Context(), plan, Job{Endpoint: proxy.Endpoint, Schemes: rules.Schemes, Allow: loopback(), Member: true})
			before, after := options.Well, control()
			options.Well = func(judge string, c Capability) bool { return before(judge, c) && after(judge, c) }
			if _, missing, _ = NewPlan(options); (len(missing) > 0) != test.void {
				t.Errorf("missing %v", missing)
			}
			record := Record{Member: proxyurl.URL{Scheme: proxyurl.HTTP, Endpoint: proxy.Endpoint}.String()}
			round := Round{At: time.Now(), Results: results}
			round.Verdict = rules.Judge(record, round, options.Well)
			if round.Verdict.State != test.want {
				t.Errorf("%s: %s, %v", round.Verdict.State, results[0].Outcome, round.Verdict.Reasons)
			}
			d := rules.Decide(record.After(round), round.Verdict)
			if retired := d.Action == Retire; retired != (test.want == Fail) {
				t.Errorf("decided %+v", d)
			}
		})
	}
}
