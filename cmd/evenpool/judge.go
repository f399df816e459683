package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/config"
	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

func judgeCommand() *cli.Command {
	return &cli.Command{
		Name:      "judge",
		Usage:     "serve the judge: the web server that probes ask through the proxies",
		ArgsUsage: " ",
		Description: `Answers each question with what it saw: the nonce, the asker's address and the
headers. It has to run where the proxies can reach it, on a public host, and needs
no state and no rights. It runs until it gets SIGINT or SIGTERM.

With --key-file its answers are signed, and no proxy can forge or alter one: make
the file once, and copy it to the host that probes (key_file of the judge there).
The certificate of --cert is read at the start: restart the judge behind a renewal.

Examples:
   evenpool judge --new-key judge.key
   evenpool judge --key-file judge.key --http :80 --https :443 --cert cert.pem --key cert.key --host judge.example.org
   evenpool judge --http 127.0.0.1:8081 --https 127.0.0.1:8444 --write-cert judge.pem`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "http", Usage: "`ADDRESS:PORT` to answer plain http on; it shows the capability http"},
			&cli.StringFlag{Name: "https", Usage: "`ADDRESS:PORT` to answer https on; it shows the capability tls"},
			&cli.StringFlag{Name: "key-file", Usage: "`FILE` with the key that the answers are signed with; default: they are not signed"},
			&cli.StringFlag{Name: "new-key", Usage: "write a new key for --key-file to `FILE`, which must not exist yet, and end"},
			&cli.Float64Flag{Name: "rate", Value: 20, Usage: "requests a second that each address may make in the long run (`N`; an IPv6 /64 counts as one address); 0: no limit"},
			&cli.IntFlag{Name: "burst", Value: 500, Usage: "requests that each address may make at once (`N`); many proxies may share one exit"},
			&cli.StringFlag{Name: "host", Usage: "`NAME` or address by which the proxies reach the judge; default: the address listened on"},
			&cli.StringFlag{Name: "cert", Usage: "`FILE` with the certificate for https, in PEM, intermediate ones behind it"},
			&cli.StringFlag{Name: "key", Usage: "`FILE` with the certificate's key, in PEM"},
			&cli.StringFlag{Name: "write-cert", Usage: "without --cert: make a certificate for --host at each start, and write it to `FILE`, for ca_file"},
		},
		Action: runJudge,
	}
}

func runJudge(c *cli.Context) error {
	if err := checkJudgeFlags(c); err != nil {
		return err
	}
	if file := c.String("new-key"); file != "" {
		return newJudgeKey(c.App.Writer, file)
	}
	var (
		servers serverSet
		handler = judge.Handler{Rate: c.Float64("rate"), Burst: c.Int("burst")}
		lines   = judgeLines{caFile: c.String("write-cert"), keyFile: c.String("key-file")}
		err     error
	)
	if lines.keyFile != "" {
		if handler.Key, err = judge.ReadKey(lines.keyFile); err != nil {
			return config.InKey("--key-file", lines.keyFile, err)
		}
	}
	defer servers.close()
	if address := c.String("http"); address != "" {
		at, err := servers.listen(c.Context, address, judge.NewServer(&handler), nil)
		if err != nil {
			return fmt.Errorf("--http: %w", err)
		}
		lines.http = at
	}
	if address := c.String("https"); address != "" {
		cert, err := judgeCertificate(c)
		if err != nil {
			return err
		}
		if lines.https, err = servers.listen(c.Context, address, judge.NewServer(&handler), &cert); err != nil {
			return fmt.Errorf("--https: %w", err)
		}
	}
	if err := lines.write(c.App.Writer, c.String("host")); err != nil {
		return err
	}
	return servers.wait(c.Context)
}

// newJudgeKey writes a new key, and never over an old one.
func newJudgeKey(w io.Writer, file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--new-key: %w", err)
	}
	_, err = f.WriteString(judge.NewKeyText() + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("--new-key: %w", err), os.Remove(file))
	}
	_, err = fmt.Fprintf(w, "wrote a new key to %s; the judge and the host that probes need the same one\n", file)
	return err
}

