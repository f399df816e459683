package main

import "github.com/urfave/cli/v2"

// commands is the one list of what the program can do, in the order of --help.
func commands() []*cli.Command {
	return []*cli.Command{
		serveCommand(),
		allocCommand(),
		reportCommand(),
		statusCommand(),
		whyCommand(),
		demoCommand(),
		labCommand(),
		judgeCommand(),
		policyCommand(),
		probeCommand(),
		sourcesCommand(),
		versionCommand(),
	}
}
