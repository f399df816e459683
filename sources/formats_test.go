package sources

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// Small lists of every format, with what is right and what is wrong in it, and
// decoys: addresses that are no proxies, all in 5.6.7.0/24. The list's scheme is
// http.
func TestFormats(t *testing.T) {
	for _, c := range []struct {
		file, format               string
		records, pairs, duplicates int
		rejects                    map[Reason]int
		candidates                 []string // endpoint, schemes, country, anonymity
	}{
		{file: "annotated.txt", format: "annotated", records: 14, pairs: 7,
			rejects: map[Reason]int{"unparseable": 7},
			candidates: []string{
				"1.2.3.4:80[http] DE transparent",
				"1.2.3.5:80[http] US elite",
				"1.2.3.6:80[http] BR anonymous",
				"1.2.3.7:80[http] PE",
				"1.2.3.12:80[http] PE transparent",
				"1.2.3.13:80[http] PE transparent",
				"1.2.3.14:80[http] PE transparent",
			}},
		{file: "colon-country.txt", format: "colon-country", records: 8, pairs: 6,
			rejects: map[Reason]int{"bad-port": 1, "unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http] Germany",
				"1.2.3.5:80[http] Türkiye",
				"1.2.3.6:80[http] Côte d'Ivoire",
				"1.2.3.7:80[http] Congo (DRC)",
				"1.2.3.8:80[http] DE",
				"1.2.3.9:1080[socks5]",
			}},
		{file: "csv-address-first.csv", format: "csv", records: 4, pairs: 3,
			rejects: map[Reason]int{"unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http] DE elite",
				"[2606:4700::1]:1080[http] BR anonymous",
				"proxy.example.org:80[http] PE elite",
			}},
		{file: "csv-columns.csv", format: "csv", records: 4, pairs: 8,
			rejects: map[Reason]int{"bad-port": 1},
			candidates: []string{
				"1.2.3.4:1080[socks4 socks5]",
				"1.2.3.5:80[http https]",
				"1.2.3.6:1080[socks5]",
				"1.2.3.7:808[http]",
				"1.2.3.8:1080[socks4]",
				"1.2.3.10:80[https]",
			}},
		{file: "csv-flags.csv", format: "csv", records: 5, pairs: 6,
			rejects: map[Reason]int{"bad-host": 1},
			candidates: []string{
				"1.2.3.4:80[http https] DE",
				"1.2.3.5:1080[socks4 socks5]",
				"1.2.3.6:80[http] BR",
				"proxy.example.net:81[http] BR",
			}},
		{file: "csv-head.csv", format: "csv", records: 9, pairs: 4,
			rejects: map[Reason]int{"bad-port": 1, "private": 1, "unparseable": 3},
			candidates: []string{
				"1.2.3.4:80[https] DE elite",
				"1.2.3.5:8080[http] BR transparent",
				"1.2.3.6:3128[http] Korea, Republic of anonymous",
				"1.2.3.11:80[https] Two\\x0alines elite",
			}},
		{file: "csv-no-head.csv", format: "csv", records: 6, pairs: 4,
			rejects: map[Reason]int{"leading-zero": 1, "unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http] Germany elite",
				"1.2.3.5:1080[socks4] Brazil anonymous",
				"1.2.3.6:1080[socks5] PE",
				"1.2.3.9:80[http] Korea, Republic of",
			}},
		{file: "csv-ports.csv", format: "csv", records: 4, pairs: 6,
			rejects: map[Reason]int{"unsupported-scheme": 1},
			candidates: []string{
				"1.2.3.4:80[http https] DE",
				"1.2.3.4:1080[socks5] DE",
				"joe:secret@1.2.3.5:80[http] BR",
				"1.2.3.6:80[socks4] PE",
				"1.2.3.6:81[socks4] PE",
			}},
		{file: "csv-tabs.tsv", format: "csv", records: 2, pairs: 2,
			candidates: []string{
				"1.2.3.4:80[http]",
				"1.2.3.5:1080[socks5]",
			}},
		{file: "emoji.txt", format: "emoji", records: 6, pairs: 3,
			rejects: map[Reason]int{"bad-host": 1, "unparseable": 2},
			candidates: []string{
				"1.2.3.4:80[http] DE",
				"1.2.3.5:8080[http] BR",
				"1.2.3.6:3128[http]",
			}},
		{file: "html.html", format: "html", records: 6, pairs: 4,
			rejects: map[Reason]int{"bad-port": 1, "unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[https] DE elite",
				"1.2.3.5:8080[http] BR transparent",
				"1.2.3.6:80[http] Korea, Republic of anonymous",
				"1.2.3.8:1080[socks5]",
			}},
		{file: "json-nested.json", format: "json", records: 5, pairs: 5,
			candidates: []string{
				"1.2.3.4:80[http]",
				"1.2.3.4:1080[socks5]",
				"1.2.3.5:1080[socks4]",
				"1.2.3.6:80[http] DE",
				"1.2.3.7:81[http]",
			}},
		{file: "json-objects.json", format: "json", records: 11, pairs: 8,
			rejects: map[Reason]int{"bad-port": 1, "unparseable": 3, "unsupported-scheme": 1},
			candidates: []string{
				"1.2.3.4:1080[socks5] DE",
				"1.2.3.5:80[http https] BR elite",
				"1.2.3.6:1080[socks4] Peru",
				"1.2.3.7:80[http]",
				"joe:secret@1.2.3.14:80[http]",
				"1.2.3.15:80[https]",
				"1.2.3.15:81[https]",
			}},
		{file: "json-texts.json", format: "json", records: 7, pairs: 6,
			rejects: map[Reason]int{"unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http]",
				"1.2.3.5:1080[socks5]",
				"joe:secret@1.2.3.6:80[http]",
				"1.2.3.8:81[http] DE",
				"1.2.3.9:80[http]",
				"1.2.3.10:80[http]",
			}},
		{file: "jsonl.jsonl", format: "jsonl", records: 5, pairs: 3,
			rejects: map[Reason]int{"unparseable": 2},
			candidates: []string{
				"1.2.3.4:80[http https] DE elite",
				"1.2.3.7:80[socks5]",
			}},
		{file: "pipe.txt", format: "pipe", records: 5, pairs: 3,
			rejects: map[Reason]int{"bad-host": 1, "unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http] United States",
				"1.2.3.5:8080[http] Germany elite",
				"1.2.3.6:80[socks5] BR",
			}},
		{file: "plain.txt", format: "plain", records: 6, pairs: 3, duplicates: 1,
			rejects: map[Reason]int{"private": 1, "unparseable": 1},
			candidates: []string{
				"1.2.3.4:80[http socks5]",
				"1.2.3.5:8080[http]",
			}},
		{file: "scheme.txt", format: "scheme", records: 7, pairs: 5,
			rejects: map[Reason]int{"unparseable": 1, "unsupported-scheme": 1},
			candidates: []string{
				"1.2.3.4:80[http]",
				"1.2.3.5:1080[socks5]",
				"joe:secret@1.2.3.6:443[https]",
				"joe:secret@1.2.3.7:1080[socks4]",
				"1.2.3.8:80[http] US",
			}},
		{file: "userpass.txt", format: "userpass", records: 5, pairs: 3,
			rejects: map[Reason]int{"bad-user": 1, "unparseable": 1},
			candidates: []string{
				"joe:secret@1.2.3.4:80[http]",
				"joe:secret@1.2.3.5:80[http]",
				"joe:s%40cret@proxy.example.org:8080[http]",
			}},
		{file: "xml.xml", format: "xml", records: 6, pairs: 5,
			rejects: map[Reason]int{"bad-port": 1},
			candidates: []string{
				"1.2.3.4:80[https]",
				"1.2.3.5:1080[socks5] DE",
				"1.2.3.6:80[http] BR",
				"1.2.3.8:80[http]",
				"1.2.3.9:80[http]",
			}},
		{file: "yaml.yaml", format: "yaml", records: 9, pairs: 5,
			rejects: map[Reason]int{"bad-port": 1, "unparseable": 2, "unsupported-scheme": 1},
			candidates: []string{
				"1.2.3.4:80[https]",
				"joe:secret@1.2.3.5:1080[socks5]",
				"1.2.3.8:80[http]",
				"1.2.3.11:80[http] BR",
				"1.2.3.12:1080[socks5]",
			}},
	} {
		for _, format := range []string{auto, c.format} {
			t.Run(c.file+"/"+format, func(t *testing.T) {
				f, err := os.Open(filepath.Join("testdata", "lists", c.file))
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				l, err := Parse(f, Source{Scheme: proxyurl.HTTP, Format: format}, Limits{})
				if err != nil && format == auto {
					t.Error(err)
				}
				var got []string
				for _, one := range l.Candidates {
					got = append(got, strings.TrimSpace(fmt.Sprintf("%v%v %s %s", one.Endpoint, one.Schemes, one.Hint.Country, one.Hint.Anonymity)))
				}
				if format == auto || !strings.Contains(c.file, ".txt") {
					if !slices.Equal(got, c.candidates) {
						t.Errorf("candidates\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.candidates, "\n"))
					}
					if l.Format != c.format || l.Records != c.records || l.Pairs != c.pairs || l.Duplicates != c.duplicates || !maps.Equal(l.Rejects, c.rejects) {
						t.Errorf("format %s, %d records, %d pairs, %d duplicates, rejects %v; want %s, %d, %d, %d, %v",
							l.Format, l.Records, l.Pairs, l.Duplicates, l.Rejects, c.format, c.records, c.pairs, c.duplicates, c.rejects)
					}
				}
				// A format of single lines that is named reads these alone.
				for _, one := range got {
					endpoint, _, _ := strings.Cut(one, "[http")
					if !slices.ContainsFunc(c.candidates, func(right string) bool { return strings.HasPrefix(right, endpoint) }) {
						t.Errorf("%s is no candidate of this list", one)
					}
				}
			})
		}
	}
}
