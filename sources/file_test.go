package sources

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quiet is for servers whose clients are meant to hang up on them.
func quiet() *log.Logger { return log.New(discard{}, "", 0) }

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFetchOfAFile(t *testing.T) {
	path := write(t, "my list.txt", listOf(3))
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"file://" + strings.ReplaceAll(path, " ", "%20"),
		"file://localhost" + path,
		"file://" + link,
	} {
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source(url))
		if err != nil || len(l.Candidates) != 3 {
			t.Errorf("%s: %d candidates, %v", url, len(l.Candidates), err)
		}
	}
}

func TestL7_OnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                          "fetch web: open " + dir + ": not a regular file",
		pipe:                         "fetch web: open " + pipe + ": not a regular file", // and nobody writes to it
		"/dev/zero":                  "fetch web: open /dev/zero: not a regular file",
		"/dev/null":                  "fetch web: open /dev/null: not a regular file",
		filepath.Join(dir, "absent"): "fetch web: open " + filepath.Join(dir, "absent") + ": no such file or directory",
	} {
		start := time.Now()
		_, err := NewFetcher(Options{}).Fetch(t.Context(), source("file://"+path))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("%s: blocked", path)
		}
	}
}

func TestL7_ALargeFileIsNotBegun(t *testing.T) {
	path := write(t, "large.txt", "")
	if err := os.Truncate(path, 16<<20+1); err != nil {
		t.Fatal(err)
	}
	_, err := NewFetcher(Options{}).Fetch(t.Context(), source("file://"+path))
	if !errors.Is(err, ErrTooLarge) || err.Error() != "fetch web: the list is too large: 16777217 bytes, at most 16777216" {
		t.Errorf("%v", err)
	}
}

// A file that grows while it is read ends at the limit like any other stream.
func TestL7_AFileThatGrows(t *testing.T) {
	path := write(t, "growing.txt", "1.2.3.4:80\n")
	r, err := openFile(t.Context(), path, 20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.WriteFile(path, []byte(listOf(10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(r, source(""), Limits{MaxBytes: 20}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
}

func TestAFileEndsWithItsContext(t *testing.T) {
	stopping := errors.New("stopping")
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err := openFile(ctx, write(t, "list.txt", listOf(3)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cancel(stopping)
	if _, err := Parse(r, source(""), Limits{}); !errors.Is(err, stopping) {
		t.Errorf("%v, want the cause", err)
	}
}
