package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"

	"evenpool/daemon"
	"evenpool/daemon/config"
)

func serveCommand() *cli.Command {
	return &cli.Command{
		Name:      "serve",
		Usage:     "run the daemon: read lists, probe, keep the pools, answer workers",
		ArgsUsage: " ",
		Description: `Runs until it gets SIGTERM or SIGINT, and logs to standard error; in the journal with
priorities. The same warning is written once a minute, then with how often it came.

Examples:
   evenpool serve
   evenpool serve -c ./evenpool.yaml --log-level debug`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "log-level", Value: "info", Usage: "least `LEVEL` that is logged: debug, info, warn or error"},
			&cli.StringFlag{Name: "log-format", Value: "text", Usage: "`FORMAT` of the log: text or json"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usageError("serve takes no arguments; name the configuration with -c")
			}
			log, err := newLogger(c.App.ErrWriter, c.String("log-level"), c.String("log-format"))
			if err != nil {
				return err
			}
			defer tellRepeats(log)
			cfg, err := loadConfig(c.String("config"), c.App.ErrWriter)
			if err != nil {
				return err
			}
			// A log that nobody reads any more is no reason to die without saving.
			signal.Ignore(syscall.SIGPIPE)
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			stopped := make(chan struct{})
			defer close(stopped)
			go func() {
				for {
					select {
					case <-hangup:
						log.Warn("SIGHUP does nothing in this version; restart the daemon for a new configuration")
					case <-stopped:
						return
					}
				}
			}()
			return serve(c, cfg, log)
		},
	}
}

// serve runs a daemon until the command's context ends.
func serve(c *cli.Context, cfg *config.Config, log *slog.Logger) error {
	password, err := cfg.Redis.Password(os.Getenv("CREDENTIALS_DIRECTORY"))
	if err != nil {
		return &exitError{exitConfig, cfg.FilesIn("redis", err)}
	}
	hostname, err := os.Hostname()
	if err != nil {
		log.Warn("this host has no name; events will not say where they come from", "err", err)
	}
	d, err := daemon.New(daemon.Options{Config: cfg, Password: password, Version: version, Logger: log, Hostname: hostname})
	if errors.Is(err, daemon.ErrSocketTaken) || errors.Is(err, daemon.ErrStateDirTaken) {
		return &exitError{exitTaken, err}
	}
	if files := (config.Errors)(nil); errors.As(err, &files) {
		return &exitError{exitConfig, err}
	}
	if err != nil {
		return err
	}
	return d.Run(c.Context)
}

// loadConfig reads a configuration; its warnings go to stderr, and its errors are
// of exit code 78.
func loadConfig(path string, stderr io.Writer) (*config.Config, error) {
	cfg, warnings, err := config.Load(path, configDefaults())
	for _, w := range warnings {
		fmt.Fprintf(stderr, "warning: %s\n", w)
	}
	if _, missing := os.Stat(path); path == defaultConfig && errors.Is(missing, fs.ErrNotExist) {
		err = fmt.Errorf("%w; name yours with -c", err)
	}
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	return cfg, nil
}

// configDefaults are the places that a daemon without root may write to.
func configDefaults() config.Defaults {
	var d config.Defaults
	if os.Geteuid() == 0 || os.Getenv("RUNTIME_DIRECTORY") != "" {
		return d
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		d.SocketPath = filepath.Join(dir, "evenpool", "evenpool.sock")
	}
	if dir, err := os.UserHomeDir(); err == nil {
		d.StateDir = filepath.Join(dir, ".local", "state", "evenpool")
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		d.StateDir = filepath.Join(dir, "evenpool")
	}
	return d
}
