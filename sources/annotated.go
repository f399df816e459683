package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// annotatedFormat reads "host:port CC-N-S! +", as the lists of spys.me are
// written: a country, a level of anonymity (N, A, H), S for TLS, "!" and a last
// sign for what the list's maker found. All but the address may be missing.
type annotatedFormat struct{}

func (annotatedFormat) name() string { return "annotated" }

func (annotatedFormat) parse(line string) (record, bool) {
	address, notes, ok := cutSpace(line)
	if !ok || !beginsLikeAddress(address) || !strings.Contains(address, ":") {
		return record{}, false
	}
	hint, ok := notesOf(notes)
	if !ok {
		return record{reject: reasonUnparseable}, true
	}
	e, err := proxyurl.ParseEndpoint(address)
	return record{endpoint: e, hint: hint, reject: reasonOf(err)}, true
}

// notesOf reads what is written behind an address. ok is false where it is
// anything but notes: prose, or a second address.
func notesOf(text string) (hint Hint, ok bool) {
	for text != "" {
		var word string
		word, rest, _ := cutSpace(text)
		switch {
		case word == "+", word == "-", word == "!":
		case isDelay(word):
		case hint.Country == "" && readCode(word, &hint):
		case word[0] == '[' && strings.HasSuffix(text, "]"), word[0] == '(' && strings.HasSuffix(text, ")"):
			inside := text[1 : len(text)-1] // the name of a network, the rest of the line
			return hint, !strings.ContainsAny(inside, "[]") && !holdsAddress(inside)
		default:
			return Hint{}, false
		}
		text = rest
	}
	return hint, true
}

// readCode reads "CC", "CC-N", "CC-N!", "CC-N-S" or "CC-N-S!".
func readCode(word string, hint *Hint) bool {
	parts := strings.Split(strings.ReplaceAll(word, "!", ""), "-")
	if strings.ToUpper(word) != word || countryCode(parts[0]) == "" && parts[0] != "ZZ" && parts[0] != "XX" {
		return false
	}
	level := ""
	for _, part := range parts[1:] {
		switch part {
		case "N", "A", "H":
			level = anonymity(part)
		case "S":
		default:
			return false
		}
	}
	hint.Country, hint.Anonymity = countryCode(parts[0]), level
	return true
}

// isDelay says whether a word is a time in milliseconds or seconds.
func isDelay(word string) bool {
	number := strings.TrimSuffix(strings.TrimSuffix(word, "s"), "m")
	return number != "" && number != word && strings.Trim(number, "0123456789.") == "" && strings.Count(number, ".") <= 1
}

// cutSpace cuts a text at its first white space.
func cutSpace(text string) (word, rest string, ok bool) {
	i := strings.IndexAny(text, " \t")
	if i < 0 {
		return text, "", false
	}
	return text[:i], strings.TrimLeft(text[i:], " \t"), true
}
