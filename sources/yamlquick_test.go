package sources

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

// Lists are read quickly that others publish.
func TestUsualItemsOfYAMLAreReadQuickly(t *testing.T) {
	for _, item := range []string{
		"- 1.2.3.4:80\n", "- \"socks5://1.2.3.4:80\"\n", "- ip: 1.2.3.4\n", "- ip: 1.2.3.4\n  port: 80\n  country: United States\n  time_taken: 0.5\n  url: http://1.2.3.4:80\n",
		"- category: HTTPS\n  proxy: 1.2.3.4:80\n  ip: 1.2.3.4\n  port: \"80\"\n  checked_at: \"\"\n  last-seen: '2026-08-22'\n",
	} {
		if ok, err := quickYAML(item, newTree(newCollector(Source{}, Limits{}))); !ok || err != nil {
			t.Errorf("%q: %t, %v", item, ok, err)
		}
	}
}

// What is read of an item without the parser is what is read with it.
func FuzzL2_QuickYAMLIsAsTheLongWay(f *testing.F) {
	manyKeys := ""
	for i := range maxQuickKeys {
		manyKeys += fmt.Sprintf("\n  x%d: y", i)
	}
	for _, item := range []string{
		"", "- 1.2.3.4:80", "- socks5://joe:x@1.2.3.4:80", "- \"1.2.3.4:80\"", "- '1.2.3.4:80'", "- null", "- true", "- 1.2.3.4:80\n  5.6.7.8:80", "- 1.2.3.4:80:", "- \"1.2.3.4:80'", "-  1.2.3.4:80",
		"- ip: 1.2.3.4\n  port: 80", "- ip: 1.2.3.4\n  port: \"80\"\n  country: United States\n  checked_at: ''", "- ip: 1.2.3.4\n  ip: 1.2.3.4\n  port: 80", "- ip: 1.2.3.4\n   port: 80",
		"- ip: 1.2.3.4\n port: 80", "- ip: 1.2.3.4\nport: 80", "- ip: 1.2.3.4\n  port:  80", "- ip: 1.2.3.4\n  port: 80 ", "- ip: 1.2.3.4\n  port: 80 # x", "- ip: 1.2.3.4\n  port: 0x50", "- ip: 1.2.3.4\n  port: 080",
		"- ip: 1.2.3.4\n  port: 8_0", "- ip: 1.2.3.4\n  port: 80.0", "- ip: 1.2.3.4\n  port: Null", "- ip: 1.2.3.4\n  port: 80\n  null: x", "- ip: 1.2.3.4\n  port: 80\n  x: a: b", "- ip: 1.2.3.4\n  port: 80\n  x: a:",
		"- ip: 1.2.3.4\n  port: 80\n  x: - y", "- ip: 1.2.3.4\n  port: 80\n  x:", "- ip: 1.2.3.4\n  port: 80\n  x: \"a\\u0041\"", "- ip: 1.2.3.4\n  port: 80\n  x: *a", "- ip: 1.2.3.4\n  port: 80\n  x: !!str y",
		"- ip: 1.2.3.4\n  port: 80\n  true: x\n  y: z\n  1: 2", "- ip: 1.2.3.4\n  port: 80\n  https: yes\n  socks5: true", "- proxy: http://1.2.3.4:80/\n  exit-ip: 5.6.7.8", "- - 1.2.3.4:80", "- ? a", "- ip: |\n  1.2.3.4",
		"- ip: 1.2.3.4\n  port: 80" + manyKeys, "- &a: b", "- *a: b", "- \"a\": b", "- [a: b", "- a]: b", "- ~: b", "- !a: b", "- a#b: c", "- a b: c", "- #a: b", "- a : b", "- 1: a\n  1.0: b", "- a: b\n  " + strings.Repeat("k", maxName+1) + ": x",
		"- ip: 1.2.3.4\r\n  port: 80", "- ip: 1.2.3.4\n  port: 2026-08-22", "- ip: 1.2.3.4\n  port: 10:20:30", "- ip: 1.2.3.4\n  port: 1e2", "- ip: 1.2.3.4\n  port: 80\n  x: a, b", "- ip: 1.2.3.4\n  port: 80\n  x: [a]",
		"- ip: 1.2.3.4\n  port: 80\n  country: T\xc3\xbcrkiye",
	} {
		f.Add(item)
		f.Add(item + "\n")
	}
	f.Fuzz(func(t *testing.T, item string) {
		if len(item) > maxItem {
			return
		}
		read := func(walk func(t *tree) (bool, error)) (l List, ok, failed bool) {
			c := newCollector(Source{Scheme: proxyurl.HTTP}, Limits{}.orDefault())
			tree := newTree(c)
			tree.open("", true)
			ok, err := walk(tree)
			tree.abandon()
			return c.finish(), ok, err != nil
		}
		quick, ok, quickFailed := read(func(t *tree) (bool, error) { return quickYAML(item, t) })
		if !ok {
			if quick.Records != 0 || quickFailed {
				t.Errorf("%q: %+v", item, quick)
			}
			return
		}
		slow, _, slowFailed := read(func(t *tree) (bool, error) { return true, walkYAML([]byte(item), t) })
		if !reflect.DeepEqual(quick, slow) || quickFailed != slowFailed {
			t.Errorf("%q:\nquick %+v %t\nslow  %+v %t", item, quick, quickFailed, slow, slowFailed)
		}
	})
}
