package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"unicode"
)

// newLogger returns the daemon's log on w: text or json, from a level on. Warnings that
// repeat are gathered (log_repeats.go). Where w is the journal, each line begins with
// its priority, and time and level are left to the journal.
func newLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, usageError("--log-level %s: unknown level; use debug, info, warn or error", level)
	}
	journal := isJournal(w, os.Getenv("JOURNAL_STREAM"))
	options := slog.HandlerOptions{Level: least}
	if journal {
		options.ReplaceAttr = withoutTimeAndLevel
	}
	out := &logWriter{to: w, journal: journal}
	var lines slog.Handler
	switch format {
	case "text":
		lines = slog.NewTextHandler(out, &options)
	case "json":
		lines = slog.NewJSONHandler(out, &options)
		out.json = true
	default:
		return nil, usageError("--log-format %s: unknown format; use text or json", format)
	}
	return slog.New(newRepeats(&logHandler{lines, out})), nil
}

// isJournal says whether w is the stream that systemd has connected to the journal;
// stream is what JOURNAL_STREAM says of it, "DEVICE:INODE".
func isJournal(w io.Writer, stream string) bool {
	file, ok := w.(*os.File)
	if !ok || stream == "" {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

func withoutTimeAndLevel(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// logHandler tells its writer the level of each line.
type logHandler struct {
	slog.Handler
	out *logWriter
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	h.out.level = r.Level
	return h.Handler.Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.out}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.out}
}

// logWriter writes lines, each one Write, under logHandler's lock.
type logWriter struct {
	to            io.Writer
	journal, json bool

	mu    sync.Mutex
	level slog.Level // of the line that comes
}

func (w *logWriter) Write(line []byte) (int, error) {
	written := len(line)
	if w.json {
		line = plainJSON(line)
	}
	if w.journal {
		line = append(fmt.Appendf(nil, "<%d>", priority(w.level)), line...)
	}
	if _, err := w.to.Write(line); err != nil {
		return 0, err
	}
	return written, nil
}

// priority is that of syslog(3).
func priority(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}

// plainJSON escapes what encoding/json writes as it is and a terminal would obey, such
// as C1 controls and bidirectional ones; they stand in texts only.
func plainJSON(line []byte) []byte {
	plain := make([]byte, 0, len(line))
	for _, r := range string(line) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			plain = append(plain, string(r)...)
		case r > 0xffff:
			r -= 0x10000
			plain = fmt.Appendf(plain, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			plain = fmt.Appendf(plain, `\u%04x`, r)
		}
	}
	return plain
}
