package sources

import (
	"strings"

	"evenpool/sources/proxyurl"
)

// A line that gave no candidate may hold a user and a password, wherever somebody
// chose to put them. What is shown of it is its address, or prose.

// between is what separates the parts of a record on a line; quotes is what else
// parts are written in.
const (
	between = " \t\r\n,;|"
	quotes  = "\"'`{}[]()<>="
)

// showLine makes a line of a form that is known, or of none, safe to show.
func showLine(line string) string {
	name, rest, ok := proxyurl.CutScheme(line)
	if ok {
		if _, err := proxyurl.ParseScheme(name); err == nil && strings.ContainsAny(rest, between) {
			return proxyurl.Escape(name+"://"+mask(rest), sampleBytes)
		}
	}
	switch {
	case ok:
	case strings.ContainsAny(line, between) && !isProse(line),
		strings.ContainsAny(line, between+quotes) && holdsAddress(line):
		return proxyurl.Escape(mask(line), sampleBytes)
	}
	return proxyurl.Redact(line, sampleBytes)
}

// showLong keeps of a line whose end is not known what cannot be a password.
func showLong(line string) string {
	name, rest, ok := proxyurl.CutScheme(line)
	if !ok {
		name, rest = "", line
	} else {
		name += "://"
	}
	if i := strings.IndexAny(rest, ":@"+between); i >= 0 {
		rest = rest[:i]
	}
	return proxyurl.Escape(name+rest, sampleBytes-len("...")) + "..."
}

// mask keeps of the parts of a line its first address and a port behind it, and
// puts "***" for each run of others.
func mask(line string) string {
	var b strings.Builder
	shown, port := false, false // an address; the next part may be its port
	hidden := false             // the part before
	for line != "" {
		end := strings.IndexAny(line, between+quotes)
		part, rest := line, ""
		separator := ""
		if end >= 0 {
			part, separator, rest = line[:end], line[end:end+1], line[end+1:]
		}
		line = rest
		switch {
		case part == "":
			if !hidden {
				b.WriteString(separator)
			}
			continue
		case !shown && holdsAddress(part):
			b.WriteString(proxyurl.Redact(part, sampleBytes))
			shown, port, hidden = true, !strings.Contains(part, ":"), false
		case port && len(part) <= 5 && strings.Trim(part, "0123456789") == "":
			b.WriteString(part)
			port, hidden = false, false
		case !hidden:
			b.WriteString("***")
			port, hidden = false, true
		default:
			continue
		}
		if separator != "" && line != "" {
			b.WriteString(separator)
		}
	}
	return strings.TrimRight(b.String(), between)
}

// holdsAddress says whether numbers with dots between them, or a name and a port,
// are part of a text: an address, or what damage has left of one.
func holdsAddress(text string) bool {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(between+quotes+"@", r) }) {
		host, port, _ := strings.Cut(part, ":")
		if strings.Count(host, ".") >= 2 && strings.Trim(host, "0123456789.") == "" {
			return true
		}
		if len(port) > 1 && strings.Contains(host, ".") && strings.Trim(port, "0123456789") == "" {
			return true
		}
	}
	return false
}

// holdsDotted says whether four numbers with dots between them are in a text,
// whatever is around them.
func holdsDotted(text string) bool {
	dots := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '.' && i > 0 && isDigit(text[i-1]) && i+1 < len(text) && isDigit(text[i+1]):
			if dots++; dots == 3 {
				return true
			}
		case !isDigit(c):
			dots = 0
		}
	}
	return false
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isProse says whether a line reads like a sentence, or like the single word that
// lists are filled with when their maker fails.
func isProse(line string) bool {
	words := strings.Fields(line)
	if len(words) >= 5 {
		return true
	}
	for _, word := range words {
		if strings.ContainsAny(word, between) || strings.Trim(word, "0123456789") == "" {
			return false
		}
	}
	return true
}