func checkJudgeFlags(c *cli.Context) error {
	switch {
	case c.Args().Present():
		return usageError("judge takes no arguments, and got %q", proxyurl.Escape(c.Args().First(), 100))
	case c.String("new-key") != "" && (c.String("http") != "" || c.String("https") != "" || c.IsSet("key-file")):
		return usageError("--new-key writes a key and ends: it goes with no other flag")
	case c.String("new-key") != "":
		return nil
	case c.IsSet("key-file") && c.String("key-file") == "":
		return usageError("--key-file has no value: name a file, or leave it out for answers that are not signed")
	case c.Float64("rate") < 0 || c.Float64("rate") > 1e6:
		return usageError("--rate %v: want a number from 0, for no limit, to 1000000", c.Float64("rate"))
	case c.Int("burst") < 1 || c.Int("burst") > 1e6:
		return usageError("--burst %d: want a number from 1 to 1000000", c.Int("burst"))
	case c.String("http") == "" && c.String("https") == "":
		return usageError("nothing to serve: give --http ADDRESS:PORT, --https ADDRESS:PORT, or both")
	case (c.String("cert") == "") != (c.String("key") == ""):
		return usageError("--cert and --key belong together")
	case c.String("https") == "" && (c.IsSet("cert") || c.IsSet("write-cert")):
		return usageError("a certificate is for https: add --https ADDRESS:PORT")
	case c.IsSet("cert") && c.IsSet("write-cert"):
		return usageError("--write-cert is for the certificate that is made without --cert")
	case c.String("https") != "" && !c.IsSet("cert") && c.String("write-cert") == "":
		return usageError("--https needs --cert FILE and --key FILE; or --write-cert FILE, to make a certificate that those who read the file can verify")
	case c.IsSet("write-cert") && judgeHost(c.String("host"), c.String("https")) == "":
		return usageError("--write-cert needs --host NAME: the certificate is for one name, and %s is every address", proxyurl.Escape(c.String("https"), 100))
	}
	for _, flag := range []string{"http", "https"} {
		if address := c.String(flag); address != "" {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return usageError("--%s %s: want ADDRESS:PORT, such as 127.0.0.1:8080 or :80", flag, proxyurl.Escape(address, 100))
			}
		}
	}
	return nil
}

// judgeHost is by what a judge is reached: what was said, else the address it
// listens on, else "".
func judgeHost(host, address string) string {
	if host != "" {
		return host
	}
	listened, _, err := net.SplitHostPort(address)
	if addr, bad := netip.ParseAddr(listened); err != nil || bad == nil && addr.IsUnspecified() {
		return ""
	}
	return listened
}

// judgeCertificate reads the certificate, or makes one and writes it.
func judgeCertificate(c *cli.Context) (tls.Certificate, error) {
	if c.String("cert") != "" {
		cert, err := tls.LoadX509KeyPair(c.String("cert"), c.String("key"))
		if err != nil {
			return cert, fmt.Errorf("--cert, --key: %w", err)
		}
		return cert, nil
	}
	cert, text, err := judge.SelfSigned(judgeHost(c.String("host"), c.String("https")))
	if err != nil {
		return cert, fmt.Errorf("make a certificate: %w", err)
	}
	if err := os.WriteFile(c.String("write-cert"), text, 0o644); err != nil {
		return cert, fmt.Errorf("--write-cert: %w", err)
	}
	return cert, nil
}

// judgeLines is what the judge says once it runs.
type judgeLines struct {
	http, https string // where it listens; "" for not
	caFile      string
	keyFile     string
}

func (l judgeLines) write(w io.Writer, host string) error {
	var text string
	line := func(format string, args ...any) { text += fmt.Sprintf(format+"\n", args...) }
	if l.http != "" {
		line("http on %s", l.http)
	}
	if l.https != "" {
		line("https on %s", l.https)
	}
	line("\nIn a configuration:\n\njudges:\n  - name: mine")
	opened := ""
	for _, at := range []struct{ scheme, listened string }{{"http", l.http}, {"https", l.https}} {
		if at.listened == "" {
			continue
		}
		reached := judgeHost(host, at.listened)
		if addr, err := netip.ParseAddr(reached); err == nil {
			if _, forbidden := proxyurl.Forbidden(addr); forbidden {
				opened = netip.PrefixFrom(addr, addr.BitLen()).String()
			}
		}
		if reached == "" {
			reached = "HOST" // the reader knows better
		}
		_, port, _ := net.SplitHostPort(at.listened)
		line("    %s: %s://%s/", at.scheme, at.scheme, net.JoinHostPort(reached, port))
	}
	if l.caFile != "" {
		line("    ca_file: %s    # a copy of this file; a new one at each start", l.caFile)
	}
	if l.keyFile != "" {
		line("    key_file: %s    # a copy of this file", l.keyFile)
	}
	if opened != "" {
		line("    allow_addresses: [%s]    # not a public address", opened)
	}
	_, err := io.WriteString(w, text)
	return err
}
