package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// schemeFormat reads "scheme://ADDRESS", where ADDRESS is anything that the plain
// format takes, with at most one "/" behind it. A line that begins with the name
// of a scheme that evenpool does not speak (vmess, trojan, ...) is claimed and
// rejected, whatever follows.
type schemeFormat struct{}

func (schemeFormat) name() string { return "scheme" }

func (schemeFormat) parse(line string) (record, bool) {
	name, rest, ok := proxyurl.CutScheme(line)
	if !ok {
		return record{}, false
	}
	scheme, err := proxyurl.ParseScheme(name)
	if err != nil {
		return record{reject: reasonOf(err)}, true
	}
	e, err := parseAddress(strings.TrimSuffix(rest, "/"))
	return record{scheme: scheme, endpoint: e, reject: reasonOf(err)}, true
}
