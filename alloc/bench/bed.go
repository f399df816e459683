package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sethvargo/go-retry"

	"evenpool/alloc"
)

// bed is what is measured: a redis-server and a daemon on it, on Unix sockets in one directory.
type bed struct {
	dir    string
	store  *alloc.Store
	redis  *exec.Cmd
	daemon *exec.Cmd
}

func (b *bed) redisSocket() string  { return filepath.Join(b.dir, "redis.sock") }
func (b *bed) daemonSocket() string { return filepath.Join(b.dir, "evenpool.sock") }
func (b *bed) daemonLog() string    { return filepath.Join(b.dir, "daemon.log") }

func newBed(ctx context.Context, o options) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "evenpool-bench-"); err != nil {
		return nil, err
	}
	if o.binary == "" {
		o.binary = filepath.Join(b.dir, "evenpool")
		if err := build(ctx, o.binary); err != nil {
			return nil, err
		}
	}
	if err := b.startRedis(ctx, o.members); err != nil {
		return nil, err
	}
	return b, b.startDaemon(ctx, o.binary)
}

func build(ctx context.Context, binary string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/evenpool")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build the daemon (run this from the project's directory): %w\n%s", err, out)
	}
	return nil
}

func (b *bed) startRedis(ctx context.Context, members int) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		return errors.New("neither redis-server nor valkey-server is on PATH (Debian: apt-get install redis-server)")
	}
	b.redis = exec.Command(program, "--port", "0", "--unixsocket", b.redisSocket(), "--dir", b.dir, "--save", "", "--appendonly", "no")
	if err := start(b.redis, filepath.Join(b.dir, "redis.log")); err != nil {
		return err
	}
	if b.store, err = alloc.Open(alloc.Options{URL: "unix://" + b.redisSocket()}); err != nil {
		return err
	}
	if err := eventually(ctx, func() error { return b.store.Ping(ctx) }); err != nil {
		return err
	}
	return fill(ctx, b.store, members)
}

// startDaemon starts the daemon on that pool, with a source of nothing and a judge that nobody is.
func (b *bed) startDaemon(ctx context.Context, binary string) error {
	list := filepath.Join(b.dir, "empty.txt")
	file := filepath.Join(b.dir, "evenpool.yaml")
	text := fmt.Sprintf(`redis:
  url: unix://%s
socket:
  path: %s
state_dir: %s
judges:
  - name: nobody
    http: http://127.0.0.1:9/
    allow_addresses: [127.0.0.1]
sources:
  - name: nothing
    url: file://%s
    scheme: http
    schedule: "0 0 1 1 *"
pools:
  - name: %s
    probe:
      schedule: "0 0 1 1 *"
    eligibility:
      schemes: [http]
      require: [http]
`, b.redisSocket(), b.daemonSocket(), filepath.Join(b.dir, "state"), list, poolName)
	if err := errors.Join(os.WriteFile(list, nil, 0o600), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		return err
	}
	b.daemon = exec.Command(binary, "serve", "-c", file)
	if err := start(b.daemon, b.daemonLog()); err != nil {
		return err
	}
	err := eventually(ctx, func() error {
		conn, err := net.Dial("unix", b.daemonSocket())
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		log, _ := os.ReadFile(b.daemonLog())
		return fmt.Errorf("the daemon does not answer: %w\n%s", err, log)
	}
	return nil
}

// start starts a process that does not outlive this one, with its output in a file.
func start(command *exec.Cmd, log string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command.Start()
}

func eventually(ctx context.Context, try func() error) error {
	backoff := retry.WithMaxDuration(10*time.Second, retry.NewConstant(20*time.Millisecond))
	return retry.Do(ctx, backoff, func(context.Context) error { return retry.RetryableError(try()) })
}

type measured struct {
	counted int64 // allocations in the time that counts
	all     int64 // with the warm-up
}

// measure runs a load generator, a process of its own, to its end.
func (b *bed) measure(ctx context.Context, way string, l load) (measured, error) {
	self, err := os.Executable()
	if err != nil {
		return measured{}, err
	}
	target := b.daemonSocket()
	if way == "direct" {
		target = b.redisSocket()
	}
	command := exec.CommandContext(ctx, self, "-generate", way, "-target", target, "-workers", strconv.Itoa(l.workers),
		"-warm-up", l.warmUp.String(), "-duration", l.duration.String())
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return measured{}, fmt.Errorf("%w: %s", err, problem.String())
	}
	var m measured
	if _, err := fmt.Sscan(out.String(), &m.counted, &m.all); err != nil {
		return measured{}, fmt.Errorf("unexpected output %.100q: %w", out.String(), err)
	}
	return m, nil
}

func (b *bed) sumOfCounts(ctx context.Context) (int64, error) {
	members, err := b.store.Pool(poolName).Members(ctx)
	sum := int64(0)
	for _, m := range members {
		sum += m.Count
	}
	return sum, err
}

// close ends what was started, the daemon before its Redis.
func (b *bed) close() {
	for _, command := range []*exec.Cmd{b.daemon, b.redis} {
		if command != nil && command.Process != nil {
			command.Process.Signal(syscall.SIGTERM)
			command.Wait()
		}
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}
