package daemon

import (
	"slices"

	"evenpool/probe"
)

// leastLied is how many proxies have to break a rule of safety for one judge alone
// before that judge is doubted.
const leastLied = 5

// liars names the judges that answer controls rightly, and for whom most proxies break
// a rule of safety with whom another judge is content: such as one of two hosts behind
// the judge's name with another key, or a certificate that has expired. What rests on
// them is inconclusive in this slice. A few such proxies are hostile to that judge.
func (c *cycle) liars(items []*item) map[string]bool {
	hostile, content := map[string]int{}, map[string]int{}
	for _, it := range items {
		for _, result := range it.round.Results {
			for _, check := range result.Checks {
				switch {
				case check.Outcome == probe.OK:
					content[check.Judge]++
				case check.Outcome.Class() == probe.ClassSecurity && slices.ContainsFunc(result.Checks, func(other probe.Check) bool {
					return other.Outcome == probe.OK && other.Capability == check.Capability && other.Judge != check.Judge
				}):
					hostile[check.Judge]++
				}
			}
		}
	}
	lies := map[string]bool{}
	for judge, n := range hostile {
		if n >= leastLied && n > content[judge] {
			lies[judge] = true
			c.log.Error("a judge is not believed: for most proxies with whom another judge is content it is as if they were hostile; does each host behind its name have the same key and a valid certificate?",
				"judge", judge, "hostile", n, "content", content[judge])
		}
	}
	return lies
}
