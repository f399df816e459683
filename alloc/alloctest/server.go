package alloctest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Server is a redis-server process of a test's own, on a private Unix socket, whose data outlives a
// kill (append-only file). Its methods fail the test that made it. Not safe for concurrent use.
type Server struct {
	URL    string // unix://, the same over restarts
	Socket string // the socket's path

	t       testing.TB
	process *process
}

// NewServer starts a server; it ends with the test. args are more options of redis-server, such as
// "--maxmemory", "10mb". The test fails where neither redis-server nor valkey-server is on PATH:
// containers cannot be killed and restarted as quickly.
func NewServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return NewServerIn(t, nil, args...)
}

// NewServerIn is NewServer in an environment of this process's with env ("NAME=VALUE") beside it.
func NewServerIn(t testing.TB, env []string, args ...string) *Server {
	t.Helper()
	p, err := newProcess(append([]string{"--appendonly", "yes"}, args...))
	if err != nil {
		t.Fatal(err)
	}
	p.env = env
	s := &Server{URL: p.url(), Socket: p.socket, t: t, process: p}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		os.RemoveAll(p.dir)
	})
	s.Start()
	return s
}

// Start starts the server again, with the data that it had, and waits until it accepts connections.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.process.start(); err != nil {
		s.t.Fatal(err)
	}
}

// Stop ends the server in order, and waits for its end.
func (s *Server) Stop() { s.process.end(syscall.SIGTERM) }

// Kill ends the server as kill -9 does, and waits for its end.
func (s *Server) Kill() { s.process.end(syscall.SIGKILL) }

// Pause stops the server in its tracks: connections are accepted by the kernel, nothing answers.
func (s *Server) Pause() { s.process.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.process.signal(syscall.SIGCONT) }

// startShared starts a server that keeps nothing, for all tests of a package.
func startShared() (found, error) {
	p, err := newProcess(nil)
	if err != nil {
		return found{}, err
	}
	stop := func() {
		p.end(syscall.SIGKILL)
		os.RemoveAll(p.dir)
	}
	if err := p.start(); err != nil {
		stop()
		return found{}, err
	}
	return found{url: p.url(), how: p.program + " on " + p.socket, stop: stop}, nil
}

type process struct {
	program string
	args    []string
	env     []string // more of it than this process has
	dir     string
	socket  string

	command *exec.Cmd     // nil while it does not run
	drained chan struct{} // closed when all its output was read
}

func newProcess(args []string) (*process, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		return nil, errors.New("neither redis-server nor valkey-server is on PATH (Debian: apt-get install redis-server)")
	}
	// Not the test's own directory: a socket's path has room for 107 bytes.
	dir, err := os.MkdirTemp("", "evenpool-redis-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "redis.sock")
	args = append([]string{"--port", "0", "--unixsocket", socket, "--unixsocketperm", "700", "--dir", dir, "--save", "", "--logfile", "", "--daemonize", "no"}, args...)
	return &process{program: program, args: args, dir: dir, socket: socket}, nil
}

func (p *process) url() string { return "unix://" + p.socket }

// start runs the program and waits until it says that it accepts connections.
func (p *process) start() error {
	if p.command != nil {
		return errors.New("the server runs already")
	}
	command := exec.Command(p.program, p.args...)
	command.Env = append(os.Environ(), p.env...)
	// A test process that is killed takes its servers along.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, input, err := os.Pipe()
	if err != nil {
		return err
	}
	command.Stdout, command.Stderr = input, input
	err = command.Start()
	input.Close()
	if err != nil {
		output.Close()
		return err
	}
	p.command = command
	var said strings.Builder
	lines := bufio.NewScanner(output)
	ready := false
	for !ready && lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		ready = strings.Contains(lines.Text(), "eady to accept connections")
	}
	drained := make(chan struct{})
	p.drained = drained
	go func() {
		io.Copy(io.Discard, output)
		output.Close()
		close(drained)
	}()
	if !ready {
		p.end(syscall.SIGKILL)
		return fmt.Errorf("%s ended at its start:\n%s", p.program, said.String())
	}
	return nil
}

func (p *process) signal(signal syscall.Signal) {
	if p.command != nil {
		p.command.Process.Signal(signal)
	}
}

// end ends the process and waits for it.
func (p *process) end(signal syscall.Signal) {
	if p.command == nil {
		return
	}
	p.signal(signal)
	p.signal(syscall.SIGCONT) // should it be paused
	p.command.Wait()
	<-p.drained
	p.command = nil
}
