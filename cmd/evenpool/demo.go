package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon"
	"evenpool/daemon/api"
	"evenpool/daemon/config"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// demoPatience is how long the demo waits for its first cycle.
const demoPatience = 45 * time.Second

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:      "demo",
		Usage:     "see it all work on this machine, without any network",
		ArgsUsage: " ",
		Description: `Starts a lab of good and bad proxies, two judges, and the daemon on the embedded
store, all on loopback; shows the first cycle, who is in and why the others are
out, and ten allocations; then stays up to be tried. It ends with 1 if anything
is not as it should be.

Examples:
   evenpool demo
   evenpool demo --exit`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "exit", Usage: "end after the show instead of staying up"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("demo takes no arguments")
			}
			dir, err := os.MkdirTemp("", "evenpool-demo-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			d := demo{dir: dir, out: c.App.Writer, log: c.App.ErrWriter}
			return d.run(c.Context, c.Bool("exit"))
		},
	}
}

type demo struct {
	dir      string
	out, log io.Writer
	lab      *lab.Lab
	servers  serverSet
	client   api.Client
}

// demoConfig is what an operator would write.
const demoConfig = `# Everything is on loopback, and opened for these judges and this list alone.
socket: {path: %[1]s/evenpool.sock}
state_dir: %[1]s/state
judges:                                     # they sign, with the key that the daemon has too
  - name: first
    http: %[2]s
    https: %[3]s
    key_file: %[1]s/judge.key
    ca_file: %[1]s/judge.pem
    allow_addresses: [127.0.0.0/8]
  - name: second
    http: %[4]s
    https: %[5]s
    key_file: %[1]s/judge.key
    ca_file: %[1]s/judge.pem
    allow_addresses: [127.0.0.0/8]
sources:
  - name: lab
    url: file://%[1]s/lab.txt
    allow_addresses: [127.0.0.0/8]
pools:
  - name: demo
    probe: {schedule: "@every 1m", timeout: 3s, confirm_after: 1s, proxy_ca_file: %[1]s/lab.pem}
    eligibility: {schemes: [http, https, socks4, socks4a, socks5], require: [http, tls]}
`

func (d *demo) run(ctx context.Context, exit bool) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer d.close()
	cfg, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	log, err := newLogger(d.log, "warn", "text")
	if err != nil {
		return err
	}
	served, err := daemon.New(daemon.Options{Config: cfg, Version: version, Logger: log, Hostname: "demo"})
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		done <- served.Run(ctx)
		cancel() // a daemon that ends early ends the show
	}()
	err = d.show(ctx)
	if err == nil && !exit {
		d.invite()
		<-ctx.Done()
		fmt.Fprintln(d.out, "\nstopping")
	}
	cancel()
	if runErr := <-done; err == nil {
		err = runErr
	}
	return err
}

// close ends what prepare has started.
func (d *demo) close() {
	d.servers.close()
	if d.lab != nil {
		d.lab.Close()
	}
}

// prepare starts the judges and the lab and writes the configuration.
func (d *demo) prepare(ctx context.Context) (*config.Config, error) {
	key := judge.NewKeyText()
	judges, err := d.servers.listenJudges(ctx, judgePlace{addrs: []string{"127.0.0.1", secondJudge},
		caFile: filepath.Join(d.dir, "judge.pem"), key: judge.Key(key)})
	if err != nil {
		return nil, err
	}
	if d.lab, err = lab.Start(ctx, lab.Options{Population: demoPopulation()}); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(demoConfig, d.dir, judges[0].HTTP, judges[0].HTTPS, judges[1].HTTP, judges[1].HTTPS)
	for name, data := range map[string]string{"evenpool.yaml": text, "lab.txt": d.lab.ListText(), "lab.pem": string(d.lab.CA()), "judge.key": key + "\n"} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(data), 0o600); err != nil {
			return nil, err
		}
	}
	cfg, _, err := config.Load(filepath.Join(d.dir, "evenpool.yaml"), config.Defaults{})
	if err != nil {
		return nil, err
	}
	d.client.Socket = cfg.Socket.Path
	fmt.Fprintf(d.out, "The configuration, %s:\n\n%s\n", filepath.Join(d.dir, "evenpool.yaml"), text)
	fmt.Fprintf(d.out, "A lab of %d proxies on loopback, good and bad ones; the daemon does not know which.\n\n", len(d.lab.Proxies()))
	return cfg, nil
}

// demoPopulation is one of each behaviour that the demo's judges can see through: they
// have addresses for names, and on IPv4 alone.
func demoPopulation() (population []lab.Spec) {
	for _, k := range lab.Kinds() {
		if !slices.Contains(k.Needs, lab.NeedName) && !slices.Contains(k.Needs, lab.NeedIPv6) {
			population = append(population, lab.Spec{Behaviour: k.Behaviour, Count: 1})
		}
	}
	return population
}

