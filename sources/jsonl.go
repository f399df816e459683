package sources

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonLinesFormat reads a document of JSON on each line, so that a damaged one
// costs itself alone. A line is at most maxRecord bytes long.
type jsonLinesFormat struct{}

func (jsonLinesFormat) name() string { return "jsonl" }

func (jsonLinesFormat) readsMarkup() bool { return false }

// fits wants two lines at least that are objects from their beginning to their end,
// and more of these than of others.
func (jsonLinesFormat) fits(start []byte) bool {
	if first, _ := cutSpaces(start); first != '{' {
		return false
	}
	whole, other := 0, 0
	for line := range bytes.Lines(start) {
		ended := bytes.HasSuffix(line, []byte("\n"))
		switch line = bytes.TrimSpace(line); {
		case len(line) == 0 || !ended && whole > 0 && line[0] == '{': // cut by how far we look
		case line[0] == '{' && line[len(line)-1] == '}':
			whole++
		default:
			other++
		}
	}
	return whole >= 2 && whole > other
}

func (f jsonLinesFormat) read(in *input, c *collector) error {
	lines := newLineReader(in, max(maxRecord, c.limits.MaxLine))
	t := newTree(c)
	w := newJSONWalk(t)
	var line bytes.Reader
	defer func() { c.formats[f.name()] += c.list.Records }()
	whole := true // the last line is
	for {
		text, long, err := lines.next()
		switch {
		case err == io.EOF && !whole && !lines.ended:
			return ErrTruncated
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if text = bytes.TrimSpace(text); len(text) == 0 || text[0] == '#' {
			continue
		}
		whole = jsontext.Value(text).IsValid(w.options...)
		line.Reset(text)
		t.number = lines.number
		switch {
		case long:
			c.begin(lines.number)
			c.reject(ReasonLineTooLong, string(text), showLong)
		case !whole || !shallowJSON(text) || w.walk(&line) != nil:
			t.frames = t.frames[:0]
			c.begin(lines.number)
			c.reject(reasonUnparseable, string(text), showLine)
		}
	}
}

// shallowJSON says whether the objects and arrays of a valid document are no deeper
// than they are read: the walk would tell the tree of the first ones before it ends.
func shallowJSON(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return false
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return true
}
