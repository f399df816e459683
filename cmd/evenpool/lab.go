package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/config"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

func labCommand() *cli.Command {
	return &cli.Command{
		Name:      "lab",
		Usage:     "run small local proxies that behave and misbehave, to try things out offline",
		ArgsUsage: " ",
		Description: `Starts proxies on loopback, prints what is true about each and how to use them as
a source, and runs until it gets SIGINT or SIGTERM. The lab reaches loopback only,
whatever its proxies are asked for.

Without --mix it is one of each kind that shows what it is to one plain judge.
Mixes: each (one of each, or --population spread over all), good (members as one
would wish), public (as published lists are: of ten, six are silent, two refuse,
one is otherwise bad, one is good).

The control address gives the list (GET /list), the table as JSON (GET /), and
makes a proxy fail and recover:
   curl -X POST http://CONTROL/proxies/flaky/fail
   curl -X POST http://CONTROL/proxies/flaky/recover

Examples:
   evenpool lab
   evenpool lab --explain
   evenpool lab --population 10000 --mix public --judge
   evenpool lab --mix each --judge --second-judge --key-file judge.key --proxy-ca-file lab-ca.pem
   evenpool lab --judge --base-port 21000 --control 127.0.0.1:20999
   evenpool lab --write-list ./lab.txt -o json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Value: "127.0.0.1", Usage: "`ADDRESS` of the proxies, within 127.0.0.0/8"},
			&cli.IntFlag{Name: "base-port", Usage: "first `PORT` of the proxies, the others follow; 0: whatever is free"},
			&cli.StringFlag{Name: "mix", Usage: "what to start: `NAME` is " + strings.Join(lab.Mixes(), ", ")},
			&cli.IntFlag{Name: "population", Usage: "start `N` proxies, of the mix public if no other is named; several of a kind get addresses from 127.16.0.1 on"},
			&cli.BoolFlag{Name: "explain", Usage: "print what each kind does and what is true about it, and end"},
			&cli.StringFlag{Name: "control", Value: "127.0.0.1:0", Usage: "loopback `ADDRESS:PORT` of the control endpoint; port 0: whatever is free"},
			&cli.BoolFlag{Name: "judge", Usage: "also serve a judge, on http and https, at the two ports behind the proxies'"},
			&cli.BoolFlag{Name: "second-judge", Usage: "with --judge: one more, on 127.0.0.2, for proxies that know one judge only"},
			&cli.StringFlag{Name: "key-file", Usage: "with --judge: sign its answers with the key in `FILE`; evenpool judge --new-key makes one"},
			&cli.StringFlag{Name: "proxy-ca-file", Usage: "write the certificate of the authority of proxies that speak TLS themselves to `FILE`"},
			&cli.StringFlag{Name: "ca-file", Usage: "with --judge: write its certificate to `FILE`; default: a temporary file, removed at the end"},
			&cli.StringFlag{Name: "write-list", Usage: "also write the list to `FILE`"},
			outputFlag(),
		},
		Action: runLab,
	}
}

func runLab(c *cli.Context) (err error) {
	if err := checkLabFlags(c); err != nil {
		return err
	}
	if c.Bool("explain") {
		return explainLab(c)
	}
	options := lab.Options{Addr: c.String("addr"), BasePort: c.Int("base-port")}
	if c.IsSet("mix") || c.IsSet("population") {
		if options.Population, err = lab.Mix(cmp.Or(c.String("mix"), "public"), c.Int("population")); err != nil {
			return err
		}
	}
	l, err := lab.Start(c.Context, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()

	var servers serverSet
	defer servers.close()
	control, err := servers.listen(c.Context, c.String("control"), l.ControlServer(), nil)
	if err != nil {
		return fmt.Errorf("--control: %w", err)
	}
	report := labReport{ControlURL: "http://" + control + "/", ListURL: "http://" + control + "/list", Left: l.Left(), Proxies: l.Rows()}
	if c.Bool("judge") {
		if err := serveLabJudges(c, &servers, l, &report); err != nil {
			return err
		}
		if !c.IsSet("ca-file") {
			defer os.Remove(report.Judge.CAFile)
		}
	}
	if file := c.String("write-list"); file != "" {
		if err := os.WriteFile(file, []byte(l.ListText()), 0o644); err != nil {
			return fmt.Errorf("--write-list: %w", err)
		}
	}
	if file := c.String("proxy-ca-file"); file != "" {
		if err := os.WriteFile(file, l.CA(), 0o644); err != nil {
			return fmt.Errorf("--proxy-ca-file: %w", err)
		}
	}
	if wantsJSON(c) {
		err = writeJSON(c.App.Writer, report)
	} else {
		err = report.write(c.App.Writer)
	}
	if err != nil {
		return err
	}
	return servers.wait(c.Context)
}

func checkLabFlags(c *cli.Context) error {
	switch {
	case c.Args().Present():
		return usageError("lab takes no arguments, and got %q", proxyurl.Escape(c.Args().First(), 100))
	case c.IsSet("mix") && !slices.Contains(lab.Mixes(), c.String("mix")):
		return usageError("--mix %s: unknown; use one of %s", proxyurl.Escape(c.String("mix"), 100), strings.Join(lab.Mixes(), ", "))
	case c.IsSet("population") && c.Int("population") < 1:
		return usageError("--population %d: want at least 1", c.Int("population"))
	case c.IsSet("mix") && c.String("mix") != "each" && !c.IsSet("population"):
		return usageError("--mix %s needs --population N", c.String("mix"))
	}
	for _, of := range []struct{ flag, what string }{{"ca-file", "the certificate of the judge"}, {"key-file", "the answers of the judge"}, {"second-judge", "one more than the judge"}} {
		if c.IsSet(of.flag) && !c.Bool("judge") {
			return usageError("--%s is for %s: add --judge", of.flag, of.what)
		}
	}
	if at, err := netip.ParseAddrPort(c.String("control")); err != nil || !at.Addr().IsLoopback() {
		return usageError("--control %s: want a loopback address and a port, such as 127.0.0.1:20999", proxyurl.Escape(c.String("control"), 100))
	}
	return nil
}

// serveLabJudges serves the lab's judge, and the second one if it is wanted: the
// first at the two ports behind the proxies', if those are fixed, and the second
// at the same ones.
func serveLabJudges(c *cli.Context, servers *serverSet, l *lab.Lab, report *labReport) error {
	at := judgePlace{addrs: []string{c.String("addr")}, caFile: c.String("ca-file")}
	if c.Int("base-port") != 0 {
		for _, p := range l.Proxies() {
			at.port = max(at.port, int(p.URL.Endpoint.Port())+1)
		}
	}
	if file := c.String("key-file"); file != "" {
		key, err := judge.ReadKey(file)
		if err != nil {
			return config.InKey("--key-file", file, err)
		}
		at.key, at.keyFile = key, file
	}
	if c.Bool("second-judge") {
		at.addrs = append(at.addrs, secondJudge)
	}
	judges, err := servers.listenJudges(c.Context, at)
	if err != nil {
		return err
	}
	report.Judge = judges[0]
	if len(judges) > 1 {
		report.SecondJudge = judges[1]
	}
	return nil
}

// secondJudge is another address than that of all else.
const secondJudge = "127.0.0.2"
