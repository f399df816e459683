package sources

import (
	"bytes"
	"io"
	"strings"

	"evenpool/sources/proxyurl"
)

// A lineFormat is one way of writing a record on a line of its own. They keep
// nothing between lines: a list may change from one to the other on every line.
type lineFormat interface {
	// name is the format's word, as format's.
	name() string
	// parse reads one line, trimmed and not empty. claimed is false when the line
	// is not written in this format, so that the next one is asked; a line that is
	// claimed and damaged is rejected here, and no other format gets to rescue a
	// part of it.
	parse(line string) (r record, claimed bool)
}

// record is what one line says.
type record struct {
	claims   claims // none when the line names no scheme
	endpoint proxyurl.Endpoint
	hint     Hint
	reject   Reason // "" when the line was understood
}

// lineList is a list whose lines are each written in one of these formats.
type lineList []lineFormat

func (l lineList) name() string { return l[0].name() }

func (lineList) fits([]byte) bool { return false }

func (lineList) readsMarkup() bool { return false }

func (l lineList) read(in *input, c *collector) error {
	q := quickLines{c: c, lines: newLineReader(in, c.limits.MaxLine)}
	for _, f := range l {
		q.scheme = q.scheme || f.name() == schemeFormat{}.name()
		q.plain = q.plain || f == plainFormat{}
	}
	for {
		q.read()
		line, long, err := q.lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if line = trim(line); len(line) == 0 {
			continue
		}
		c.begin(q.lines.number)
		if long {
			c.formats[l[len(l)-1].name()]++
			c.reject(ReasonLineTooLong, string(line), showLong)
			continue
		}
		l.line(c, string(line))
	}
}

// line offers a line to each format.
func (l lineList) line(c *collector, line string) {
	for _, f := range l {
		if r, claimed := f.parse(line); claimed {
			c.formats[f.name()]++
			c.takeRecord(r, line)
			return
		}
	}
	c.formats[l[len(l)-1].name()]++
	c.reject(reasonUnparseable, line, showLine)
}

// parseLine reads a line in whichever of the formats claims it.
func parseLine(formats []lineFormat, line string) record {
	for _, f := range formats {
		if r, claimed := f.parse(line); claimed {
			return r
		}
	}
	return record{reject: reasonUnparseable}
}

// trim takes off white space and comments: a "#" that begins the line or follows
// white space. A "#" elsewhere belongs to a password.
func trim(line []byte) []byte {
	line = bytes.TrimSpace(line)
	for i := 0; i < len(line); i++ {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return bytes.TrimSpace(line[:i])
		}
	}
	return line
}

// beginsLikeAddress says whether a text may be the address, or the host, of a
// record that has more behind it: no password in it, and no prose.
func beginsLikeAddress(text string) bool {
	if text == "" || strings.ContainsAny(text, " \t@/") {
		return false
	}
	if text[0] == '[' {
		return strings.Contains(text, "]")
	}
	return strings.Count(text, ":") <= 1 && strings.Contains(text, ".")
}
