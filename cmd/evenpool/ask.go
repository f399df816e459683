package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// What the commands have in common that ask a running daemon.

func socketFlag() cli.Flag {
	return &cli.StringFlag{
		Name:  "socket",
		Usage: "the daemon's socket at `PATH`; default: $EVENPOOL_SOCKET, else " + api.SystemSocket + ", else $XDG_RUNTIME_DIR/evenpool/evenpool.sock",
	}
}

func poolFlag() cli.Flag {
	return &cli.StringFlag{Name: "pool", Usage: "`NAME` of the pool; may be left out if there is only one"}
}

// timeoutFlag bounds how long the command waits for its answer.
func timeoutFlag(value time.Duration) cli.Flag {
	return &cli.DurationFlag{
		Name:  "timeout",
		Value: value,
		Usage: "`TIME` to wait for the answer",
		Action: func(_ *cli.Context, d time.Duration) error {
			if d < 10*time.Millisecond || d > api.MaxBudget {
				return usageError("--timeout %s: expected 10ms to %s", d, api.MaxBudget)
			}
			return nil
		},
	}
}

// askDaemon gives ask a client for the daemon and a context with the command's
// timeout, and turns its error into one with the right exit code.
func askDaemon(c *cli.Context, ask func(context.Context, *api.Client) error) error {
	client := &api.Client{Socket: c.String("socket")}
	defer client.Close()
	ctx, cancel := context.WithTimeout(c.Context, c.Duration("timeout"))
	defer cancel()
	return daemonError(ask(ctx, client))
}

// daemonError gives an error of the client its exit code.
func daemonError(err error) error {
	e := (*api.Error)(nil)
	if !errors.As(err, &e) {
		return err
	}
	text := errors.New(show(e.Message))
	if e.Code.Retryable() && e.RetryAfter > 0 {
		text = fmt.Errorf("%w; try again in %s", text, e.RetryAfter)
	}
	switch {
	case e.Code.Retryable():
		return &exitError{exitUnavailable, text}
	case e.Code == api.CodeOutcomeUnknown:
		return &exitError{exitUnknown, text}
	case e.Code == api.CodeBadRequest, e.Code == api.CodeUnknownPool, e.Code == api.CodeNotFound:
		return &exitError{exitUsage, text}
	}
	return &exitError{exitFailed, text}
}

// show makes a text of the daemon safe for a terminal. The daemon has escaped
// what it had from outside; that is left as it is.
func show(s string) string {
	unsafe := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	return proxyurl.Escape(s, 2048)
}
