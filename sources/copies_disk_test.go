package sources

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A disk that takes no copy costs the copy: what was read is given out, and is
// kept in memory for as long as the process lasts.
func TestL6_AFolderThatCannotBeWrittenCostsNoList(t *testing.T) {
	p := &page{}
	src := source(serve(t, p))
	dir := filepath.Join(write(t, "file", ""), "sources") // not to be made: its parent is a file
	f := NewFetcher(Options{Dir: dir})
	p.set(200, listOf(100))
	l, err := f.Fetch(t.Context(), src)
	if err != nil || len(l.Candidates) != 100 || l.Stale || !errors.Is(l.CopyErr, syscall.ENOTDIR) {
		t.Errorf("%d candidates, %v, %v; want ENOTDIR as the CopyErr", len(l.Candidates), err, l.CopyErr)
	}
	p.set(404, "")
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 100 || !l.Stale {
		t.Errorf("afterwards: %d candidates, %v", len(l.Candidates), err)
	}
}

// A file system of its own, and a small one, takes a process of its own.
func TestL6_AFullDiskCostsNoList(t *testing.T) {
	if dir := os.Getenv("EVENPOOL_TEST_FULL_DISK"); dir != "" {
		onAFullDisk(t, dir)
		return
	}
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestL6_AFullDiskCostsNoList$", "-test.v")
	command.Env = append(os.Environ(), "EVENPOOL_TEST_FULL_DISK="+t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := command.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("no namespaces here: %v", err)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
	}
}

func onAFullDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	p := &page{}
	src := source(serve(t, p))
	f := NewFetcher(Options{Dir: dir})
	p.set(200, listOf(90))
	if l, err := f.Fetch(t.Context(), src); err != nil || l.CopyErr != nil {
		t.Fatalf("while there is room: %v, %v", err, l.CopyErr)
	}
	p.set(200, listOf(100)+strings.Repeat("# as large as the disk\n", 10_000))
	l, err := f.Fetch(t.Context(), src)
	if err != nil || len(l.Candidates) != 100 || l.Stale || !errors.Is(l.CopyErr, syscall.ENOSPC) {
		t.Errorf("%d candidates, %v, %v; want ENOSPC as the CopyErr", len(l.Candidates), err, l.CopyErr)
	}
	if left := filesIn(t, dir, ".tmp"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	p.set(404, "")
	if l, err := f.Fetch(t.Context(), src); err != nil || len(l.Candidates) != 100 || !l.Stale {
		t.Errorf("in this process: %d candidates, %v", len(l.Candidates), err)
	}
	if l, ok := NewFetcher(Options{Dir: dir}).Load(src); !ok || len(l.Candidates) != 90 {
		t.Errorf("in the next: %d candidates, %v", len(l.Candidates), l.CopyErr)
	}
	p.set(200, listOf(95))
	if l, err := f.Fetch(t.Context(), src); err != nil || l.CopyErr != nil {
		t.Errorf("room again: %v, %v", err, l.CopyErr)
	}
	if l, ok := NewFetcher(Options{Dir: dir}).Load(src); !ok || len(l.Candidates) != 95 {
		t.Errorf("in the next, with room: %d candidates, %v", len(l.Candidates), l.CopyErr)
	}
}
