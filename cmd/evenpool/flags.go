package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// outputFlag chooses between text for people and JSON for programs. Every
// command that reads has it.
func outputFlag() cli.Flag {
	return &cli.StringFlag{
		Name:    "output",
		Aliases: []string{"o"},
		Value:   "text",
		Usage:   "`FORMAT` of the output: text or json",
		Action: func(_ *cli.Context, value string) error {
			if value != "text" && value != "json" {
				return usageError("-o %s: unknown format; use text or json", value)
			}
			return nil
		},
	}
}

// defaultConfig is where an installed service has its configuration.
const defaultConfig = "/etc/evenpool/evenpool.yaml"

// configFlag names the configuration file.
func configFlag() cli.Flag {
	return &cli.StringFlag{
		Name:    "config",
		Aliases: []string{"c"},
		Value:   defaultConfig,
		Usage:   "configuration `FILE`",
	}
}

// wantsJSON says whether -o json was given.
func wantsJSON(c *cli.Context) bool { return c.String("output") == "json" }

// writeJSON writes v indented, without escaping <, > and & for HTML.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// flagsFirst moves the flags of a command line in front of its arguments, where
// the command line package looks for them: it would silently ignore
// "evenpool why PROXY -o json". What follows "--" stays.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	flags, list := app.Flags, app.Commands
	head := []string{args[0]}
	rest := args[1:]
	for len(rest) > 0 {
		i := slices.IndexFunc(list, func(c *cli.Command) bool { return c.HasName(rest[0]) })
		if i < 0 {
			break
		}
		head, rest = append(head, rest[0]), rest[1:]
		flags, list = list[i].Flags, list[i].Subcommands
	}
	var moved, plain []string
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			plain = append(append(plain, "--"), rest...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			plain = append(plain, arg)
			continue
		}
		moved = append(moved, arg)
		if takesValue(flags, arg) && len(rest) > 0 {
			moved, rest = append(moved, rest[0]), rest[1:]
		}
	}
	return slices.Concat(head, moved, plain)
}

// takesValue says whether the argument behind arg belongs to it: "-n 3", but not
// "-n=3" and not "--json".
func takesValue(flags []cli.Flag, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	for _, flag := range flags {
		if doc, ok := flag.(cli.DocGenerationFlag); ok && slices.Contains(flag.Names(), name) {
			return doc.TakesValue()
		}
	}
	return false
}
