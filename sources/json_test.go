package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// What others write as JSON, and what is left of it.
func TestJSON(t *testing.T) {
	const good = `{"ip":"1.2.3.4","port":80}`
	for _, c := range []struct {
		name, text string
		want       []string // endpoint, schemes and country
		rejects    map[Reason]int
		err        error
	}{
		{name: "a key twice, and two addresses", text: `[{"ip":"1.2.3.5","ip":"1.2.3.6","port":80},` + good + `,` + good + `]`,
			want: []string{"1.2.3.4:80[http]"}, rejects: map[Reason]int{"unparseable": 1}},
		{name: "a key twice, and two ports", text: `[{"ip":"1.2.3.5","port":80,"port":81},` + good + `,` + good + `]`,
			want: []string{"1.2.3.4:80[http]"}, rejects: map[Reason]int{"unparseable": 1}},
		{name: "a key twice that says the same", text: `[{"ip":"1.2.3.4","ip":"1.2.3.4","port":80,"port":"80"}]`, want: []string{"1.2.3.4:80[http]"}},
		{name: "a key twice that says nothing", text: `[{"x":1,"x":2,"ip":"1.2.3.4","port":80}]`, want: []string{"1.2.3.4:80[http]"}},
		{name: "not UTF-8", text: "[{\"ip\":\"1.2.3.4\",\"port\":80,\"country\":\"T\xfcrkiye\",\"\xff\":\"\xfe\"}]", want: []string{"1.2.3.4:80[http]Türkiye"}},
		{name: "not UTF-8 in an address", text: "[" + good + ",{\"ip\":\"1.2.3.5\xff\",\"port\":80}," + good + "]",
			want: []string{"1.2.3.4:80[http]"}, rejects: map[Reason]int{"bad-host": 1}},
		{name: "half of a pair of UTF-16", text: `[{"ip":"1.2.3.4","port":80,"country":"\ud800x"}]`, want: []string{"1.2.3.4:80[http]\ufffdx"}},
		{name: "escapes in keys and in values", text: `[{"\u0069p":"1\u002e2.3.4","p\u006frt":80,"country":"C\u00f4te d'Ivoire"}]`, want: []string{"1.2.3.4:80[http]Côte d'Ivoire"}},
		{name: "a slash that is escaped", text: `["socks5:\/\/1.2.3.4:80"]`, want: []string{"1.2.3.4:80[socks5]"}},
		{name: "a mark of byte order", text: "\xef\xbb\xbf[" + good + "]", want: []string{"1.2.3.4:80[http]"}},
		{name: "several documents", text: `[{"ip":"1.2.3.4","port":80}][{"ip":"1.2.3.5","port":80}] ` + "\n\n" + `["1.2.3.6:80"]{"ip":"1.2.3.7","port":80}`,
			want: []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]", "1.2.3.6:80[http]", "1.2.3.7:80[http]"}},
		{name: "documents that are no objects", text: `[]"1.2.3.5:80" 1 true null [` + good + `]`, want: []string{"1.2.3.4:80[http]"}},
		{name: "null, yes and no", text: `[{"ip":null,"host":"1.2.3.4","proxy":null,"port":80,"https":true,"socks5":false,"country":null}]`, want: []string{"1.2.3.4:80[https]"}},
		{name: "numbers", text: `[{"ip":"1.2.3.5","port":8e1},{"ip":"1.2.3.6","port":80.0},{"ip":"1.2.3.7","port":-80},` + good + `,` + good + `,` + good + `]`,
			want: []string{"1.2.3.4:80[http]"}, rejects: map[Reason]int{"bad-port": 3}},
		{name: "what nobody looks at", text: `[{"x":{"y":[1,[{}],"1.2.3.5:80"]},"ip":"1.2.3.4","port":80,"z":["a",1,null]}]`, want: []string{"1.2.3.4:80[http]"}},
		{name: "in objects of any name", text: `{"status":"ok","x":{"n":1,"ip":"1.2.3.4","port":80},"DE":["1.2.3.5:80"],"y":["1.2.3.6:80"]}`,
			want: []string{"1.2.3.5:80[http]DE", "1.2.3.4:80[http]"}},
		{name: "a comma behind the last", text: `[` + good + `,]`, want: []string{"1.2.3.4:80[http]"}, err: ErrDamaged},
		{name: "no comma", text: `[` + good + good + `]`, want: []string{"1.2.3.4:80[http]"}, err: ErrDamaged},
		{name: "an end too many", text: `[` + good + `]]`, want: []string{"1.2.3.4:80[http]"}, err: ErrDamaged},
		{name: "an end of another kind", text: `[` + good + `}`, want: []string{"1.2.3.4:80[http]"}, err: ErrDamaged},
		{name: "a line's end in a text", text: `[` + good + `,"1.2.3.5` + "\n" + `:80"]`, want: []string{"1.2.3.4:80[http]"}, err: ErrDamaged},
	} {
		l, err := Parse(strings.NewReader(c.text), Source{Scheme: proxyurl.HTTP}, Limits{})
		var got []string
		for _, one := range l.Candidates {
			got = append(got, fmt.Sprintf("%v%v%s", one.Endpoint, one.Schemes, one.Hint.Country))
		}
		if !slices.Equal(got, c.want) || !maps.Equal(l.Rejects, c.rejects) || l.Format != "json" {
			t.Errorf("%s: %s %q, rejects %v; want %q, %v", c.name, l.Format, got, l.Rejects, c.want, c.rejects)
		}
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.err)
		}
	}
}

