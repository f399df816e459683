package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
)

func testLogger(t *testing.T, level, format string) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log, err := newLogger(&out, level, format)
	if err != nil {
		t.Fatal(err)
	}
	return log, &out
}

// at logs as if it were so long after a fixed moment.
func at(log *slog.Logger, after time.Duration, level slog.Level, message string, attrs ...slog.Attr) {
	r := slog.NewRecord(time.Unix(1_000_000_000, 0).Add(after), level, message, 0)
	r.AddAttrs(attrs...)
	log.Handler().Handle(context.Background(), r)
}

// The same warning costs a line a minute, and none of them is lost without a word.
func TestLogGathersRepeats(t *testing.T) {
	log, out := testLogger(t, "info", "text")
	pool := log.With("pool", "web")
	for i := range 50 {
		at(pool, time.Duration(i)*time.Second, slog.LevelWarn, "redis is away", slog.String("err", "refused"))
	}
	at(pool, 50*time.Second, slog.LevelWarn, "redis is away", slog.String("err", "reset"))
	at(log, 51*time.Second, slog.LevelWarn, "redis is away", slog.String("err", "refused"))
	at(log, 52*time.Second, slog.LevelInfo, "cycle")
	at(log, 53*time.Second, slog.LevelInfo, "cycle")
	at(log, 60*time.Second, slog.LevelInfo, "cycle")
	at(pool, 61*time.Second, slog.LevelWarn, "redis is away", slog.String("err", "refused"))
	at(pool, 62*time.Second, slog.LevelWarn, "redis is away", slog.String("err", "refused"))
	tellRepeats(log)
	var got []string
	for line := range strings.Lines(out.String()) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), " ") // the time
		got = append(got, rest)
	}
	want := []string{
		`level=WARN msg="redis is away" pool=web err=refused`,
		`level=WARN msg="redis is away" pool=web err=reset`,
		`level=WARN msg="redis is away" err=refused`,
		`level=INFO msg=cycle`,
		`level=INFO msg=cycle`,
		`level=WARN msg="redis is away (repeated 49 times)" pool=web err=refused`,
		`level=INFO msg=cycle`,
		`level=WARN msg="redis is away" pool=web err=refused`,
		`level=WARN msg="redis is away (repeated 1 times)" pool=web err=refused`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Different warnings without end do not grow the daemon, and all are written.
func TestLogRepeatsAreBounded(t *testing.T) {
	log, out := testLogger(t, "info", "text")
	for i := range 3 * mostRepeats {
		at(log, 0, slog.LevelWarn, fmt.Sprint(i))
	}
	if n := len(log.Handler().(*repeats).seen); n != mostRepeats {
		t.Errorf("%d are remembered", n)
	}
	if n := strings.Count(out.String(), "\n"); n != 3*mostRepeats {
		t.Errorf("%d lines", n)
	}
}

// Whatever comes from outside as message, key or value: a line stays one line of
// printable characters, and JSON gives the very text back.
func TestP7_LogIsPrintable(t *testing.T) {
	const evil = "a\x00\x1b[2J\r\nlevel=ERROR\x7f\u0085\u009b\u200f\u202e\u2028\U000e0041\"\\ü"
	for _, format := range []string{"text", "json"} {
		log, out := testLogger(t, "debug", format)
		log.With("b", evil).WithGroup("g").Info(evil, evil, evil, "err", fmt.Errorf("%s\xff", evil), "list", []string{evil})
		line, ended := strings.CutSuffix(out.String(), "\n")
		if !ended || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%s: not one printable line: %q", format, out)
		}
		if format == "json" {
			var got struct{ Msg, B string }
			if err := json.Unmarshal([]byte(line), &got); err != nil || got.Msg != evil || got.B != evil {
				t.Errorf("%v: %+q", err, got)
			}
		}
	}
}

func TestLogLevels(t *testing.T) {
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		log, out := testLogger(t, level, "text")
		log.Debug("x")
		log.Info("x")
		log.Warn("x")
		log.Error("x")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("%s: %d lines, want %d", level, got, want)
		}
	}
}

// On the journal's stream a line begins with its priority; elsewhere never, whatever
// the environment says.
func TestLogPriorities(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		file, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		write := func(stream string) string {
			t.Setenv("JOURNAL_STREAM", stream)
			log, err := newLogger(file, "debug", format)
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Truncate(0); err != nil {
				t.Fatal(err)
			}
			file.Seek(0, 0)
			log.Debug("a")
			log.Info("b")
			log.Warn("c")
			log.Error("d")
			said, err := os.ReadFile(file.Name())
			if err != nil {
				t.Fatal(err)
			}
			return string(said)
		}
		want := "<7>msg=a\n<6>msg=b\n<4>msg=c\n<3>msg=d\n"
		if format == "json" {
			want = "<7>{\"msg\":\"a\"}\n<6>{\"msg\":\"b\"}\n<4>{\"msg\":\"c\"}\n<3>{\"msg\":\"d\"}\n"
		}
		if got := write(fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if got := write(fmt.Sprintf("%d:%d", stat.Dev, stat.Ino+1)); strings.Contains(got, "<") {
			t.Errorf("another stream has priorities: %s", got)
		}
	}
}
