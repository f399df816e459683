package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
)

// workers are the smallest programs that ask the socket. README has the same.
//
//go:embed clients
var workers embed.FS

// workersHelp shows them one after the other.
func workersHelp() string {
	var b strings.Builder
	for _, w := range [][2]string{{"Go", "worker.go.txt"}, {"Python", "worker.py"}, {"Node", "worker.mjs"}} {
		text, err := workers.ReadFile("clients/" + w[1])
		if err != nil {
			panic(err) // the file is part of the binary
		}
		fmt.Fprintf(&b, "%s:\n\n", w[0])
		for line := range strings.Lines(string(text)) {
			b.WriteString(strings.TrimRight("   "+line, " \n") + "\n")
		}
		b.WriteString("\n")
	}
	return strings.TrimSpace(b.String())
}

func allocCommand() *cli.Command {
	return &cli.Command{
		Name:      "alloc",
		Usage:     "allocate the least-used proxy and print its URL",
		ArgsUsage: " ",
		Description: `Prints one URL a line. When the pool is empty it prints nothing and ends with 3,
so that a script cannot go on without a proxy by mistake:

   proxy=$(evenpool alloc) || exit

Exit codes: 0 allocated, 2 wrong usage or no such pool, 3 the pool is empty,
69 unavailable (nothing was allocated, try again), 76 the answer was lost (an
allocation may have been counted).

Examples:
   evenpool alloc
   evenpool alloc -n 10 --pool web
   evenpool alloc -n 2 -o json | jq -r '.proxies[].proxy'
   curl --proxy "$(evenpool alloc)" https://example.org/
   curl --unix-socket /run/evenpool/evenpool.sock -X POST http://evenpool/v1/pools/web/allocate

A worker that runs for long asks the socket itself:

` + workersHelp(),
		Flags: []cli.Flag{
			&cli.IntFlag{
				Name: "n", Value: 1,
				Usage: fmt.Sprintf("`NUMBER` of allocations, 1 to %d; in a smaller pool members come repeatedly", api.MaxAllocate),
				Action: func(_ *cli.Context, n int) error {
					if n < 1 || n > api.MaxAllocate {
						return usageError("-n %d: expected a whole number from 1 to %d", n, api.MaxAllocate)
					}
					return nil
				},
			},
			poolFlag(), socketFlag(), timeoutFlag(time.Second), outputFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("alloc takes no arguments; the pool is named with --pool")
			}
			return askDaemon(c, func(ctx context.Context, client *api.Client) error {
				return allocate(ctx, c, client)
			})
		},
	}
}

// allocate writes its answer in one piece, and nothing for an empty pool.
func allocate(ctx context.Context, c *cli.Context, client *api.Client) error {
	answer, err := client.AllocateMany(ctx, c.String("pool"), c.Int("n"))
	if err != nil {
		return err
	}
	if len(answer.Proxies) == 0 {
		return &exitError{exitEmpty, emptyError(c.String("pool"), answer.RetryAfterMS)}
	}
	if wantsJSON(c) {
		return writeJSON(c.App.Writer, answer)
	}
	var b strings.Builder
	for _, a := range answer.Proxies {
		b.WriteString(show(a.Proxy) + "\n")
	}
	_, err = fmt.Fprint(c.App.Writer, b.String())
	return err
}

func emptyError(pool string, retryMS int64) error {
	text := "the pool is empty"
	if pool != "" {
		text = "the pool " + show(pool) + " is empty"
	}
	if retryMS > 0 {
		text += "; ask again in " + (time.Duration(retryMS) * time.Millisecond).Round(time.Second).String()
	}
	return errors.New(text + "; 'evenpool status' says what its last cycle found")
}
