package sources

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// A document that is cut off is a broken list, wherever it is cut; of what is read
// line by line that can only be seen within a row.
func TestL6_ACutOffListIsNotAGoodOne(t *testing.T) {
	for _, c := range []struct {
		file string
		want func(text, rest string) bool // whether the list may be taken for whole
	}{
		{"json-objects.json", func(_, rest string) bool { return strings.TrimSpace(rest) == "" }},
		{"json-nested.json", func(_, rest string) bool { return strings.TrimSpace(rest) == "" }},
		{"json-texts.json", func(_, rest string) bool { return strings.TrimSpace(rest) == "" }},
		{"xml.xml", func(_, rest string) bool { return strings.TrimSpace(rest) == "" }},
		// Between its tables a page may end.
		{"html.html", func(text, _ string) bool {
			_, text, _ = strings.Cut(text, "</head>")
			return strings.Count(text, "<table>")+strings.Count(text, "<table ")-strings.Count(text, "</table>") <= 0
		}},
		// A row ends with its last column, whatever is in that.
		{"csv-head.csv", func(text, _ string) bool {
			row := text[strings.LastIndexByte(text, '\n')+1:]
			return row == "" || strings.Count(row, ",") >= 6
		}},
		{"jsonl.jsonl", func(text, _ string) bool {
			row := text[strings.LastIndexByte(text, '\n')+1:]
			return row == "" || strings.HasSuffix(row, "}")
		}},
	} {
		whole, err := os.ReadFile(filepath.Join("testdata", "lists", c.file))
		if err != nil {
			t.Fatal(err)
		}
		format := strings.TrimPrefix(filepath.Ext(c.file), ".")
		for i := 1; i < len(whole); i++ {
			text, rest := string(whole[:i]), string(whole[i:])
			l, err := Parse(strings.NewReader(text), Source{Scheme: proxyurl.HTTP, Format: format}, Limits{})
			if err == nil && !c.want(text, rest) {
				t.Errorf("%s, cut before %q: %d candidates and no error", c.file, rest[:min(len(rest), 20)], len(l.Candidates))
			}
			if err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrMarkup) && !errors.Is(err, ErrEmpty) && !errors.Is(err, ErrUnreadable) && !errors.Is(err, ErrDamaged) {
				t.Errorf("%s, cut before %q: %v", c.file, rest[:min(len(rest), 20)], err)
			}
		}
	}
}

// Documents that are well written and no lists.
func TestL6_DocumentsThatAreNoLists(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"an error in JSON", `{"error":"rate limit exceeded","code":429,"retry_after":60}`, ErrEmpty},
		{"an error in JSON with an address", `{"error":"your address 1.2.3.4:80 is blocked","ip":"1.2.3.4"}`, ErrUnreadable},
		{"an empty array", `[]`, ErrEmpty},
		{"an empty object", `{}`, ErrEmpty},
		{"an empty list", `{"data":[],"total":0}`, ErrEmpty},
		{"a text", `"1.2.3.4:80"`, ErrUnreadable},
		{"other objects", `[{"name":"a"},{"name":"b"}]`, ErrUnreadable},
		{"other texts", `["a","b"]`, ErrUnreadable},
		{"an array that is cut off", `[{"ip":"1.2.3.4","port":80},{"ip":"1.2`, ErrTruncated},
		{"an array that goes on", `[{"ip":"1.2.3.4","port":80}] and more`, ErrDamaged},
		{"JSON and a page", `[{"ip":"1.2.3.4","port":80}<html>`, ErrDamaged},
		{"an error in XML", `<?xml version="1.0"?><Error><Code>AccessDenied</Code><HostId>x</HostId></Error>`, ErrMarkup},
		{"a page with a table of something else", `<html><table><tr><th>Host<th>Status</tr><tr><td>1.2.3.4</td><td>down</td></tr></table></html>`, ErrMarkup},
		{"a page with addresses in it", "<html><pre>\n1.2.3.4:80\n1.2.3.5:80\n</pre></html>", ErrMarkup},
		{"a table without rows", `<html><table><tr><th>IP<th>Port</tr></table></html>`, ErrEmpty},
		{"a page cut off before its table", `<html><body><table><tr><th>IP</th><th>Po`, ErrMarkup},
		{"a page cut off in its table", `<html><table><tr><th>IP<th>Port</tr><tr><td>1.2.3.4</td><td>80</td></tr><tr><td>1.2.3.5</td><td>8`, ErrTruncated},
		{"a head alone", "ip,port\n", ErrEmpty},
		{"YAML of something else", "name: x\nsettings:\n  - a: 1\n  - b: 2\n", ErrEmpty},
		{"a list of names in YAML", "- a\n- b\n", ErrUnreadable},
	} {
		_, err := Parse(strings.NewReader(c.text), Source{Scheme: proxyurl.HTTP}, Limits{})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// A page in place of a list is told whatever the list should have been.
func TestL6_APageInPlaceOfAnyFormat(t *testing.T) {
	page := "<!DOCTYPE html>\n<html><body>\n<p>Too many requests</p>\n</body></html>\n"
	for _, format := range Formats() {
		l, err := Parse(strings.NewReader(page), Source{Scheme: proxyurl.HTTP, Format: format}, Limits{})
		if !errors.Is(err, ErrMarkup) || len(l.Candidates) != 0 || l.Rejects["unparseable"] != 4 || len(l.Samples) != 4 || l.Samples[2].Line != 3 {
			t.Errorf("%s: %d candidates, %v, rejects %v, samples %v", format, len(l.Candidates), err, l.Rejects, l.Samples)
		}
	}
}

func TestUnknownFormat(t *testing.T) {
	_, err := Parse(strings.NewReader("1.2.3.4:80\n"), Source{Scheme: proxyurl.HTTP, Format: "csw\x1b"}, Limits{})
	want := `no format has the name "csw\x1b": they are auto, jsonl, json, html, xml, yaml, csv, scheme, colon-country, pipe, annotated, emoji, userpass, plain`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A scheme that is to be found out is claimed like any other.
func TestAnySchemeIsOffered(t *testing.T) {
	_, got, err := parse(t, "1.2.3.4:80\nsocks5://1.2.3.4:80\n1.2.3.5:80\nhttp://1.2.3.6:80\njoe:secret@1.2.3.7:80\n", Source{Scheme: proxyurl.Any}, Limits{})
	want := "1.2.3.4:80[socks5 any] 1.2.3.5:80[any] 1.2.3.6:80[http] joe:secret@1.2.3.7:80[any]"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
}
