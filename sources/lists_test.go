package sources

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"evenpool/sources/proxyurl"
)

// TestPublishedLists reads lists that others published and compares what comes
// out with what somebody counted by hand.
func TestPublishedLists(t *testing.T) {
	dir := os.Getenv("EVENPOOL_LISTS")
	if dir == "" {
		t.Skip("EVENPOOL_LISTS does not name a directory of published lists")
	}
	files := 0
	for _, c := range []struct {
		file                string
		scheme              proxyurl.Scheme
		format              string
		records, pairs, dup int
		endpoints, rejected int
		rejects             map[Reason]int
		err                 error
	}{
		{file: "databay-labs-free-proxy-list.socks4.plain.txt", scheme: proxyurl.SOCKS4, format: "plain",
			records: 457, pairs: 457, endpoints: 457},
		{file: "ErcinDedeoglu-proxies.socks4.plain.txt", scheme: proxyurl.SOCKS4, format: "plain",
			records: 13039, pairs: 13037, endpoints: 13037, rejected: 2,
			rejects: map[Reason]int{"loopback": 1, "unspecified": 1}},
		{file: "a2u-free-proxy-list.20180121.plain.txt", scheme: proxyurl.SOCKS5, format: "plain",
			records: 76, pairs: 75, endpoints: 75, rejected: 1, rejects: map[Reason]int{"bad-port": 1}},
		{file: "iplocate-free-proxy-list.20260121.scheme.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 655, pairs: 654, endpoints: 654, rejected: 1, rejects: map[Reason]int{"leading-zero": 1}},
		{file: "monosans-proxy-list.all.scheme.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 492, pairs: 492, endpoints: 469},
		{file: "gfpcom-free-proxy-list.http.20250419.glued-lines.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 437, rejected: 437,
			rejects: map[Reason]int{"bad-host": 141, "leading-zero": 209, "unparseable": 87}, err: ErrUnreadable},
		{file: "gfpcom-free-proxy-list.https.20250517.head.scheme.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 6536, pairs: 6533, endpoints: 6533, rejected: 3,
			rejects: map[Reason]int{"cgnat": 1, "leading-zero": 1, "private": 1}},
		{file: "gfpcom-free-proxy-list.vpn-schemes-redacted.scheme.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 37, rejected: 37, rejects: map[Reason]int{"unsupported-scheme": 37}, err: ErrEmpty},
		{file: "clarketm-proxy-list.20170907.html-error-301.txt", scheme: proxyurl.HTTP, format: "plain",
			records: 7, rejected: 7, rejects: map[Reason]int{"unparseable": 7}, err: ErrMarkup},
		{file: "roosterkid-openproxylist.array-bug.junk.txt", scheme: proxyurl.HTTP, format: "plain",
			records: 1323, rejected: 1323, rejects: map[Reason]int{"unparseable": 1323}, err: ErrUnreadable},
		{file: "iplocate-free-proxy-list.20260419.port-flood.scheme.txt", scheme: proxyurl.HTTP, format: "scheme",
			records: 8328, pairs: 8328, endpoints: 8328},
		{file: "zloi-user-hideip.me.connect.colon-country.txt", scheme: proxyurl.HTTP, format: "colon-country",
			records: 1311, pairs: 1311, endpoints: 1311},
		{file: "rdavydov-proxy-list.geo-http.pipe.txt", scheme: proxyurl.HTTP, format: "pipe",
			records: 554, pairs: 554, endpoints: 554},
		{file: "clarketm-proxy-list.20230324.annotated.txt", scheme: proxyurl.HTTP, format: "annotated",
			records: 406, pairs: 400, endpoints: 400, rejected: 6, rejects: map[Reason]int{"unparseable": 6}},
		{file: "roosterkid-openproxylist.HTTPS.20220925.emoji-annotated.txt", scheme: proxyurl.HTTP, format: "emoji",
			records: 42, pairs: 35, endpoints: 35, rejected: 7, rejects: map[Reason]int{"unparseable": 7}},
		{file: "yoannchb-pro-https-proxies.header.csv", scheme: proxyurl.HTTP, format: "csv",
			records: 35, pairs: 35, endpoints: 35},
		{file: "sunny9577-proxy-scraper.http_proxies.noheader.csv", scheme: proxyurl.HTTP, format: "csv",
			records: 40, pairs: 40, endpoints: 40},
		{file: "notcoderguy-geoproxy-db.SOCKS5.hostport-first.csv", scheme: proxyurl.SOCKS5, format: "csv",
			records: 26, pairs: 26, endpoints: 26},
		{file: "jetkai-proxy-list.proxies.columns-are-protocols.csv", scheme: proxyurl.HTTP, format: "csv",
			records: 15, pairs: 60, endpoints: 58},
		{file: "jetkai-proxy-list.proxies-advanced.multi-port.csv", scheme: proxyurl.HTTP, format: "csv",
			records: 4, pairs: 8, endpoints: 5},
		{file: "monosans-proxy-list.proxies.json", scheme: proxyurl.HTTP, format: "json",
			records: 216, pairs: 216, endpoints: 208},
		{file: "a2u-free-proxy-list.strings.json", scheme: proxyurl.SOCKS5, format: "json",
			records: 2, pairs: 2, endpoints: 2},
		{file: "fate0-proxylist.first-half.jsonl", scheme: proxyurl.HTTP, format: "jsonl",
			records: 125, pairs: 125, endpoints: 112},
		{file: "fyvri-fresh-proxy-list.https.yaml", scheme: proxyurl.HTTP, format: "yaml",
			records: 20, pairs: 20, endpoints: 20},
		{file: "fyvri-fresh-proxy-list.https.xml", scheme: proxyurl.HTTP, format: "xml",
			records: 15, pairs: 15, endpoints: 15},
		{file: "free-proxy-list.net.20210814-capture.table.html", scheme: proxyurl.HTTP, format: "html",
			records: 24, pairs: 24, endpoints: 24},
		{file: "vakhov-fresh-proxy-list.semicolon-flags.csv", scheme: proxyurl.HTTP, format: "csv",
			records: 19, pairs: 22, endpoints: 19},
	} {
		files++
		t.Run(c.file, func(t *testing.T) {
			f, err := os.Open(filepath.Join(dir, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			l, err := Parse(f, Source{Name: "list", Scheme: c.scheme}, Limits{})
			if !errors.Is(err, c.err) || (c.err == nil) != (err == nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			for _, n := range []struct {
				what      string
				got, want int
			}{
				{"records", l.Records, c.records},
				{"pairs", l.Pairs, c.pairs},
				{"endpoints", len(l.Candidates), c.endpoints},
				{"duplicates", l.Duplicates, c.dup},
				{"rejected", l.Rejected(), c.rejected},
			} {
				if n.got != n.want {
					t.Errorf("%s: %d, want %d", n.what, n.got, n.want)
				}
			}
			if l.Format != c.format {
				t.Errorf("format %q, want %q", l.Format, c.format)
			}
			if !maps.Equal(l.Rejects, c.rejects) {
				t.Errorf("rejects %v, want %v", l.Rejects, c.rejects)
			}
		})
	}
	if files != 27 {
		t.Errorf("%d files, want all 27", files)
	}
}
