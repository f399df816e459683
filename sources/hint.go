package sources

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"evenpool/sources/proxyurl"
)

// hintBytes bounds a country's name.
const hintBytes = 40

// maxHints bounds how many different hints one list can have kept: more than there
// are countries, times levels of anonymity. What goes beyond is forgotten.
const maxHints = 4096

// hints keeps each hint of a list once. The one with the number 0 says nothing.
type hints struct {
	known  []Hint // the one with the number n is at n-1
	number map[Hint]uint16
}

// of returns the number of a hint.
func (h *hints) of(hint Hint) uint16 {
	if hint == (Hint{}) {
		return 0
	}
	n, ok := h.number[hint]
	if ok || len(h.known) >= maxHints {
		return n
	}
	if h.number == nil {
		h.number = make(map[Hint]uint16)
	}
	hint = Hint{strings.Clone(hint.Country), strings.Clone(hint.Anonymity)} // of a line that goes
	h.known = append(h.known, hint)
	h.number[hint] = uint16(len(h.known))
	return uint16(len(h.known))
}

func (h *hints) at(number uint16) Hint {
	if number == 0 {
		return Hint{}
	}
	return h.known[number-1]
}

// countryCode reads an ISO 3166-1 alpha-2 code, in any case; "" where it is none.
func countryCode(text string) string {
	if len(text) != 2 || !isLetter(text[0]) || !isLetter(text[1]) {
		return ""
	}
	switch code := strings.ToUpper(text); code {
	case "ZZ", "XX", "NA": // unknown; NA is Namibia, or "not available": neither
		return ""
	default:
		return code
	}
}

// countryName reads what a list calls a country: its code, or its name as it may
// be shown.
func countryName(text string) string {
	text = strings.TrimSpace(text)
	if code := countryCode(text); code != "" {
		return code
	}
	switch strings.ToLower(strings.Trim(text, "-?. ")) {
	case "", "unknown", "n/a", "na", "none", "null", "zz", "xx", "0", "false":
		return ""
	}
	if !utf8.ValidString(text) {
		// Lists that are not UTF-8 are mostly Latin-1, or what Windows makes of it.
		text, _ = charmap.Windows1252.NewDecoder().String(text)
	}
	return proxyurl.Escape(text, hintBytes-len("..."))
}

// likeCountry says whether a text without a label may be a country's name: it
// begins with a capital and has no digit in it, nor anything that addresses have.
func likeCountry(text string) bool {
	if text == "" || text[0] < 'A' || text[0] > 'Z' && text[0] < 0x80 || len(text) > 60 {
		return false
	}
	return !strings.ContainsAny(text, "0123456789:@|;\"<>{}[]\\/=_")
}

// anonymity reads a level of anonymity, as lists write them; "" where it is not
// understood. Levels in numbers count up in one list and down in the next.
func anonymity(text string) string {
	switch name := normal(text); strings.TrimSuffix(name, "proxy") {
	case "transparent", "noa", "n", "none", "notanonymous", "nonanonymous":
		return "transparent"
	case "anonymous", "anm", "a", "distorting", "medium", "average", "mediumanonymous":
		return "anonymous"
	case "elite", "hia", "h", "high", "highanonymous", "highlyanonymous", "highanonymity", "highanon", "eliteanonymous":
		return "elite"
	}
	return ""
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
