package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// schemeFormat reads "scheme://RECORD", where RECORD is anything that the other
// line formats take, with at most one "/" behind an address alone. A line that
// begins with the name of a scheme that evenpool does not speak (vmess, trojan,
// ...) is claimed and rejected, whatever follows.
type schemeFormat struct {
	others []lineFormat
}

func (schemeFormat) name() string { return "scheme" }

func (f schemeFormat) parse(line string) (record, bool) {
	name, rest, ok := proxyurl.CutScheme(line)
	if !ok {
		return record{}, false
	}
	scheme, err := proxyurl.ParseScheme(name)
	if err != nil {
		return record{reject: reasonOf(err)}, true
	}
	if addr, port, ok := proxyurl.DottedPort(rest); ok {
		return record{claims: claimOf(scheme), endpoint: proxyurl.DottedEndpoint(addr, port)}, true
	}
	r := parseLine(f.others, strings.TrimSuffix(rest, "/"))
	r.claims = claimOf(scheme)
	return r, true
}
