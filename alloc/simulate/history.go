package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"evenpool/alloc"
)

// History is who is a member when.
type History struct {
	Members []string      // at the beginning, each once
	Steps   []Step        // in the order of time
	Length  time.Duration // the last step is not behind it
}

// Step is what was settled at one moment.
type Step struct {
	At      time.Duration // since the beginning
	Changes []Change      // in this order
}

// Change is a proxy that becomes a member, or one that is none any more.
type Change struct {
	Proxy string
	Joins bool
}

// names gives all proxies of the history, by their bytes.
func (h History) names() []string {
	names := slices.Clone(h.Members)
	for _, step := range h.Steps {
		for _, c := range step.Changes {
			names = append(names, c.Proxy)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Churn is how members come and go by themselves.
type Churn struct {
	Members      int           `json:"members"`       // how many there are, about: newcomers fill the pool up to that
	HourSurvival float64       `json:"hour_survival"` // how many of the members stay for an hour, 0 to 1
	Returning    float64       `json:"returning"`     // how many of those that go come back, 0 to 1
	Away         time.Duration `json:"-"`             // how long these are away, on average
	Every        time.Duration `json:"-"`             // how often it is settled who came and went
	Length       time.Duration `json:"-"`
	Seed         uint64        `json:"seed"`
}

// The most that a model or the events of a pool may be.
const (
	maxMembers = alloc.EmbeddedMaxMembers // what a scratch pool is for
	maxSteps   = 100_000
)

func (c Churn) check() error {
	switch {
	case c.Members < 1 || c.Members > maxMembers:
		return fmt.Errorf("%d members: want 1 to %d", c.Members, maxMembers)
	case !(c.HourSurvival > 0 && c.HourSurvival <= 1):
		return fmt.Errorf("an hour's survival of %g: want a share more than 0 and up to 1, such as 0.15", c.HourSurvival)
	case !(c.Returning >= 0 && c.Returning <= 1):
		return fmt.Errorf("a share of %g that comes back: want 0 to 1", c.Returning)
	case c.Away < 0:
		return fmt.Errorf("%s away: want no less than 0", c.Away)
	case c.Every < time.Second || c.Every > c.Length:
		return fmt.Errorf("settled every %s: want 1s to the whole time, %s", c.Every, c.Length)
	case c.Length/c.Every > maxSteps:
		return fmt.Errorf("settled every %s for %s: that is more than %d times", c.Every, c.Length, maxSteps)
	}
	return nil
}

// History draws a history: the same for the same Churn. Each member goes at any time with the same
// chance, so that HourSurvival of them are there an hour later.
func (c Churn) History() (History, error) {
	if err := c.check(); err != nil {
		return History{}, err
	}
	random := rand.New(rand.NewPCG(c.Seed, 0))
	known := map[string]bool{}
	newcomer := func() string {
		for {
			name := fmt.Sprintf("http://198.%d.%d.%d:%d", 18+random.IntN(2), random.IntN(256), random.IntN(256), 1024+random.IntN(64512))
			if !known[name] {
				known[name] = true
				return name
			}
		}
	}
	h := History{Length: c.Length}
	for range c.Members {
		h.Members = append(h.Members, newcomer())
	}
	type away struct {
		name string
		back time.Duration
	}
	members := slices.Clone(h.Members)
	var gone []away
	stays := math.Pow(c.HourSurvival, c.Every.Hours())
	for at := c.Every; at < c.Length; at += c.Every {
		step := Step{At: at}
		join := func(name string) {
			step.Changes = append(step.Changes, Change{name, true})
			members = append(members, name)
		}
		members = slices.DeleteFunc(members, func(name string) bool {
			if random.Float64() < stays {
				return false
			}
			step.Changes = append(step.Changes, Change{name, false})
			if random.Float64() < c.Returning {
				// In the next step at the earliest.
				gone = append(gone, away{name, at + max(1, time.Duration(random.ExpFloat64()*float64(c.Away)))})
			}
			return true
		})
		gone = slices.DeleteFunc(gone, func(a away) bool {
			if a.back > at {
				return false
			}
			join(a.name)
			return true
		})
		for len(members) < c.Members {
			join(newcomer())
		}
		if len(step.Changes) > 0 {
			h.Steps = append(h.Steps, step)
		}
	}
	return h, nil
}

// FromEvents gives the history of a pool from a moment on until now: of its members and its events,
// the newest first, as the pool gives them. What was settled within one stretch of `every` is one
// step. Events from before are passed over.
func FromEvents(members []alloc.Allocation, events []alloc.Event, from, now time.Time, every time.Duration) (History, error) {
	h := History{Length: now.Sub(from)}
	if every < time.Second || h.Length < every || h.Length/every > maxSteps {
		return h, fmt.Errorf("settled every %s for %s: want 1s to the whole time, and at most %d times", every, h.Length, maxSteps)
	}
	events = slices.DeleteFunc(slices.Clone(events), func(e alloc.Event) bool { return e.At.Before(from) || e.At.After(now) })
	// A proxy is one by its endpoint, under whatever URL it is a member.
	endpoint := map[string]string{}
	is := map[string]bool{} // endpoint -> a member at the beginning, once all is undone
	for _, e := range events {
		endpoint[e.Member], endpoint[e.Previous] = e.Endpoint, e.Endpoint
	}
	for _, m := range members {
		is[cmp.Or(endpoint[m.Member], m.Member)] = true
	}
	for _, e := range events {
		switch e.Change {
		case alloc.ChangeAdmitted:
			delete(is, e.Endpoint)
		case alloc.ChangeRetired:
			is[e.Endpoint] = true
		}
	}
	for name := range is {
		h.Members = append(h.Members, name)
	}
	slices.Sort(h.Members)
	for _, e := range slices.Backward(events) {
		joins := e.Change == alloc.ChangeAdmitted
		if e.Change == alloc.ChangeMoved || is[e.Endpoint] == joins {
			continue // it keeps its count; or others had their hands in the set
		}
		is[e.Endpoint] = joins
		at := min(h.Length, (e.At.Sub(from)+every-1)/every*every)
		if len(h.Steps) == 0 || h.Steps[len(h.Steps)-1].At < at {
			h.Steps = append(h.Steps, Step{At: at})
		}
		last := &h.Steps[len(h.Steps)-1]
		last.Changes = append(last.Changes, Change{e.Endpoint, joins})
	}
	if len(h.Steps) == 0 {
		return h, errors.New("nobody came or went")
	}
	return h, nil
}