// show prints what the daemon does as it does it.
func (d *demo) show(ctx context.Context) error {
	defer d.client.Close()
	if err := d.showCycle(ctx); err != nil {
		return err
	}
	if err := d.showVerdicts(ctx); err != nil {
		return err
	}
	return d.showAllocations(ctx)
}

// showCycle follows the first cycle to its end.
func (d *demo) showCycle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoPatience, fmt.Errorf("the first cycle did not end within %s", demoPatience))
	defer cancel()
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(d.out, "%5.1fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	say("the daemon starts: it reads the list and begins a cycle at once")
	seen := map[string]bool{}
	listed := false
	for {
		pool, err := d.client.Pool(ctx, "demo")
		if err == nil && !listed && pool.Candidates > 0 {
			listed = true
			say("%d candidates are being probed; a first pass is confirmed a second later", pool.Candidates)
		}
		members, _ := d.client.Members(ctx, "demo") // not yet, while the daemon starts
		for _, m := range members {
			if !seen[m.Proxy] {
				seen[m.Proxy] = true
				say("admitted %s (%d ms)", m.Proxy, m.LatencyMS)
			}
		}
		if err == nil && pool.LastCycle != nil {
			c := pool.LastCycle
			say("the cycle has ended after %.1fs: %d passes, %d failures, %d admitted",
				float64(c.DurationMS)/1000, c.Passed, c.Failed, c.Admitted)
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// showVerdicts compares the daemon's verdicts with the truth, which only the lab
// knows.
func (d *demo) showVerdicts(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nWho is in, and why the others are out (`evenpool why PROXY` tells more):\n\n")
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROXY\tLISTED AS\tTHE LAB SAYS\tTHE DAEMON SAYS\tREASON\tANONYMITY\t")
	wrong := 0
	for _, p := range d.lab.Proxies() {
		why, err := d.client.Why(ctx, "demo", p.URL.Redacted())
		if err != nil {
			table.Flush()
			return err
		}
		says, mark := "out", ""
		if why.State == api.StateMember {
			says = "in"
		}
		outcome := "none"
		for _, r := range why.Results {
			if outcome = r.Outcome; outcome == p.Truth.Outcome {
				break
			}
		}
		anonymity := ""
		if why.Proven != nil && why.Proven.Verified {
			anonymity = why.Proven.Anonymity + " (verified)"
		}
		if p.Truth.Eligible != (says == "in") || outcome != p.Truth.Outcome || says == "in" && anonymity != p.Truth.Anonymity+" (verified)" {
			wrong++
			mark = "<- WRONG, expected " + p.Truth.Outcome
		}
		truth := map[bool]string{true: "good: ", false: "bad: "}[p.Truth.Eligible] + p.Name
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", why.Proxy, p.Claimed, truth, says, outcome, anonymity, mark)
	}
	table.Flush()
	if wrong > 0 {
		return fmt.Errorf("%d of %d verdicts are wrong", wrong, len(d.lab.Proxies()))
	}
	return nil
}

// showAllocations asks as a worker does.
func (d *demo) showAllocations(ctx context.Context) error {
	st, err := d.client.Status(ctx)
	if err != nil {
		return err
	}
	pool := st.Pools[0]
	fmt.Fprintf(d.out, "\nStatus: store %s, pool %s: %d members, %d candidates, guard %s, next cycle at %s\n",
		st.Store.Kind, pool.Name, pool.Members, pool.Candidates, pool.Guard.State, pool.NextCycleAt.Format(time.TimeOnly))
	fmt.Fprintf(d.out, "\nTen allocations: the lowest count wins, and adds one in the same step; equal counts go by the URL's bytes:\n\n")
	for i := range 10 {
		got, err := d.client.Allocate(ctx, "demo")
		if err != nil {
			return err
		}
		if got.Proxy == nil {
			return fmt.Errorf("the pool is empty")
		}
		shown := *got.Proxy
		if u, err := proxyurl.ParseURL(shown); err == nil {
			shown = u.Redacted() // a worker gets the password, a screen does not
		}
		fmt.Fprintf(d.out, "%4d.  %s  count %d\n", i+1, shown, got.Count)
	}
	return nil
}

// invite says how to go on.
func (d *demo) invite() {
	fmt.Fprintf(d.out, `
It stays up. In another terminal:

  curl --unix-socket %[1]s -X POST http://evenpool/v1/pools/demo/allocate
  curl --unix-socket %[1]s -X POST -H 'Accept: text/plain' http://evenpool/v1/pools/demo/allocate
  export EVENPOOL_SOCKET=%[1]s
  evenpool status
  proxy=$(evenpool alloc) && echo "$proxy"

Ctrl-C ends it.
`, d.client.Socket)
}
