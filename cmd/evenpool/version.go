package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"
)

func versionCommand() *cli.Command {
	return &cli.Command{
		Name:      "version",
		Usage:     "print the version of this binary",
		ArgsUsage: " ",
		Description: `Examples:
   evenpool version
   evenpool version -o json`,
		Flags: []cli.Flag{outputFlag()},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("version takes no arguments")
			}
			if wantsJSON(c) {
				return writeJSON(c.App.Writer, map[string]string{"version": version, "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(c.App.Writer, "evenpool %s (%s)\n", version, runtime.Version())
			return err
		},
	}
}
