package sources

import "strings"

// maxQuickKeys is how many keys an item has at most that is read quickly.
const maxQuickKeys = 16

// quickYAML does what walkYAML does for the items that most lists have nothing but:
// "- 1.2.3.4:80", or a key and a plain text on each line. The parser allocates more
// than ten kilobytes for each of them. ok is false for all other items, good ones
// and bad ones, of which t is told nothing.
func quickYAML(item string, t *tree) (ok bool, err error) {
	if text, isOne := quickYAMLText(strings.TrimSuffix(strings.TrimPrefix(item, "- "), "\n")); isOne {
		t.value("", text)
		return true, nil
	}
	var keys, values [maxQuickKeys]string
	n, before := 0, "- "
	for line := range strings.Lines(item) {
		line, ok = strings.CutPrefix(strings.TrimSuffix(line, "\n"), before)
		key, value, isPair := strings.Cut(line, ": ")
		if !ok || !isPair || n == maxQuickKeys || !isQuickKey(key) {
			return false, nil
		}
		if values[n], ok = quickYAMLText(value); !ok {
			return false, nil
		}
		for _, other := range keys[:n] {
			if key == other { // which the parser refuses
				return false, nil
			}
		}
		keys[n] = key
		n, before = n+1, "  "
	}
	if n == 0 {
		return false, nil
	}
	if err := t.open("", false); err != nil {
		return true, err
	}
	for i, key := range keys[:n] {
		t.value(key, values[i])
	}
	t.close()
	return true, nil
}

func isQuickKey(key string) bool {
	if key == "" || len(key) > maxName || !isLetter(key[0]) || strings.EqualFold(key, "null") {
		return false
	}
	for i := range len(key) {
		if c := key[i]; !isLetter(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// quickYAMLText reads a text in quotes or without, of characters that stand for
// themselves alone in either.
func quickYAMLText(text string) (said string, ok bool) {
	if n := len(text); n >= 2 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		if text = text[1 : n-1]; text == "" {
			return "", true
		}
	}
	if text == "" || strings.EqualFold(text, "null") {
		return "", false
	}
	sign := true // the character before is one, or there is none
	for i := range len(text) {
		switch c := text[i]; {
		case isLetter(c) || isDigit(c):
			sign = false
		case sign && c != '/' || strings.IndexByte(".:/@_- ", c) < 0:
			return "", false
		default:
			sign = true
		}
	}
	return text, !sign
}
