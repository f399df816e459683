package sources

import (
	"bytes"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlFormat reads the tables of a page whose head names an address and a port.
// Other tables, and all the rest of the page, are no records; a page without such
// a table is no list.
type htmlFormat struct{}

func (htmlFormat) name() string { return "html" }

func (htmlFormat) readsMarkup() bool { return true }

// fits wants a document type of HTML, or an element of it first.
func (htmlFormat) fits(start []byte) bool {
	if !looksLikeMarkup(start) {
		return false
	}
	z := html.NewTokenizer(bytes.NewReader(start))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return false
		case html.DoctypeToken:
			return len(z.Raw()) > 13 && strings.EqualFold(string(z.Raw()[9:14]), " html")
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			return atom.Lookup(name) != 0 && !isXML(name)
		}
	}
}

// isXML tells names that HTML and lists in XML both have.
func isXML(name []byte) bool {
	switch string(name) {
	case "data", "list", "item", "items", "object", "map", "output", "address", "source", "content":
		return true
	}
	return false
}

// What bounds a page's tables, and the memory for one tag or script.
const (
	maxCell   = 4 << 10
	maxTables = 16 // within one another
	maxToken  = 1 << 20
)

func (f htmlFormat) read(in *input, c *collector) error {
	page := &pageLines{r: in}
	p := htmlPage{z: html.NewTokenizer(page), c: c}
	p.z.SetMaxBuf(maxToken)
	err := p.read()
	if failed := in.failed(); failed != nil {
		return failed
	}
	c.formats[f.name()] += c.list.Records
	switch {
	case p.heads == 0:
		return page.reject(c)
	case err != io.EOF:
		return damagedAt("HTML", c.list.Records)
	case len(p.tables) > 0 && !p.ended:
		return ErrTruncated // a table is open, and so is the page
	}
	return nil
}

// htmlPage reads the tables of one page.
type htmlPage struct {
	z      *html.Tokenizer
	c      *collector
	tables []*htmlTable // that are open, each within the one before
	heads  int          // tables that are lists
	ended  bool         // the page's own end is there
	fields fields
	mute   int // elements that are open whose text is not shown
}

// htmlTable is a table that is open.
type htmlTable struct {
	head  *head
	cells []string // of the row that is read
	cell  []byte   // the one that is read
	open  bool     // a cell is
	wide  bool     // the row has more columns than any
}

func (p *htmlPage) read() error {
	for {
		switch p.z.Next() {
		case html.ErrorToken:
			return p.z.Err()
		case html.TextToken:
			p.text(p.z.Text())
		case html.SelfClosingTagToken:
			p.text([]byte(" "))
		case html.StartTagToken:
			name, _ := p.z.TagName()
			p.start(atom.Lookup(name))
		case html.EndTagToken:
			name, _ := p.z.TagName()
			p.end(atom.Lookup(name))
		}
	}
}

// table returns the innermost table, nil for none.
func (p *htmlPage) table() *htmlTable {
	if len(p.tables) == 0 {
		return nil
	}
	return p.tables[len(p.tables)-1]
}

func (p *htmlPage) text(text []byte) {
	if t := p.table(); t != nil && t.open && p.mute == 0 {
		t.cell = append(t.cell, text[:min(len(text), maxCell-len(t.cell))]...)
	}
}

func (p *htmlPage) start(tag atom.Atom) {
	switch tag {
	case atom.Script, atom.Style, atom.Template:
		p.mute++
		return
	case atom.Table:
		if len(p.tables) < maxTables {
			p.tables = append(p.tables, &htmlTable{})
		}
		return
	}
	t := p.table()
	if t == nil {
		return
	}
	switch tag {
	case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot: // these end a row that is not ended
		p.endRow(t)
	case atom.Td, atom.Th:
		t.endCell()
		t.open = true
	case atom.Br, atom.P, atom.Div:
		p.text([]byte(" "))
	}
}

func (p *htmlPage) end(tag atom.Atom) {
	switch tag {
	case atom.Script, atom.Style, atom.Template:
		p.mute = max(p.mute-1, 0)
		return
	case atom.Body, atom.Html:
		p.ended = true
		return
	}
	t := p.table()
	if t == nil {
		return
	}
	switch tag {
	case atom.Td, atom.Th:
		t.endCell()
	case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot:
		p.endRow(t)
	case atom.Table:
		p.endRow(t)
		p.tables = p.tables[:len(p.tables)-1]
	}
}

func (t *htmlTable) endCell() {
	if !t.open {
		return
	}
	if len(t.cells) < maxColumns {
		t.cells = append(t.cells, strings.Join(strings.Fields(string(t.cell)), " "))
	} else {
		t.wide = true
	}
	t.cell = t.cell[:0]
	t.open = false
}

// endRow takes in a row: as the table's head, if it is one, or as a record.
func (p *htmlPage) endRow(t *htmlTable) {
	t.endCell()
	cells, wide := t.cells, t.wide
	t.cells, t.wide = t.cells[:0], false
	switch {
	case len(cells) == 0:
	case t.head == nil:
		if h := newHead(cells); h != nil && h.address >= 0 {
			t.head = h
			t.head.names = append([]string(nil), cells...) // cells are used again
			p.heads++
		}
	case t.head.again(cells):
	case wide || len(cells) != len(t.head.roles):
		p.c.begin(p.c.list.Records + 1)
		p.c.reject(reasonUnparseable, strings.Join(cells, " | "), showLine)
	default:
		t.head.row(p.c, p.c.list.Records+1, cells, &p.fields)
	}
}