// Wherever a document ends before its time, it is said to be cut off, not damaged:
// within an escape, a character, a word and a number, too.
func TestL6_JSONThatIsCutOff(t *testing.T) {
	whole := "[{\"ip\":\"1.2.3.4\",\"port\":80} , {\"ip\":\"1.2.3.5\",\"port\":-1.5e+1,\"x\":[true,false,null],\"\\u00f4\\\\\":\"\xc3\xb4\\ud83d\\ude00\\\"\"}\n]"
	if _, err := Parse(strings.NewReader(whole), Source{Scheme: proxyurl.HTTP, Format: "json"}, Limits{}); err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(whole); cut++ {
		if _, err := Parse(strings.NewReader(whole[:cut]), Source{Scheme: proxyurl.HTTP, Format: "json"}, Limits{}); !errors.Is(err, ErrTruncated) {
			t.Errorf("cut before %q: %v, want %v", whole[cut:], err, ErrTruncated)
		}
	}
}

// A damaged line costs itself alone, whatever is wrong with it, and no part of it is
// rescued.
func TestJSONLines(t *testing.T) {
	good := func(i int) string { return fmt.Sprintf(`{"ip":"1.2.3.%d","port":80}`, i) + "\n" }
	deep := strings.Repeat("[", maxDepth)
	if l, got, err := parse(t, good(4)+`{"ip":"1.2.3.5","port":80,"x\"[":"`+deep+`\""}`+"\n", Source{Scheme: proxyurl.HTTP}, Limits{}); err != nil || len(got) != 2 || l.Format != "jsonl" {
		t.Errorf("brackets in texts: %v, %v", got, err)
	}
	for _, bad := range []string{
		`{"ip":"5.6.7.8","port":80`, `{"ip":"5.6.7.8","port":80}}`, `{"ip":"5.6.7.8","port":80}{"ip":"5.6.7.9","port":80}`, `{"ip":"5.6.7.8","port":80},`,
		`{"ip":"5.6.7.8","port":08}`, `{"ip":"5.6.7.8","ip":"5.6.7.9","port":80}`, `{"ip":"5.6.7.8","port":80,"x":tru}`, `5.6.7.8:80`,
		`{"ip":"5.6.7.8","port":80,"x":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `}`,
		`[{"ip":"5.6.7.8","port":80},` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `]`,
	} {
		text := good(4) + good(5) + "\r\n" + bad + "\r\n# x\n" + good(6) + strings.TrimSpace(good(7))
		l, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{})
		want := []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]", "1.2.3.6:80[http]", "1.2.3.7:80[http]"}
		if err != nil || !slices.Equal(got, want) || !maps.Equal(l.Rejects, map[Reason]int{"unparseable": 1}) || l.Samples[0].Line != 4 || l.Format != "jsonl" {
			t.Errorf("%s: %v, %v, rejects %v, samples %v; want %v", bad, got, err, l.Rejects, l.Samples, want)
		}
	}
}

// A decoy is none of the addresses that an object lists, whatever writes the object.
func TestDecoysAmongAddressesOfOneObject(t *testing.T) {
	for _, text := range []string{
		`{"data":{"ip":"1.2.3.4:80","ip":"1.2.3.5:80","exit_ip":"5.6.7.8:80","note":"5.6.7.9:80","ip":"1.2.3.6:80"}}`,
		`<list><data><ip>1.2.3.4:80</ip><ip>1.2.3.5:80</ip><exit_ip>5.6.7.8:80</exit_ip><note>5.6.7.9:80</note><ip>1.2.3.6:80</ip></data></list>`,
	} {
		l, got, err := parse(t, text, Source{Scheme: proxyurl.HTTP}, Limits{})
		if want := []string{"1.2.3.4:80[http]", "1.2.3.5:80[http]", "1.2.3.6:80[http]"}; err != nil || !slices.Equal(got, want) || l.Records != 3 {
			t.Errorf("%s: %v, %d records, %v; want %v", text, got, l.Records, err, want)
		}
	}
}
