package sources

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// yamlFormat reads a list in YAML: a sequence of mappings or texts, or mappings
// that have such sequences in them. Each item of a sequence is parsed by itself, so
// that a damaged one costs itself alone and the list need not be held; it is at
// most maxItem bytes long. A document without such items, written with brackets as
// a whole, is held if it is at most maxRecord bytes long. Aliases are not followed.
type yamlFormat struct{}

func (yamlFormat) name() string { return "yaml" }

func (yamlFormat) readsMarkup() bool { return false }

// fits wants an item of a sequence, or a key with an item or another key under it,
// with nothing before but settings.
func (yamlFormat) fits(start []byte) bool {
	isKey := false
	for line := range bytes.Lines(start) {
		text := string(bytes.TrimRight(line, " \t\r\n"))
		trimmed := strings.TrimLeft(text, " ")
		switch {
		case trimmed == "", trimmed[0] == '#', text == "---", strings.HasPrefix(text, "%YAML"):
			continue
		case isItem(trimmed):
			return true
		case isKey && trimmed != text && (keyOfLine(trimmed) != "" || isSetting(trimmed)):
			return true
		}
		if isKey = keyOfLine(text) != ""; !isKey && !isSetting(text) {
			return false
		}
	}
	return false
}

// isItem says whether a line, without its indentation, begins an item.
func isItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

// keyOfLine returns the key of a line that has nothing but that, "" for another.
func keyOfLine(line string) string {
	key, rest, ok := strings.Cut(line, ":")
	if rest = strings.TrimSpace(rest); !ok || rest != "" && rest[0] != '#' || strings.ContainsAny(key, " \t{}[]") {
		return ""
	}
	return strings.Trim(key, `"'`)
}

// isSetting says whether a line is a key and a value: what may stand before a list.
func isSetting(line string) bool {
	key, _, ok := strings.Cut(line, ": ")
	return ok && key != "" && !strings.ContainsAny(key, " \t.")
}

func (f yamlFormat) read(in *input, c *collector) error {
	text := transform.NewReader(in, runes.ReplaceIllFormed())
	y := yamlList{t: newTree(c), c: c, lines: newLineReader(text, maxItem)}
	err := y.read()
	c.formats[f.name()] += c.list.Records
	if failed := in.failed(); failed != nil {
		return failed
	}
	return err
}

// yamlList reads the items of one list.
type yamlList struct {
	t     *tree
	c     *collector
	lines *lineReader
	keys  []yamlKey // that are open, each further in than the one before

	item   []byte // the one that is read, without its indentation
	open   bool   // one is
	indent int    // of its "-"
	first  int    // its first line's number
	long   bool   // it is longer than maxItem

	items int
	whole []byte // the document so far, while it has no item
	huge  bool   // and that is longer than maxRecord
}

type yamlKey struct {
	indent int
	name   string
}

func (y *yamlList) read() error {
	for {
		line, long, err := y.lines.next()
		switch {
		case err == io.EOF && y.items == 0:
			return y.document()
		case err == io.EOF:
			y.endItem()
			return nil
		case err != nil:
			return err
		}
		y.line(line, long)
	}
}

func (y *yamlList) line(line []byte, long bool) {
	text := bytes.TrimLeft(line, " ")
	indent := len(line) - len(text)
	text = bytes.TrimRight(text, " \t\r")
	switch {
	case len(text) == 0 || text[0] == '#':
		return
	case y.open && indent > y.indent:
		y.add(line, long)
		return
	}
	y.endItem()
	begins := isItem(string(text[:min(len(text), 2)]))
	for len(y.keys) > 0 {
		last := y.keys[len(y.keys)-1].indent
		if last < indent || last == indent && begins { // a sequence may stand right under its key
			break
		}
		y.keys = y.keys[:len(y.keys)-1]
	}
	if begins {
		y.open, y.indent, y.first = true, indent, y.lines.number
		y.items++
		y.add(line, long)
		return
	}
	if key := keyOfLine(string(text)); key != "" && len(y.keys) < maxDepth {
		y.keys = append(y.keys, yamlKey{indent, key})
	}
	if y.items == 0 {
		if y.huge = y.huge || long || len(y.whole)+len(line) > maxRecord; !y.huge {
			y.whole = append(append(y.whole, line...), '\n')
		}
	}
}

// add takes a line into the item.
func (y *yamlList) add(line []byte, long bool) {
	if y.long = y.long || long || len(y.item)+len(line) > maxItem; !y.long {
		y.item = append(append(y.item, line[y.indent:]...), '\n')
	}
}

// endItem hands on the item that was read.
func (y *yamlList) endItem() {
	if !y.open {
		return
	}
	item, long := y.item, y.long
	y.item, y.open, y.long = y.item[:0], false, false
	path, err := y.path()
	defer func() {
		for range path {
			y.t.close()
		}
	}()
	in := y.t.frames[len(y.t.frames)-1]
	switch {
	case err != nil || in.kind == isIgnored:
		return
	case long:
		y.c.begin(y.first)
		y.c.reject(ReasonLineTooLong, string(item), showLong)
		return
	}
	y.t.number = y.first
	quick, err := quickYAML(string(item), y.t)
	if !quick {
		err = walkYAML(item, y.t)
	}
	if err != nil {
		y.c.begin(y.first)
		y.c.reject(reasonUnparseable, string(bytes.TrimSpace(item[1:])), showLine)
	}
}

// path opens what the item is in, and returns how much that was.
func (y *yamlList) path() (opened int, err error) {
	if len(y.keys) > 0 {
		err = y.t.open("", false)
		opened++
	} else {
		err = y.t.open("", true)
		opened++
	}
	for i, key := range y.keys {
		if err != nil {
			return opened, err
		}
		if err = y.t.open(key.name, i == len(y.keys)-1); err == nil {
			opened++
		}
	}
	return opened, err
}

// document reads a list that has no items.
func (y *yamlList) document() error {
	y.t.number = 0
	if y.huge || walkYAML(y.whole, y.t) != nil {
		return damagedAt("YAML", 0)
	}
	return nil
}
