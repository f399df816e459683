package sources

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBadInput_Files(t *testing.T) {
	replace := func(make func(path string) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := func(text string) func(t *testing.T, path string) {
		return replace(func(path string) error { return os.WriteFile(path, []byte(text), 0o600) })
	}
	for _, c := range []struct {
		name string
		turn func(t *testing.T, path string)
		want any
	}{
		{"a FIFO", replace(func(path string) error { return syscall.Mkfifo(path, 0o600) }), errNotRegular},
		{"dev zero", replace(func(path string) error { return os.Symlink("/dev/zero", path) }), errNotRegular},
		{"dev null", replace(func(path string) error { return os.Symlink("/dev/null", path) }), errNotRegular},
		{"a directory", replace(func(path string) error { return os.Mkdir(path, 0o700) }), errNotRegular},
		{"a socket", replace(func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}), syscall.ENXIO},
		{"a loop of links", replace(func(path string) error { return os.Symlink(path, path) }), syscall.ELOOP},
		{"nothing", func(t *testing.T, path string) { os.Remove(path) }, os.ErrNotExist},
		{"a line of 1 GB", text(""), ErrEmpty},
		{"an empty file", text(""), ErrEmpty},
		{"one newline", text("\n"), ErrEmpty},
		{"a page", text("<!doctype html>\n<p>\n"), ErrMarkup},
		{"a thousand lines of Array", text(strings.Repeat("Array\n", 1000)), ErrUnreadable},
		{"cut to a tenth", text(listOf(10)), ErrShrunk},
		{"gzip cut", text(pack(t, "gzip", strings.Repeat(listOf(100), 10))[:200]), io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "list", listOf(100))
			src := source("file://" + path)
			opts := Options{Dir: t.TempDir(), RetryWait: time.Millisecond, Timeout: 10 * time.Second}
			once(t, opts, src)
			c.turn(t, path)
			if c.name == "a line of 1 GB" {
				if err := os.Truncate(path, 1<<30); err != nil {
					t.Fatal(err)
				}
				c.want = ErrTooLarge
			}
			stays(t, opts, src, c.want)
		})
	}
}

// A file that grows while it is read: what counts is what is read, not what its
// size was.
func TestBadInput_AFileThatGrows(t *testing.T) {
	path := write(t, "growing", listOf(100))
	src := source("file://" + path)
	opts := Options{Dir: t.TempDir(), Timeout: 10 * time.Second}
	once(t, opts, src)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	open, err := NewFetcher(opts).opener(src, validators{})
	if err != nil {
		t.Fatal(err)
	}
	body, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	goesOn(file, strings.Repeat("1.2.3.4:8080\n", 5000), 17<<20) // behind the look at its size
	text, err := decode(body, nil, "", 16<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseAll(text, src, Limits{}.orDefault()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v, want ErrTooLarge", err)
	}
	stays(t, opts, src, ErrTooLarge)
}

// Where a source's max_bytes lets a line of 1 GB through, it costs time and no
// memory.
func TestBadInput_ALineOf1GBWithinTheLimit(t *testing.T) {
	path := write(t, "list", "1.2.3.4:8080\n")
	if err := os.Truncate(path, 1<<30); err != nil {
		t.Fatal(err)
	}
	src := source("file://" + path)
	src.MaxBytes, src.Timeout = 2<<30, time.Minute
	var l List
	peak := peakHeap(func() { l, _ = NewFetcher(Options{}).Fetch(t.Context(), src) })
	if l.Records != 2 || l.Rejects[ReasonLineTooLong] != 1 {
		t.Errorf("%d records, %v", l.Records, l.Rejects)
	}
	if peak > 32<<20 {
		t.Errorf("%d MiB more memory at the peak", peak>>20)
	}
}
