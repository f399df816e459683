package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

func probeCommand() *cli.Command {
	return &cli.Command{
		Name:      "probe",
		Usage:     "try proxies once, and show what they can do",
		ArgsUsage: "[URL...]",
		Description: `Asks judges through each proxy, for all that they can show, and directly before and
after. Nothing is kept, and no daemon is asked. Shown are for each question when the
stages were done, from its beginning; what was found (http, connect, tls, remote_dns,
ipv6_exit); the exit and the anonymity, "verified" where a judge signed it or told it
within its own TLS, else "claimed". Of more than 8 proxies it is a line each; -v and
-o json have all.

With --policy, or --pool, it is a pool's judges, timeouts and files, and each of its
rules is shown: met (pass), broken (FAIL) or not known (?). A proxy is judged as a
newcomer, by this round alone; one that a rule bars is not asked. The pool's targets
are asked as well, each once for each proxy, and directly before and after: their
min_interval is not heeded, and so they are left out for more than 8 proxies.

A proxy with a password is read from a list, where other users do not see it.
-v shows what was sent and received, unprintable bytes as \xNN, the proxy's
password as ***.

Exit codes: 0 all were tried, whatever was found; 1 no judge answers rightly, a list
cannot be read, or it was interrupted; 2 usage; 78 the configuration is wrong.

Examples:
   evenpool probe http://203.0.113.7:8080 socks5://203.0.113.8:1080
   evenpool probe --policy ./evenpool.yaml --pool web http://203.0.113.7:8080
   evenpool probe -v --list - <proxy.txt
   evenpool probe --list proxies.txt -o json | jq '.proxies[] | select(.verdict == "pass")'
   evenpool probe --list - --judge-https https://example.org/robots.txt --expect User-agent
   evenpool probe --list - --judge-http http://judge.example.org/ --judge-key-file judge.key
   evenpool probe --list - --judge-http http://echo.example.org/get --echo json,origin,headers`,
		Flags: append([]cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "policy", Usage: "`FILE` of a configuration: the rules of a pool of it give the verdict; default with --pool: that of --config"},
			&cli.StringFlag{Name: "pool", Usage: "`NAME` of the pool; with --policy it may be left out if there is only one"},
			&cli.StringFlag{Name: "list", Usage: "`FILE` or URL of a list of proxies, in any format that a source may have; - is standard input"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show the conversations, of at most 100 proxies"},
			&cli.StringSliceFlag{Name: "allow-address", Usage: "`PREFIX` that may be dialled although it is not public, for the proxies and for judges given by flags; may be repeated"},
			&cli.IntFlag{Name: "concurrency", Value: 64, Usage: "how many proxies are tried at once, `N` from 1 to 10000"},
			&cli.DurationFlag{Name: "timeout", Value: probe.DefaultTimeout, Usage: "`LIMIT` for each question, from dial to last byte; with --policy the pool's"},
			outputFlag(),
		}, judgeByFlags()...),
		Action: runProbe,
	}
}

// Bounds on what is shown and asked without being asked for.
const (
	maxDetailed = 8   // proxies of which all is shown, and that targets are asked through
	maxVerbose  = 100 // proxies whose conversations are kept
)

func runProbe(c *cli.Context) error {
	if n := c.Int("concurrency"); n < 1 || n > 10000 {
		return usageError("--concurrency %d: want 1 to 10000", n)
	}
	if d := c.Duration("timeout"); d < 10*time.Millisecond || d > time.Minute {
		return usageError("--timeout %v: want 10ms to 1m", d)
	}
	allow, err := parseAllow(c.StringSlice("allow-address"))
	if err != nil {
		return err
	}
	means, err := probeMeans(c, allow)
	if err != nil {
		return err
	}
	candidates, err := probeCandidates(c, allow)
	if err != nil {
		return err
	}
	if c.Bool("verbose") && len(candidates) > maxVerbose {
		return usageError("-v is for at most %d proxies, and there are %d", maxVerbose, len(candidates))
	}
	if len(means.targets) > 0 && len(candidates) > maxDetailed {
		fmt.Fprintf(c.App.ErrWriter, "targets are not asked for more than %d proxies at once\n", maxDetailed)
		means.targets = nil
	}
	observer := probe.NewObserver(probe.ObserverOptions{DialRate: means.dialRate})
	watch, stop := context.WithCancel(c.Context)
	var watching sync.WaitGroup
	watching.Go(func() { _ = observer.Run(watch) })
	defer watching.Wait()
	defer stop()
	means.options.Observer = observer
	b := newBout(means, candidates, c.Bool("verbose"))
	err = b.run(c.Context, c.Int("concurrency"), c.App.ErrWriter)
	if !b.began {
		return err
	}
	write := b.writeText
	if wantsJSON(c) {
		write = b.writeJSON
	}
	return errors.Join(err, write(c.App.Writer))
}

// parseAllow reads prefixes and single addresses.
func parseAllow(texts []string) (proxyurl.Allow, error) {
	var allow proxyurl.Allow
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return nil, usageError("--allow-address %s: want a prefix, such as 127.0.0.0/8", proxyurl.Escape(text, 60))
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		allow = append(allow, prefix.Masked())
	}
	return allow, nil
}

// probeCandidates reads the arguments, or the list.
func probeCandidates(c *cli.Context, allow proxyurl.Allow) ([]sources.Candidate, error) {
	if name := c.String("list"); name != "" {
		if c.Args().Present() {
			return nil, usageError("give proxies as arguments or by --list, not both")
		}
		return listCandidates(c, name, allow)
	}
	if !c.Args().Present() {
		return nil, usageError("no proxy to try: give URLs, or --list FILE")
	}
	var candidates []sources.Candidate
	for _, text := range c.Args().Slice() {
		u, err := proxyurl.ParseURL(text)
		if err != nil {
			return nil, usageError("%v; want a URL such as http://203.0.113.7:8080", err)
		}
		if u.Endpoint.HasUser() {
			return nil, usageError("%s has a password, and other users of this host can see arguments: put it in a file and use --list FILE, or --list - for standard input", u.Redacted())
		}
		candidates = append(candidates, sources.Candidate{Endpoint: u.Endpoint, Said: &sources.Said{Schemes: []proxyurl.Scheme{u.Scheme}}})
	}
	return candidates, nil
}

// listCandidates reads the list as a source is read. A record that names no scheme
// is tried by all.
func listCandidates(c *cli.Context, name string, allow proxyurl.Allow) ([]sources.Candidate, error) {
	address, ok := listURL(name)
	if !ok {
		return nil, usageError("--list %s: no such file", proxyurl.Escape(name, 200))
	}
	src := sources.Source{Name: listName(name), URL: address, Scheme: proxyurl.Any, Allow: allow}
	list, err := readList(c.Context, src, c.App.Reader)
	offered, refused := sources.Offerable(list, src)
	for why, n := range refused {
		fmt.Fprintf(c.App.ErrWriter, "%d left out: %s\n", n, why)
	}
	for _, sample := range list.Samples {
		fmt.Fprintf(c.App.ErrWriter, "line %d: %s: %s\n", sample.Line, sample.Reason, sample.Text)
	}
	if n := list.Rejected(); n > 0 {
		fmt.Fprintf(c.App.ErrWriter, "%d of %d records give no proxy\n", n, list.Records)
	}
	if err != nil {
		return nil, fmt.Errorf("--list: %w", err)
	}
	return offered, nil
}
