package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-retry"

	"evenpool/alloc"
)

// bed is what is measured: a redis-server and a daemon on it, on Unix sockets in one directory.
type bed struct {
	dir    string
	store  *alloc.Store
	redis  *exec.Cmd
	daemon *exec.Cmd

	raw        *redis.Client
	classicSHA string
	directRate float64 // what redis-benchmark last reached, to know how much it takes
	answers    int64   // from the pool "bench"
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
	if err := b.startRedis(ctx); err != nil {
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

func (b *bed) startRedis(ctx context.Context) error {
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
	b.raw = redis.NewClient(&redis.Options{Network: "unix", Addr: b.redisSocket()})
	if b.classicSHA, err = b.raw.ScriptLoad(ctx, classic).Result(); err != nil {
		return err
	}
	for pool, members := range map[string]int{poolName: 100, "100": 100, "100000": 100_000} {
		// No budget of one call: a hundred thousand take thousands.
		if err := fill(ctx, b.store.Pool(pool), members); err != nil {
			return fmt.Errorf("fill the pool %s: %w", pool, err)
		}
	}
	return nil
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

// measured is what a load generator did.
type measured struct {
	Rate float64       // allocations per second, in the time that counts
	P50  time.Duration // of one call
	All  int64         // allocations, with the warm-up

	redisCPU float64 // seconds, with the warm-up; not the generator's to say
}

// generate runs a load generator, a process of its own, to its end.
func (b *bed) generate(ctx context.Context, way, target string, l load) (m measured, err error) {
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	out, err := output(ctx, self, "-generate", way, "-target", target, "-workers", strconv.Itoa(l.workers),
		"-warm-up", l.warmUp.String(), "-duration", l.duration.String())
	if err != nil {
		return m, fmt.Errorf("%s: %w", way, err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("%s: unexpected output %.100q: %w", way, out, err)
	}
	return m, nil
}

// redisBenchmark has connections run the classic script by its hash, some in each of their writes.
func (b *bed) redisBenchmark(ctx context.Context, connections, pipelined int, l load) (m measured, err error) {
	// As many as take about the time that the other side has.
	if b.directRate == 0 {
		b.directRate = 20_000
	}
	n := int64(b.directRate * (l.warmUp + l.duration).Seconds())
	out, err := output(ctx, "redis-benchmark", "-s", b.redisSocket(), "-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipelined),
		"-n", strconv.FormatInt(n, 10), "--csv", "EVALSHA", b.classicSHA, "1", eligibleKey)
	if err != nil {
		return m, err
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) < 2 || rows[0][1] != "rps" {
		return m, fmt.Errorf("redis-benchmark: unexpected output %.300q", out)
	}
	if m.Rate, err = strconv.ParseFloat(rows[1][1], 64); err != nil {
		return m, fmt.Errorf("redis-benchmark: %w", err)
	}
	m.All, b.directRate = n, m.Rate
	return m, nil
}

func output(ctx context.Context, program string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %.500s", err, problem.String())
	}
	return out, nil
}

// redisCPU is the CPU time that Redis has used, in seconds.
func (b *bed) redisCPU(ctx context.Context) (sum float64, err error) {
	text, err := b.raw.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			sum += seconds
		}
	}
	return sum, nil
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
	if b.raw != nil {
		b.raw.Close()
	}
	if b.store != nil {
		b.store.Close()
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}
