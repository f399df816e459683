package sources

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// xmlFormat reads a document of XML whose elements are records: an address and
// what is known of it in elements or attributes, or an address as a text. It knows
// no entities but those of XML itself.
type xmlFormat struct{}

func (xmlFormat) name() string { return "xml" }

func (xmlFormat) readsMarkup() bool { return true }

// fits takes all markup that is no HTML: htmlFormat is asked before.
func (xmlFormat) fits(start []byte) bool { return looksLikeMarkup(start) }

func (f xmlFormat) read(in *input, c *collector) error {
	page := &pageLines{r: in}
	dec := xml.NewDecoder(transform.NewReader(&xmlBounds{r: page}, runes.ReplaceIllFormed()))
	// Whatever the document says of its charset, it has been made UTF-8 before.
	dec.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	t := newTree(c)
	err := walkXML(dec, t)
	t.abandon()
	if failed := in.failed(); failed != nil {
		return failed
	}
	if c.list.Records == 0 { // an error message, a feed of something else
		return page.reject(c)
	}
	c.formats[f.name()] += c.list.Records
	var syntax *xml.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Msg == "unexpected EOF":
		return ErrTruncated
	case err != nil:
		return damagedAt("XML", c.list.Records)
	}
	return nil
}

// walkXML tells t what is in a document. An element with nothing but a text in it
// is a value, any other an object; attributes are values of it.
func walkXML(dec *xml.Decoder, t *tree) error {
	leaf, isLeaf := "", false // the element opened last, while nothing else is in it
	var text strings.Builder
	for {
		token, err := dec.Token()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		switch v := token.(type) {
		case xml.StartElement:
			if isLeaf {
				if err := t.open(leaf, false); err != nil {
					return err
				}
			}
			leaf, isLeaf = v.Name.Local, true
			text.Reset()
			if len(v.Attr) == 0 {
				continue
			}
			if err := t.open(leaf, false); err != nil {
				return err
			}
			isLeaf = false
			for _, a := range v.Attr {
				t.value(a.Name.Local, a.Value)
			}
		case xml.CharData:
			if text.Len()+len(v) <= maxRecord {
				text.Write(v)
			}
		case xml.EndElement:
			said := strings.TrimSpace(text.String())
			text.Reset()
			switch {
			case isLeaf:
				t.value(leaf, said)
			default:
				if said != "" { // of an element with attributes
					t.value(v.Name.Local, said)
				}
				t.close()
			}
			isLeaf = false
		}
	}
}

// xmlBounds ends with errLongText where a tag or a text is longer than maxRecord:
// the decoder holds each as a whole.
type xmlBounds struct {
	r      io.Reader
	length int // since the last "<"
}

func (b *xmlBounds) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for rest := p[:n]; ; {
		i := bytes.IndexByte(rest, '<')
		if i < 0 {
			b.length += len(rest)
		} else {
			b.length += i
		}
		if b.length > maxRecord {
			return 0, errLongText
		}
		if i < 0 {
			return n, err
		}
		b.length, rest = 0, rest[i+1:]
	}
}
