package sources

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// Limits bounds what one list can cost. A field that is zero has its default.
type Limits struct {
	MaxBytes      int64 // in the whole list, unpacked; default 16 MiB; more is an error
	MaxCandidates int   // default 200,000; those beyond it are rejected and counted
	// MaxLine is how many bytes a line has at most, where a line is a record;
	// default 512. A longer one is rejected.
	MaxLine int
}

func (l Limits) orDefault() Limits {
	return Limits{
		MaxBytes:      cmp.Or(l.MaxBytes, 16<<20),
		MaxCandidates: cmp.Or(l.MaxCandidates, 200_000),
		MaxLine:       cmp.Or(l.MaxLine, 512),
	}
}

// What bounds records that are more than an address on a line: a row of a table,
// an object. A list of 16 MiB is read within these, whatever it is like.
const (
	maxRecord  = 64 << 10 // bytes in a row of CSV, a line of JSON, a string of JSON, a text of XML
	maxItem    = 16 << 10 // bytes in one item of a list in YAML
	maxColumns = 256      // in a row
	maxDepth   = 32       // objects, arrays and elements within one another
)

const (
	inputBuffer = maxRecord + 4<<10 // holds the longest row and its end
	sniffedList = 32 << 10          // of a list, to tell its format
)

// Parse reads a list in the format that src names, or in the one that its
// beginning shows it is written in. A bad record costs itself alone. src's own
// MaxBytes and MaxCandidates go before those of limits.
//
// An error is one of ErrTooLarge, ErrMarkup, ErrUnreadable, ErrEmpty, ErrTruncated
// and ErrDamaged (find them with errors.Is), r's own, or, before anything is read,
// says that there is no format of the name that src gives. The list holds what was
// read until then: it is for showing what was wrong, not for use.
//
// r need not be UTF-8; what is not is read byte by byte where it is part of a name
// that is shown, and is part of no address.
func Parse(r io.Reader, src Source, limits Limits) (List, error) {
	limits.MaxBytes = cmp.Or(src.MaxBytes, limits.MaxBytes)
	limits.MaxCandidates = cmp.Or(src.MaxCandidates, limits.MaxCandidates)
	limits = limits.orDefault()
	f, err := formatNamed(src.Format)
	if err != nil {
		return List{Source: src.Name}, err
	}
	in := newInput(&boundedReader{r: r, limit: limits.MaxBytes})
	c := newCollector(src, limits)
	start := in.start()
	if f == nil {
		f = formatOf(start)
	}
	if looksLikeMarkup(start) && !f.readsMarkup() {
		c.markup, f = true, autoLines() // a page in place of the list: its lines are told, and what it is
	}
	err = f.read(in, c)
	list := c.finish()
	if err != nil {
		return list, err
	}
	return list, c.soundness()
}

// input is the text of a list, from behind its byte order mark.
type input struct {
	*bufio.Reader
	below *sticky
}

func newInput(r io.Reader) *input {
	below := &sticky{r: r}
	in := &input{bufio.NewReaderSize(below, inputBuffer), below}
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		in.Discard(3)
	}
	return in
}

// start returns the beginning of what has not been read yet.
func (in *input) start() []byte {
	start, _ := in.Peek(sniffedList)
	return start
}

// failed returns the error of what the list is read from, if it is not its end.
func (in *input) failed() error {
	if in.below.err == io.EOF {
		return nil
	}
	return in.below.err
}

// sticky is a reader whose error stays, so that it is not lost on who merely looks
// ahead.
type sticky struct {
	r   io.Reader
	err error
}

func (s *sticky) Read(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.r.Read(p)
	}
	return n, s.err
}

// Errors of documents that are read as a whole.
var (
	// ErrTruncated says that a list ends in the middle of a record or a document.
	ErrTruncated = errors.New("the list is cut off")
	// ErrDamaged says that a document of JSON, XML or YAML is not one from some
	// place on.
	ErrDamaged = errors.New("the document is damaged")
)

func damagedAt(what string, record int) error {
	return fmt.Errorf("%w: %s behind record %d", ErrDamaged, what, record)
}
