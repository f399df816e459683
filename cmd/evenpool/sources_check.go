package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

func sourcesCheckCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "read lists once, and show what each gives and what is wrong with the rest",
		ArgsUsage: "[NAME|FILE|URL|-...]",
		Description: `Reads all sources of the configuration, those of them that are named, or lists
that it does not have; - is standard input. Nothing is offered, probed or kept.

   records     lines that are neither blank nor comments, elements, or rows
   candidates  unique by scheme, host and port
   endpoints   unique by host, port, user and password: proxies to probe
   duplicates  records that said nothing new
   rejected    records that gave no candidate, by reason below
   refused     endpoints that are never probed, such as those on port 25

With -o json, a line for each list. The status is 1 when a list could not be used.

Formats: ` + strings.Join(sources.Formats(), ", ") + `.

Examples:
   evenpool sources check
   evenpool sources check mylist -c ./evenpool.yaml
   evenpool sources check proxies.txt --scheme socks5
   evenpool sources check https://example.org/http.txt --scheme any -o json
   curl -s https://example.org/list.csv | evenpool sources check - --format csv`,
		Flags: []cli.Flag{
			configFlag(),
			&cli.StringFlag{Name: "scheme", Usage: "`SCHEME` of records that name none, in place of a source's own: http, https, socks4, socks4a, socks5, or any"},
			&cli.StringFlag{Name: "format", Usage: "`FORMAT` to read all lists as, in place of a source's own"},
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
	checks := make([]*sourceCheck, len(list)) // nil: not read to its end
	var wg sync.WaitGroup
	var done atomic.Int64
	slots := make(chan struct{}, checksAtOnce)
	stop := showProgress(c.App.ErrWriter, func() string { return fmt.Sprintf("%d of %d lists read", done.Load(), len(list)) })
	for i, src := range list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			read, err := readList(c.Context, src, c.App.Reader)
			if err == nil || c.Context.Err() == nil {
				checks[i] = newSourceCheck(read, src, err)
			}
			done.Add(1)
		})
	}
	wg.Wait()
	stop()
	read := slices.DeleteFunc(checks, func(check *sourceCheck) bool { return check == nil })
	if err := writeChecks(c, read); err != nil {
		return err
	}
	if c.Context.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d lists", len(read), len(list))
	}
	if slices.ContainsFunc(read, func(check *sourceCheck) bool { return check.Error != "" }) {
		return &exitError{code: exitFailed}
	}
	return nil
}

// writeChecks writes what lists gave, and what is to be done about it.
func writeChecks(c *cli.Context, checks []*sourceCheck) error {
	write := writeSourceTable
	if wantsJSON(c) {
		write = writeSourceLines
	}
	if err := write(c.App.Writer, checks); err != nil {
		return err
	}
	for _, check := range checks {
		if check.Error != "" {
			fmt.Fprintf(c.App.ErrWriter, "evenpool: %s\n", check.Error)
		}
		if check.Rejects[string(sources.ReasonNoScheme)] > 0 {
			fmt.Fprintf(c.App.ErrWriter, "evenpool: %s names no scheme for some records: give the source a scheme, or use --scheme\n", check.Name)
		}
	}
	return nil
}

// stdinURL stands for standard input in place of a list's URL.
const stdinURL = "-"

// readList reads a list the way the daemon does, or standard input.
func readList(ctx context.Context, src sources.Source, stdin io.Reader) (sources.List, error) {
	if src.URL != stdinURL {
		// A Fetcher of its own, as each remembers its lists.
		return sources.NewFetcher(sources.Options{UserAgent: "evenpool/" + version}).Fetch(ctx, src)
	}
	type result struct {
		list sources.List
		err  error
	}
	ended := make(chan result, 1)
	// Reading a terminal or a pipe cannot be cut short; the process ends with it.
	go func() {
		list, err := sources.Parse(stdin, src, sources.Limits{})
		ended <- result{list, err}
	}()
	select {
	case <-ctx.Done():
		return sources.List{}, context.Cause(ctx)
	case got := <-ended:
		if got.err != nil {
			got.err = fmt.Errorf("standard input: %w", got.err)
		}
		return got.list, got.err
	}
}

// sourcesToCheck gives the sources of the configuration, or what the arguments
// name.
func sourcesToCheck(c *cli.Context) ([]sources.Source, error) {
	if !c.Args().Present() && c.IsSet("allow-address") {
		return nil, usageError("--allow-address is for a FILE or URL; a source of the configuration has its own allow_addresses")
	}
	if i := slices.Index(c.Args().Slice(), stdinURL); i >= 0 && slices.Contains(c.Args().Slice()[i+1:], stdinURL) {
		return nil, usageError("standard input is there once: name - once")
	}
	extra, err := listFlags(c) // what the flags say of lists that have no configuration
	if err != nil {
		return nil, err
	}
	var list []sources.Source
	needed := func(arg string) bool { _, ok := listURL(arg); return !ok }
	if !c.Args().Present() || c.IsSet("config") || slices.ContainsFunc(c.Args().Slice(), needed) {
		if list, err = configuredSources(c); err != nil {
			return nil, err
		}
	}
	for i := range list {
		list[i].Scheme = cmp.Or(extra.Scheme, list[i].Scheme)
		list[i].Format = cmp.Or(extra.Format, list[i].Format)
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
		src := extra
		var ok bool
		if src.URL, ok = listURL(arg); !ok {
			return nil, usageError("%s is neither a source of %s nor a file nor a URL", proxyurl.Escape(arg, 100), c.String("config"))
		}
		src.Name = listName(arg)
		named = append(named, src)
	}
	return named, nil
}

// listFlags reads what flags say of a list.
func listFlags(c *cli.Context) (src sources.Source, err error) {
	if name := c.String("scheme"); name != "" {
		if src.Scheme, err = proxyurl.ParseScheme(name); strings.EqualFold(name, string(proxyurl.Any)) {
			src.Scheme, err = proxyurl.Any, nil
		}
		if err != nil {
			return src, usageError("--scheme %s: want http, https, socks4, socks4a, socks5 or any", proxyurl.Escape(name, 40))
		}
	}
	src.Format = c.String("format")
	if src.Format != "" && !slices.Contains(sources.Formats(), src.Format) {
		return src, usageError("--format %s: want one of %s", proxyurl.Escape(src.Format, 40), strings.Join(sources.Formats(), ", "))
	}
	src.Allow, err = parseAllow(c.StringSlice("allow-address"))
	return src, err
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
		list = append(list, s.List())
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
// there, or standard input.
func listURL(arg string) (string, bool) {
	if strings.Contains(arg, "://") || arg == stdinURL {
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
