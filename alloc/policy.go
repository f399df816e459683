package alloc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Policy says which count a proxy gets when it is admitted: a whole number from 0 to 2^52 in
// digits, or a word. Make one by ParseStart or ParseRestore; "" is the default.
type Policy string

// ParseStart reads a start policy: a whole number, min, median (the lower of two), max or zero. In
// an empty pool the words give the lowest count that it had when its last member went, 0 in a new one.
func ParseStart(text string) (Policy, error) {
	return parsePolicy(text, "start", "min", "median", "max", "zero")
}

// ParseRestore reads a restore policy: those of ParseStart, keep (the count when it was retired)
// or floor (the larger of keep and min).
func ParseRestore(text string) (Policy, error) {
	return parsePolicy(text, "restore", "floor", "keep", "min", "median", "max", "zero")
}

func parsePolicy(text, kind string, words ...string) (Policy, error) {
	if slices.Contains(words, text) {
		return Policy(text), nil
	}
	if text != "" && strings.Trim(text, "0123456789") == "" {
		count, err := strconv.ParseInt(text, 10, 64)
		if err != nil || count > MaxCount {
			return "", fmt.Errorf("%.32s is too large a count; write a whole number up to %d", text, int64(MaxCount))
		}
		return Policy(strconv.FormatInt(count, 10)), nil
	}
	return "", fmt.Errorf("%.64q is no %s policy; write a whole number, %s or %s", text, kind,
		strings.Join(words[:len(words)-1], ", "), words[len(words)-1])
}
