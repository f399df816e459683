package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

func labCommand() *cli.Command {
	return &cli.Command{
		Name:      "lab",
		Usage:     "run small local proxies that behave and misbehave, to try things out offline",
		ArgsUsage: " ",
		Description: `Starts one proxy of each kind on loopback, prints what is true about each and
how to use them as a source, and runs until it gets SIGINT or SIGTERM.
The lab reaches 127.0.0.0/8 only, whatever its proxies are asked for.

The control address gives the list (GET /list), the table as JSON (GET /), and
makes a proxy fail and recover:
   curl -X POST http://CONTROL/proxies/flaky/fail
   curl -X POST http://CONTROL/proxies/flaky/recover

Examples:
   evenpool lab
   evenpool lab --judge --base-port 21000 --control 127.0.0.1:20999
   evenpool lab --write-list ./lab.txt -o json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "addr", Value: "127.0.0.1", Usage: "`ADDRESS` of the proxies, within 127.0.0.0/8"},
			&cli.IntFlag{Name: "base-port", Usage: "first `PORT` of the proxies, the others follow; 0: whatever is free"},
			&cli.StringFlag{Name: "control", Value: "127.0.0.1:0", Usage: "loopback `ADDRESS:PORT` of the control endpoint; port 0: whatever is free"},
			&cli.BoolFlag{Name: "judge", Usage: "also serve a judge, on http and https, at the two ports behind the proxies'"},
			&cli.StringFlag{Name: "ca-file", Usage: "with --judge: write its certificate to `FILE`; default: a temporary file, removed at the end"},
			&cli.StringFlag{Name: "write-list", Usage: "also write the list to `FILE`"},
			outputFlag(),
		},
		Action: runLab,
	}
}

// labReport is what the lab says once it runs; the JSON of -o json.
type labReport struct {
	ListURL    string    `json:"list_url"`
	ControlURL string    `json:"control_url"`
	Judge      *labJudge `json:"judge,omitempty"`
	Proxies    []lab.Row `json:"proxies"`
}

// labJudge is where the lab's judge is and whom to trust for it.
type labJudge struct {
	HTTP   string `json:"http"`
	HTTPS  string `json:"https"`
	CAFile string `json:"ca_file"`
}

func runLab(c *cli.Context) (err error) {
	if c.Args().Present() {
		return usageError("lab takes no arguments, and got %q", proxyurl.Escape(c.Args().First(), 100))
	}
	if c.IsSet("ca-file") && !c.Bool("judge") {
		return usageError("--ca-file is for the certificate of the judge: add --judge")
	}
	if at, err := netip.ParseAddrPort(c.String("control")); err != nil || !at.Addr().IsLoopback() {
		return usageError("--control %s: want a loopback address and a port, such as 127.0.0.1:20999", proxyurl.Escape(c.String("control"), 100))
	}
	l, err := lab.Start(c.Context, lab.Options{Addr: c.String("addr"), BasePort: c.Int("base-port")})
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
	report := labReport{ControlURL: "http://" + control + "/", ListURL: "http://" + control + "/list", Proxies: l.Rows()}
	if c.Bool("judge") {
		port := c.Int("base-port")
		if port != 0 {
			port += len(report.Proxies)
		}
		report.Judge, err = servers.listenJudge(c.Context, c.String("addr"), port, c.String("ca-file"))
		if err != nil {
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

// write prints the report for people.
func (r labReport) write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tURL\tCLAIMED\tELIGIBLE\tOUTCOME\tWHAT IT DOES")
	for _, p := range r.Proxies {
		eligible := "no"
		if p.Eligible {
			eligible = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, p.URL, p.Claimed, eligible, p.Outcome, p.Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, `
Eligible and outcome are for schemes [http, socks4, socks4a, socks5], require
[http, tls] and a timeout of 2s. In a configuration:

sources:
  - name: lab
    url: %s
    allow_addresses: [127.0.0.0/8]
`, r.ListURL)
	if err == nil && r.Judge != nil {
		_, err = fmt.Fprintf(w, `judges:
  - name: lab
    http: %s
    https: %s
    ca_file: %s
    allow_addresses: [127.0.0.0/8]
`, r.Judge.HTTP, r.Judge.HTTPS, r.Judge.CAFile)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, `
To make a proxy fail, and to let it recover:

curl -X POST %[1]sproxies/flaky/fail
curl -X POST %[1]sproxies/flaky/recover
`, r.ControlURL)
	}
	return err
}

// serverSet is HTTP servers that run together: the first that fails ends all.
type serverSet struct {
	servers []*http.Server
	running sync.WaitGroup
	failed  chan error // made by the first listen
}

// listen serves on an address, over TLS if there is a certificate, and returns
// the address as it came out.
func (s *serverSet) listen(ctx context.Context, address string, server *http.Server, cert *tls.Certificate) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	at := ln.Addr().String()
	if cert != nil {
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{*cert}})
	}
	if s.failed == nil {
		s.failed = make(chan error, 1)
	}
	s.servers = append(s.servers, server)
	s.running.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("serve %s: %w", at, err):
			default: // one is enough to end all
			}
		}
	})
	return at, nil
}

// wait blocks until the context ends, which is no error, or a server fails.
func (s *serverSet) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// close ends all servers; what they are answering has a moment to end by itself.
func (s *serverSet) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	s.running.Wait()
}

// listenJudge serves our judge on http and https, at a port and the one behind
// it, or at free ones if port is 0. Its certificate goes to caFile, or to a
// temporary file if that is empty.
func (s *serverSet) listenJudge(ctx context.Context, addr string, port int, caFile string) (*labJudge, error) {
	cert, certPEM, err := judge.SelfSigned(addr, "localhost")
	if err != nil {
		return nil, fmt.Errorf("the judge's certificate: %w", err)
	}
	var (
		handler judge.Handler
		at      [2]string
	)
	for i, cert := range []*tls.Certificate{nil, &cert} {
		address := net.JoinHostPort(addr, "0")
		if port != 0 {
			address = net.JoinHostPort(addr, strconv.Itoa(port+i))
		}
		if at[i], err = s.listen(ctx, address, judge.NewServer(&handler), cert); err != nil {
			return nil, fmt.Errorf("the judge: %w", err)
		}
	}
	if caFile, err = writeCertificate(caFile, certPEM); err != nil {
		return nil, fmt.Errorf("the judge's certificate: %w", err)
	}
	return &labJudge{HTTP: "http://" + at[0] + "/", HTTPS: "https://" + at[1] + "/", CAFile: caFile}, nil
}

// writeCertificate writes to a file, or to a temporary one if it has no name, and
// returns its name.
func writeCertificate(file string, certPEM []byte) (string, error) {
	if file != "" {
		return file, os.WriteFile(file, certPEM, 0o644)
	}
	f, err := os.CreateTemp("", "evenpool-lab-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(certPEM)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
