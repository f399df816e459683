package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
)

func reportCommand() *cli.Command {
	return &cli.Command{
		Name:      "report",
		Usage:     "say how a proxy did, so that it is probed sooner",
		ArgsUsage: "PROXY ok|failed|blocked",
		Description: `A worker's word on a proxy that it was allocated. It is kept with the proxy, shown
by 'evenpool why', and brings its next probe forward, once a minute at most.
It retires nobody by itself: probes do. Nobody has to report.

Examples:
   evenpool report http://203.0.113.7:8080 failed
   evenpool report "$proxy" blocked --target www.example.org --pool web`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "target", Usage: "by which target it is blocked: a host's `NAME` or a word"},
			poolFlag(), socketFlag(), timeoutFlag(time.Second), outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usageError("report takes a proxy and one of ok, failed, blocked, as in: evenpool report http://203.0.113.7:8080 failed")
			}
			if err := checkProxy(c.Args().First()); err != nil {
				return err
			}
			report := api.Report{Proxy: c.Args().First(), Outcome: c.Args().Get(1), Target: c.String("target")}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				answer, err := client.Report(ctx, c.String("pool"), report)
				if err != nil {
					return err
				}
				if wantsJSON(c) {
					return writeJSON(c.App.Writer, answer)
				}
				text := "noted"
				switch {
				case !answer.Member:
					text = "it is no member; nothing is kept of it"
				case answer.ProbeDue:
					text = "noted; it is probed next"
				}
				_, err = fmt.Fprintln(c.App.Writer, text)
				return err
			})
		},
	}
}
