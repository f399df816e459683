// Command evenpool keeps a pool of eligible proxies and hands out the
// least-used one: daemon and command line in one binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v2"
)

// version is set by the linker (make build).
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends things in order; a second one ends them at once,
	// because it finds no handler any more.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it; it returns the exit
// code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	app := newApp(stdin, stdout, stderr)
	return report(app.RunContext(ctx, flagsFirst(app, args)), stderr)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *cli.App {
	app := &cli.App{
		Name:  "evenpool",
		Usage: "keep a pool of eligible proxies and hand out the least-used one",
		Description: `Start with a daemon and a list of local test proxies, without any network:
   evenpool demo
A worker asks the daemon of its host for a proxy:
   proxy=$(evenpool alloc) || exit`,
		Version:                version,
		UseShortOptionHandling: false,
		Reader:                 stdin,
		Writer:                 stdout,
		ErrWriter:              stderr,
		ExitErrHandler:         func(*cli.Context, error) {}, // run reports and exits
		OnUsageError:           onUsageError,
		Commands:               commands(),
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("unknown command %q; 'evenpool --help' lists them", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	prepare(app.Commands)
	return app
}

// prepare gives every command what all have in common: usage errors go to
// standard error through run, and unknown subcommands are refused.
func prepare(list []*cli.Command) {
	for _, command := range list {
		command.OnUsageError = onUsageError
		command.HideHelpCommand = true
		if len(command.Subcommands) > 0 {
			prepare(command.Subcommands)
			if command.Action != nil {
				continue // it does something of its own without a subcommand
			}
			command.Action = func(c *cli.Context) error {
				if c.Args().Present() {
					return usageError("unknown command %q; 'evenpool %s --help' lists them", c.Args().First(), c.Command.Name)
				}
				return cli.ShowSubcommandHelp(c)
			}
		}
	}
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	command := c.Command.HelpName
	if command == "" {
		command = "evenpool"
	}
	return usageError("%v; see '%s --help'", err, command)
}

// The exit codes of the command line.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEmpty       = 3
	exitUnavailable = 69 // try again (EX_UNAVAILABLE of sysexits.h)
	exitTaken       = 75 // another daemon has the socket (EX_TEMPFAIL)
	exitUnknown     = 76 // whether the allocation happened is not known (EX_PROTOCOL)
	exitConfig      = 78 // the configuration is wrong (EX_CONFIG)
)

// exitError is an error with the exit code it asks for. A nil err ends the
// program with the code and without a word: all is said already.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError says that a command was called wrongly.
func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// report writes an error for a person and returns its exit code.
func report(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		code = exit.code
		if exit.err == nil {
			return code
		}
	}
	fmt.Fprintf(stderr, "evenpool: %v\n", err)
	return code
}
