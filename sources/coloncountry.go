package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// colonCountryFormat reads "host:port:Country". In place of the country there may
// be the name of a protocol.
type colonCountryFormat struct{}

func (colonCountryFormat) name() string { return "colon-country" }

func (colonCountryFormat) parse(line string) (record, bool) {
	last := strings.LastIndexByte(line, ':')
	if last < 0 || !beginsLikeAddress(line[:last]) || !strings.Contains(line[:last], ":") {
		return record{}, false
	}
	address, text := line[:last], strings.TrimSpace(line[last+1:])
	var r record
	switch named, known := claimsOf(text); {
	case known:
		r.claims = named
	case isCountry(text), countryCode(text) != "":
		r.hint.Country = countryName(text)
	case likeCountry(text): // one that we do not know
	default:
		return record{}, false
	}
	e, err := proxyurl.ParseEndpoint(address)
	r.endpoint, r.reject = e, reasonOf(err)
	return r, true
}
