package sources

import (
	"bytes"
	"encoding/csv"
	"io"
	"strings"
)

// csvFormat reads a table of text: with a head that names its columns, with
// columns that are protocols and addresses in each cell, or without a head, where
// each row is told by what is in it. Columns are separated by "," ";" a tab or "|".
//
// It is read row by row, each on its own: a quote that is not closed costs its own
// row and not the rest of the list. A row is at most maxRecord bytes long.
type csvFormat struct{}

func (csvFormat) name() string { return "csv" }

func (csvFormat) readsMarkup() bool { return false }

// headLines is how many lines may stand before a table's head.
const headLines = 20

// fits looks for a head, before any line that names an address.
func (csvFormat) fits(start []byte) bool {
	n, formats := 0, lineFormats()
	for line := range bytes.Lines(start) {
		if h, _ := headOf(string(bytes.TrimSpace(line))); h != nil {
			return true
		}
		text := string(trim(line))
		if text == "" {
			continue
		}
		if n++; n == headLines || parseLine(formats, text).reject == "" {
			return false
		}
	}
	return false
}

// headOf reads a line that may be a table's head.
func headOf(line string) (*head, rune) {
	line = strings.TrimSpace(strings.TrimLeft(line, "#"))
	if holdsAddress(line) {
		return nil, 0
	}
	for _, separator := range separators + "|" {
		if !strings.ContainsRune(line, separator) {
			continue
		}
		names, err := new(splitter).split(line, separator)
		if err != nil {
			continue
		}
		if h := newHead(names); h != nil {
			return h, separator
		}
	}
	return nil, 0
}

func (f csvFormat) read(in *input, c *collector) error {
	t := csvTable{c: c, rows: rowFormats(), lines: newLineReader(in, max(maxRecord, c.limits.MaxLine))}
	err := t.read()
	c.formats[f.name()] += c.list.Records
	return err
}

type csvTable struct {
	c         *collector
	lines     *lineReader
	head      *head // nil until there is one
	separator rune
	rows      []lineFormat // of a table without a head
	splitter  splitter
	fields    fields
	short     bool // the row read last has fewer columns than the head
}

func (t *csvTable) read() error {
	for {
		line, long, err := t.lines.next()
		switch {
		case err == io.EOF && t.short && !t.lines.ended:
			return ErrTruncated
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		t.short = false
		text := string(bytes.TrimRight(line, " \r"))
		switch {
		case strings.TrimSpace(text) == "":
		case long:
			t.c.begin(t.lines.number)
			t.c.reject(ReasonLineTooLong, text, showLong)
		case t.head == nil:
			t.headless(text)
		case text[0] != '#':
			t.row(text)
		}
	}
}

// headless reads a line before the head, or of a table that has none.
func (t *csvTable) headless(text string) {
	if t.c.list.Records < headLines && t.c.index.entries.n == 0 {
		if t.head, t.separator = headOf(text); t.head != nil {
			return
		}
	}
	if text = string(trim([]byte(text))); text != "" {
		t.c.begin(t.lines.number)
		t.c.takeRecord(parseLine(t.rows, text), text)
	}
}

func (t *csvTable) row(text string) {
	number := t.lines.number
	cells, err := t.splitter.split(text, t.separator)
	if err != nil {
		cells, err = t.continued(text)
	}
	for len(cells) > len(t.head.roles) && strings.TrimSpace(cells[len(cells)-1]) == "" {
		cells = cells[:len(cells)-1]
	}
	switch {
	case err != nil:
		t.short = true
	case len(cells) == len(t.head.roles):
		if !t.head.again(cells) {
			t.head.row(t.c, number, cells, &t.fields)
		}
		return
	case len(cells) < len(t.head.roles):
		if t.short = true; t.head.spoken != nil { // columns of different lengths
			t.head.row(t.c, number, cells, &t.fields)
			return
		}
	}
	// With a column too many or too few, nobody knows which is which.
	t.c.begin(number)
	t.c.reject(reasonUnparseable, text, showLine)
}

// continuedLines is how many more lines a row may have, within its quotes.
const continuedLines = 15

// continued reads a row whose first line ends within quotes, together with the
// lines that follow, if that makes a whole row of them.
func (t *csvTable) continued(text string) ([]string, error) {
	length, ok := t.quoteEnd(text, t.lines.ahead(false))
	if !ok {
		length, ok = t.quoteEnd(text, t.lines.ahead(true))
	}
	if ok && length > 0 {
		more := string(t.lines.ahead(true)[:length])
		cells, err := t.splitter.split(text+"\n"+strings.TrimRight(more, "\r\n"), t.separator)
		if err == nil && len(cells) == len(t.head.roles) {
			t.lines.skip(length)
			return cells, nil
		}
	}
	return nil, csv.ErrQuote
}

// quoteEnd returns how much of what follows text belongs to it, to the end of the
// line in which its quotes end; 0 where it makes no row. ok is false where too
// little is known of what follows.
func (t *csvTable) quoteEnd(text string, ahead []byte) (length int, ok bool) {
	open := true
	columns := 1 + strings.Count(text, string(t.separator)) // at the most
	for range continuedLines {
		end := bytes.IndexByte(ahead[length:], '\n')
		if end < 0 {
			return 0, false
		}
		line := ahead[length : length+end+1]
		length += end + 1
		columns += bytes.Count(line, []byte(string(t.separator)))
		if bytes.Count(line, []byte(`"`))%2 != 0 {
			open = !open
		}
		if !open {
			if columns < len(t.head.roles) {
				return 0, true
			}
			return length, true
		}
	}
	return 0, true
}
