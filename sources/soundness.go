package sources

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Why a list that was read is not one to use. What a caller sees wraps these,
// with the numbers.
var (
	ErrMarkup     = errors.New("a page of HTML or XML in place of a list")
	ErrUnreadable = errors.New("most lines are unreadable")
	ErrEmpty      = errors.New("the list names no candidate")
	ErrShrunk     = errors.New("the list shrank by more than 80 %")
)

// soundness says whether a list, looked at alone, is one: no page of markup, not
// mostly unreadable, not empty.
func (c *collector) soundness() error {
	l, bad, read := c.list, 0, c.read()
	for reason, n := range l.Rejects {
		if unreadable(reason) {
			bad += n
		}
	}
	switch {
	case c.markup:
		return ErrMarkup
	case 2*bad > read:
		return fmt.Errorf("%w: %d of %d (%s)", ErrUnreadable, bad, read, countsText(l.Rejects))
	case len(l.Candidates) == 0 && l.Records > 0:
		return fmt.Errorf("%w in %d records (%s)", ErrEmpty, l.Records, countsText(l.Rejects))
	case len(l.Candidates) == 0:
		return ErrEmpty
	}
	return nil
}

// shrunk says whether a list has lost so much against the candidates of its last
// good copy that it was more likely broken than shortened.
func shrunk(l List, before int) error {
	if now := len(l.Candidates); 5*now < before {
		return fmt.Errorf("%w: from %d candidates to %d", ErrShrunk, before, now)
	}
	return nil
}

// looksLikeMarkup says whether a list begins like a document of HTML or XML.
func looksLikeMarkup(start []byte) bool {
	line := bytes.TrimLeft(start, " \t\r\n")
	if len(line) < 2 || line[0] != '<' {
		return false
	}
	c := line[1]
	return c == '!' || c == '?' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// countsText writes counts as "bad-port 3, private 1", the largest first.
func countsText(counts map[Reason]int) string {
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b Reason) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(reasons))
	for i, r := range reasons {
		parts[i] = fmt.Sprintf("%s %d", r, counts[r])
	}
	return strings.Join(parts, ", ")
}
