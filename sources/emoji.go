package sources

import (
	"strings"
	"unicode/utf8"

	"evenpool/sources/proxyurl"
)

// emojiFormat reads "FLAG host:port 123ms CC [Network]": a flag or another sign
// first, then what the annotated format reads.
type emojiFormat struct{}

func (emojiFormat) name() string { return "emoji" }

func (emojiFormat) parse(line string) (record, bool) {
	sign, rest, ok := cutSpace(line)
	if !ok || !isSign(sign) {
		return record{}, false
	}
	if address, _, _ := cutSpace(rest); !beginsLikeAddress(address) {
		return record{}, false
	}
	r, claimed := annotatedFormat{}.parse(rest)
	if !claimed { // nothing behind the address
		e, err := proxyurl.ParseEndpoint(rest)
		r = record{endpoint: e, reject: reasonOf(err)}
	}
	if r.hint.Country == "" {
		r.hint.Country = countryOfFlag(sign)
	}
	return r, true
}

// isSign says whether a word is a picture: a few characters, none of them in ASCII.
func isSign(word string) bool {
	return len(word) <= 40 && utf8.ValidString(word) && // a flag may be of seven characters
		strings.IndexFunc(word, func(r rune) bool { return r < 0x2000 }) < 0
}

// countryOfFlag reads the two regional indicators that a country's flag is written
// with (Unicode Technical Standard 51, annex B).
func countryOfFlag(sign string) string {
	code := ""
	for _, r := range sign {
		if r < 0x1f1e6 || r > 0x1f1ff {
			return ""
		}
		code += string('A' + r - 0x1f1e6)
	}
	return countryCode(code)
}
