package daemon

import (
	"context"
	"strings"
	"sync"
	"time"

	"evenpool/daemon/api"
	"evenpool/probe"
)

// controls are the answers of the judges to the control probes.
type controls map[string]probe.Check

func controlKey(judge string, c probe.Capability) string { return judge + " " + string(c) }

// well says whether a judge was. What is left of targets' answers stands by itself.
func (cs controls) well(judge string, c probe.Capability) bool {
	return strings.HasPrefix(judge, probe.TargetName("")) || cs[controlKey(judge, c)].Outcome == probe.OK
}

// control asks every judge directly for all that it is needed for, and the targets
// that are to be asked.
func (c *cycle) control(ctx context.Context) controls {
	var (
		mu     sync.Mutex
		group  sync.WaitGroup
		result = controls{}
		list   []api.Judge
	)
	for _, judge := range c.judges {
		for _, capability := range c.rules.Require {
			if !judge.Shows(capability) {
				continue
			}
			c.controlled.Add(1)
			group.Go(func() {
				check, seen := c.prober.Control(ctx, judge, capability)
				mu.Lock()
				defer mu.Unlock()
				c.seen.Add(seen)
				result[controlKey(judge.Name, capability)] = check
			})
		}
	}
	for _, t := range c.targets {
		group.Go(func() { t.control(ctx, c.prober, c.log) })
	}
	group.Wait()
	if ctx.Err() != nil {
		return result // cancelled: no word on the judges
	}
	now := time.Now().UTC()
	for _, judge := range c.judges {
		for _, capability := range c.rules.Require {
			if check, ok := result[controlKey(judge.Name, capability)]; ok {
				list = append(list, api.Judge{Name: judge.Name, Capability: string(capability), Well: check.Outcome == probe.OK,
					Outcome: string(check.Outcome), Detail: check.Detail, CheckedAt: now})
			}
		}
	}
	c.noteControls(list)
	return result
}

// noteControls keeps the judges' state for status and says each change once.
func (p *pool) noteControls(list []api.Judge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, now := range list {
		was := true
		for _, before := range p.controls {
			if before.Name == now.Name && before.Capability == now.Capability {
				was = before.Well
			}
		}
		if was && !now.Well {
			p.log.Error("a judge does not answer rightly; what rests on it is not decided", "judge", now.Name,
				"capability", now.Capability, "outcome", now.Outcome, "detail", now.Detail)
		} else if !was && now.Well {
			p.log.Info("a judge answers rightly again", "judge", now.Name, "capability", now.Capability)
		}
	}
	p.controls = list
}
