package config

import (
	"strings"
	"testing"
	"time"
)

func TestScheduleInterval(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		"* * * * *":      time.Minute,
		"*/5 * * * *":    5 * time.Minute,
		"*/7 * * * *":    4 * time.Minute, // from minute 56 to 0
		"0,1 6 * * *":    time.Minute,
		"0 6 * * *":      24 * time.Hour,
		"0 6 * * mon,we": 0, // not a weekday: refused
		"0 6 * * 1,3":    48 * time.Hour,
		"@hourly":        time.Hour,
		"@every 10s":     10 * time.Second,
		"0 0 29 2 *":     4*365*24*time.Hour + 24*time.Hour,
	} {
		s, err := ParseSchedule(spec)
		if s.Interval() != want || (err != nil) != (want == 0) {
			t.Errorf("%s: got %s, %v; want %s", spec, s.Interval(), err, want)
		}
	}
}

// No text that reaches it is known to make the parser panic; one that is refused
// before it shows that a panic would be an error.
func TestS2_PanicOfTheParserIsAnError(t *testing.T) {
	s, err := parseCron("TZ=UTC")
	if s != nil || err == nil || !strings.HasPrefix(err.Error(), "the cron parser gives up on it (") {
		t.Errorf("got %v, %v", s, err)
	}
}

// Wherever the host is, and across its daylight saving, runs are in UTC.
func TestS3_SchedulesAreUTC(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zones here: ", err)
	}
	s, err := ParseSchedule("*/30 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 10, 25, 0, 0, 0, 0, berlin) // the clock goes back at 3:00
	for range 12 {
		next := s.Next(at)
		if gap := next.Sub(at); gap != 30*time.Minute || next.Location() != time.UTC {
			t.Errorf("after %s comes %s, %s later", at, next, gap)
		}
		at = next.In(berlin)
	}
	s, err = ParseSchedule("0 6 * * *")
	if err != nil {
		t.Fatal(err)
	}
	if next := s.Next(at); next.Hour() != 6 || next.Location() != time.UTC {
		t.Errorf("6 o'clock is %s", next)
	}
}

// Whatever the parser does with a text, a schedule is refused or sound.
func FuzzParseSchedule(f *testing.F) {
	for _, spec := range []string{"*/5 * * * *", "@every 10s", "@every -5m", "TZ=UTC", "CRON_TZ=UTC 0 0 * * *", "0 0 31 2 *", ",", "1-2-3 * * * *", "*/0 * * * *", "? ? ? ? ?", "@every 9223372036s"} {
		f.Add(spec)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 1, time.UTC)
	f.Fuzz(func(t *testing.T, spec string) {
		s, err := ParseSchedule(spec)
		if err != nil {
			if s != (Schedule{}) || err.Error() == "" {
				t.Errorf("%q: %v beside %v", spec, s, err)
			}
			return
		}
		if s.Interval() < shortestInterval || strings.Contains(spec, "TZ=") {
			t.Errorf("%q is accepted, with an interval of %s", spec, s.Interval())
		}
		if again, err := ParseSchedule(s.String()); err != nil || again.String() != s.String() || again.Interval() != s.Interval() {
			t.Errorf("%q, written as %q, is another schedule: %v", spec, s, err)
		}
		if next := s.Next(from); !next.After(from) {
			t.Errorf("%q: the run after %s is %s", spec, from, next)
		}
	})
}
