package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// listenForTest listens and closes at the end of the test.
func listenForTest(t *testing.T, path string) *socket {
	t.Helper()
	s, err := listen(path, 0o660)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestU1_SocketIsNeverThereWithAnotherMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // a plain bind would give 0777
	path := filepath.Join(t.TempDir(), "e.sock")
	var stop atomic.Bool
	seen := make(chan map[fs.FileMode]int)
	go func() {
		modes := map[fs.FileMode]int{}
		for !stop.Load() {
			if info, err := os.Lstat(path); err == nil {
				modes[info.Mode()]++
			}
		}
		seen <- modes
	}()
	for range 100 {
		s, err := listen(path, 0o660)
		if err != nil {
			t.Error(err)
			break
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o660 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	modes := <-seen
	delete(modes, fs.ModeSocket|0o660)
	if len(modes) != 0 {
		t.Errorf("seen: %v", modes)
	}
}

func TestU1_SocketIsBoundWhereNobodyElseEnters(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := filepath.Join(t.TempDir(), "deep", "er", "e.sock")
	// A folder that a killed daemon left is used again, with what is in it.
	if err := os.MkdirAll(path+".new", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new/s", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := listenForTest(t, path)
	left, err := filepath.Glob(filepath.Dir(path) + "/*")
	if err != nil || strings.Join(left, " ") != path+" "+path+".lock" {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if s.Addr().Network() != "unix" {
		t.Errorf("%v", s.Addr())
	}
}

func TestListenRefusesPlaces(t *testing.T) {
	dir := t.TempDir()
	place := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(place("file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", place("link")); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", place("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	long := place(strings.Repeat("x", maxSocketPath-len(dir)))

	for _, tc := range []struct {
		path, message string
		taken         bool
	}{
		{path: place("file"), message: "socket " + place("file") + ": there is a file that is no socket; move it away, or choose another socket.path"},
		{path: place("link"), message: "socket " + place("link") + ": there is a file that is no socket; move it away, or choose another socket.path"},
		{path: place("other"), message: "the socket is taken: another program listens on " + place("other"), taken: true},
		{path: long, message: "socket " + long + ": the path has 108 bytes, a Unix socket's may have 107"},
		{path: place("file/e.sock"), message: "socket " + place("file/e.sock") + ": mkdir " + place("file") + ": not a directory"},
	} {
		_, err := listen(tc.path, 0o660)
		if err == nil || err.Error() != tc.message || errors.Is(err, ErrSocketTaken) != tc.taken {
			t.Errorf("%v\nwant %s", err, tc.message)
		}
	}
	if text, err := os.ReadFile(place("file")); err != nil || string(text) != "precious" {
		t.Errorf("the foreign file: %q, %v", text, err)
	}
	if conn, err := net.Dial("unix", place("other")); err != nil {
		t.Errorf("the other program's socket: %v", err)
	} else {
		conn.Close()
	}
}

func TestListenAtTheLongestPath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, strings.Repeat("x", maxSocketPath-len(dir)-1))
	listenForTest(t, path)
	dialForTest(t, path)
}

func TestU2_CloseLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.sock")
	s := listenForTest(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	dialForTest(t, path)
}

func TestU2_OneOfFiftyWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.sock")
	race := func(n int) (winner *listenProcess) {
		var all []*listenProcess
		for range n {
			all = append(all, startListenProcess(t, path))
		}
		for _, p := range all { // all have started: now they race
			p.ready(t)
		}
		for _, p := range all {
			p.begin(t)
		}
		for _, p := range all {
			switch word := p.word(t); word {
			case "won":
				if winner != nil {
					t.Fatal("two listen")
				}
				winner = p
			case "taken":
			default:
				t.Fatal(word)
			}
		}
		if winner == nil {
			t.Fatal("nobody listens")
		}
		return winner
	}
	for _, n := range []int{50, 8} { // the second time, a killed process has left its socket
		winner := race(n)
		dialForTest(t, path)
		_, err := listen(path, 0o660)
		want := fmt.Sprintf("the socket is taken: %s belongs to another evenpool (process %d)", path, winner.cmd.Process.Pid)
		if err == nil || err.Error() != want || !errors.Is(err, ErrSocketTaken) {
			t.Errorf("%v\nwant %s", err, want)
		}
		if err := winner.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = winner.cmd.Wait()
		if _, err := os.Lstat(path); err != nil {
			t.Fatalf("kill -9 should leave the socket: %v", err)
		}
	}
	listenForTest(t, path)
	dialForTest(t, path)
}

// listenProcess is this test binary, listening in a process of its own.
type listenProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startListenProcess(t *testing.T, path string) *listenProcess {
	t.Helper()
	p := &listenProcess{cmd: exec.Command(os.Args[0], "-test.run=^TestListenInAnotherProcess$")}
	// TestMain shall not start a Redis there.
	p.cmd.Env = append(os.Environ(), "EVENPOOL_TEST_LISTEN="+path, "EVENPOOL_TEST_REDIS=unused")
	p.cmd.Stderr = t.Output()
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.in.Close() // it ends by that
		_ = p.cmd.Wait()
	})
	return p
}

func (p *listenProcess) word(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("listening process: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func (p *listenProcess) ready(t *testing.T) {
	t.Helper()
	if word := p.word(t); word != "ready" {
		t.Fatal(word)
	}
}

func (p *listenProcess) begin(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// TestListenInAnotherProcess is what a listenProcess runs; by itself it is
// nothing.
func TestListenInAnotherProcess(t *testing.T) {
	path := os.Getenv("EVENPOOL_TEST_LISTEN")
	if path == "" {
		return
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s, err := listen(path, 0o660)
	switch {
	case errors.Is(err, ErrSocketTaken):
		fmt.Println("taken")
	case err != nil:
		fmt.Println("failed:", err)
	default:
		defer s.Close()
		fmt.Println("won")
	}
	_, _ = in.ReadString('\n') // until the test closes it, or kills us
}
