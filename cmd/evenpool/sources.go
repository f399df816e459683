package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

func sourcesCommand() *cli.Command {
	return &cli.Command{
		Name:  "sources",
		Usage: "see what lists of candidates give",
		Description: `Examples:
   evenpool sources check
   evenpool sources check proxies.txt --scheme http`,
		Subcommands: []*cli.Command{sourcesCheckCommand()},
	}
}

func sourcesCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "read lists once, and show what each gives and what is wrong with the rest",
		ArgsUsage: "[NAME|FILE|URL...]",
		Description: `Reads all sources of the configuration, those of them that are named, or lists
that it does not have. Nothing is offered, probed or kept.

   records     lines that are neither blank nor comments
   candidates  unique by scheme, host and port
   endpoints   unique by host, port, user and password: proxies to probe
   duplicates  records that said nothing new
   rejected    records that gave no candidate, by reason below
   refused     endpoints that are never probed, such as those on port 25

With -o json, a line for each list. The status is 1 when a list could not be used.

Examples:
   evenpool sources check
   evenpool sources check mylist -c ./evenpool.yaml
   evenpool sources check proxies.txt --scheme socks5
   evenpool sources check https://example.org/http.txt --scheme http -o json`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "scheme", Usage: "`SCHEME` that the records of a FILE or URL claim where they name none: http, https, socks4, socks4a or socks5"},
			&cli.StringSliceFlag{Name: "allow-address", Usage: "`PREFIX` that is opened for a FILE or URL although it is not public; may be repeated"},
			outputFlag(),
		},
		Action: runSourcesCheck,
	}
}

// checksAtOnce is how many lists are read at the same time.
const checksAtOnce = 4

func runSourcesCheck(c *cli.Context) error {
	list, err := sourcesToCheck(c)
	if err != nil {
		return err
	}
	fetcher := sources.NewFetcher(sources.Options{UserAgent: "evenpool/" + version})
	checks := make([]sourceCheck, len(list))
	var wg sync.WaitGroup
	slots := make(chan struct{}, checksAtOnce)
	for i, src := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			read, err := fetcher.Fetch(c.Context, src)
			checks[i] = newSourceCheck(read, src, err)
		})
	}
	wg.Wait()
	write := writeSourceTable
	if wantsJSON(c) {
		write = writeSourceLines
	}
	if err := write(c.App.Writer, checks); err != nil {
		return err
	}
	failed := false
	for _, check := range checks {
		if check.Error != "" {
			failed = true
			fmt.Fprintf(c.App.ErrWriter, "evenpool: %s\n", check.Error)
		}
		if check.Rejects[string(sources.ReasonNoScheme)] > 0 {
			fmt.Fprintf(c.App.ErrWriter, "evenpool: %s names no scheme for some records: give the source a scheme, or use --scheme\n", check.Name)
		}
	}
	if failed {
		return &exitError{code: exitFailed}
	}
	return nil
}

// sourcesToCheck gives the sources of the configuration, or what the arguments
// name.
func sourcesToCheck(c *cli.Context) ([]sources.Source, error) {
	if !c.Args().Present() && (c.IsSet("scheme") || c.IsSet("allow-address")) {
		return nil, usageError("--scheme and --allow-address are for a FILE or URL; a source of the configuration has its own")
	}
	extra := sources.Source{} // what the flags say of lists that have no configuration
	var err error
	if name := c.String("scheme"); name != "" {
		if extra.Scheme, err = proxyurl.ParseScheme(name); err != nil {
			return nil, usageError("--scheme %s: want http, https, socks4, socks4a or socks5", proxyurl.Escape(name, 40))
		}
	}
	if extra.Allow, err = parseAllow(c.StringSlice("allow-address")); err != nil {
		return nil, err
	}
	var list []sources.Source
	needed := func(arg string) bool { _, ok := listURL(arg); return !ok }
	if !c.Args().Present() || c.IsSet("config") || slices.ContainsFunc(c.Args().Slice(), needed) {
		if list, err = configuredSources(c); err != nil {
			return nil, err
		}
	}
	if !c.Args().Present() {
		return list, nil
	}
	var named []sources.Source
	for _, arg := range c.Args().Slice() {
		i := slices.IndexFunc(list, func(s sources.Source) bool { return s.Name == arg })
		if i >= 0 {
			named = append(named, list[i])
			continue
		}
		address, ok := listURL(arg)
		if !ok {
			return nil, usageError("%s is neither a source of %s nor a file nor a URL", proxyurl.Escape(arg, 100), c.String("config"))
		}
		named = append(named, sources.Source{Name: listName(arg), URL: address, Scheme: extra.Scheme, Allow: extra.Allow})
	}
	return named, nil
}

// configuredSources gives the sources of the configuration. Without -c, and with
// arguments, it may be missing: they are then files and URLs.
func configuredSources(c *cli.Context) ([]sources.Source, error) {
	if c.Args().Present() && !c.IsSet("config") {
		if _, err := os.Stat(c.String("config")); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	cfg, err := loadConfig(c.String("config"), c.App.ErrWriter)
	if err != nil {
		return nil, err
	}
	var list []sources.Source
	for _, s := range cfg.Sources {
		list = append(list, sources.Source{Name: s.Name, URL: s.URL, Scheme: s.Scheme, Allow: s.AllowAddresses})
	}
	return list, nil
}

// listName is what a list is called that has no name: its URL, less what may be a
// password or a key, or its path.
func listName(arg string) string {
	if u, err := url.Parse(arg); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host + u.Path
	}
	return arg
}

// listURL gives the URL of an argument that is one, or the path of a file that is
// there.
func listURL(arg string) (string, bool) {
	if strings.Contains(arg, "://") {
		return arg, true
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return "", false
	}
	if _, err := os.Lstat(path); err != nil {
		return "", false
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), true
}
