package config

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	// shortestInterval is the least time between two runs of a schedule.
	shortestInterval = 10 * time.Second
	// longestInterval is how far ahead a schedule must have a run: it is as far
	// as cron looks, and a longer one is a mistake.
	longestInterval = 5 * 365 * 24 * time.Hour
)

// Schedule is when something runs, in UTC: 5-field cron, a descriptor such as
// "@hourly", or "@every 90s". The zero value never runs. It is a value, safe for
// concurrent use.
type Schedule struct {
	spec     string
	cron     cron.Schedule
	interval time.Duration
}

// ParseSchedule reads a schedule. Errors say what to write instead.
func ParseSchedule(spec string) (Schedule, error) {
	s := Schedule{spec: strings.Join(strings.Fields(spec), " ")}
	switch {
	case s.spec == "":
		return Schedule{}, errors.New("is empty; write 5 fields (minute hour day month weekday)")
	case strings.Contains(s.spec, "TZ="):
		return Schedule{}, errors.New("schedules are in UTC and take no time zone; leave TZ= out and write the hours in UTC")
	case strings.HasPrefix(s.spec, "@every"):
		d, err := every(s.spec)
		if err != nil {
			return Schedule{}, err
		}
		s.cron, s.interval = cron.Every(d), d
		return s, nil
	case !strings.HasPrefix(s.spec, "@") && strings.Count(s.spec, " ") != 4:
		return Schedule{}, errors.New("expected 5 fields (minute hour day month weekday)")
	}
	parsed, err := parseCron(s.spec)
	if err != nil {
		return Schedule{}, err
	}
	s.cron = parsed
	if s.interval = shortest(parsed); s.interval == 0 {
		return Schedule{}, errors.New("has no run within 5 years; is the day in the month?")
	}
	return s, nil
}

// every reads "@every DURATION". cron itself would turn a negative one into a
// second, and cut fractions of a second off, without a word.
func every(spec string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(strings.TrimPrefix(spec, "@every")))
	switch {
	case err != nil:
		return 0, errors.New("expected @every and a duration with a unit, such as @every 90s")
	case d < shortestInterval:
		return 0, fmt.Errorf("runs too often; write @every %s or longer", shortestInterval)
	case d > longestInterval:
		return 0, errors.New("has no run within 5 years; write a shorter duration")
	case d%time.Second != 0:
		return 0, errors.New("expected whole seconds")
	}
	return d, nil
}

// parseCron is cron's parser with its panics turned into errors: v3.0.1 has one
// for a TZ= without a space, and may have others. What it returns takes its zone
// from the time that it is asked with.
func parseCron(spec string) (s cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the cron parser gives up on it (%v)", p)
		}
	}()
	s, err = cron.ParseStandard(spec)
	if err != nil && strings.HasPrefix(spec, "@") {
		return nil, errors.New("expected @hourly, @daily, @weekly, @monthly, @yearly, @every 90s, or 5 fields (minute hour day month weekday)")
	}
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), ": strconv.")
		what = strings.Replace(what, "failed to parse int from", "not a number:", 1)
		return nil, fmt.Errorf("cron does not take it: %s", what)
	}
	return s, nil
}

// shortest returns the least time between two runs of s, found by walking its
// runs from the start of a leap year; 0 if it has no run within 5 years. The walk
// starts at a fixed time so that a file is right or wrong whatever the day.
func shortest(s cron.Schedule) time.Duration {
	const runs = 400 // more than a year of a daily schedule
	last := s.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Second))
	if last.IsZero() {
		return 0
	}
	least := longestInterval
	for range runs {
		next := s.Next(last)
		if next.IsZero() {
			break
		}
		least, last = min(least, next.Sub(last)), next
	}
	return least
}

// String returns the schedule as it was written, with single spaces.
func (s Schedule) String() string { return s.spec }

// Next returns the first run after t, in UTC; the zero time if there is none
// within 5 years. It has cron.Schedule's shape, so that a Schedule can be given
// to a cron.
func (s Schedule) Next(t time.Time) time.Time {
	if s.cron == nil {
		return time.Time{}
	}
	return s.cron.Next(t.UTC())
}

// Interval returns the least time between two runs.
func (s Schedule) Interval() time.Duration { return s.interval }
