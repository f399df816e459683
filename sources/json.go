package sources

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext" // Go 1.27: encoding/json/jsontext
)

// jsonFormat reads a document of JSON: an array of objects or of texts, or an
// object that has them in it, as deep as it likes. Several documents may follow
// one another.
type jsonFormat struct{}

func (jsonFormat) name() string { return "json" }

func (jsonFormat) readsMarkup() bool { return false }

// fits tells an array from an IPv6 address in brackets, which begins a line.
func (jsonFormat) fits(start []byte) bool {
	first, rest := cutSpaces(start)
	second, _ := cutSpaces(rest)
	switch first {
	case '[':
		return second == '{' || second == '[' || second == ']' || second == '"'
	case '{':
		return second == '"' || second == '}'
	}
	return false
}

// cutSpaces returns the first character that is no white space, 0 for none, and
// what follows.
func cutSpaces(text []byte) (first byte, rest []byte) {
	for i, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, text[i+1:]
		}
	}
	return 0, nil
}

func (f jsonFormat) read(in *input, c *collector) error {
	t := newTree(c)
	w := newJSONWalk(t)
	err := w.walk(&jsonBounds{r: in})
	t.abandon()
	c.formats[f.name()] += c.list.Records
	switch failed := in.failed(); {
	case failed != nil:
		return failed
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrTruncated
	case err != nil:
		return damagedAt("JSON", c.list.Records)
	}
	return nil
}

// jsonWalk tells a tree what is in documents. It makes texts only of what is looked
// at.
type jsonWalk struct {
	t       *tree
	dec     *jsontext.Decoder
	options []jsontext.Options
	keys    map[string]string // the texts of those met, so that each is made once
}

func newJSONWalk(t *tree) *jsonWalk {
	return &jsonWalk{t: t, dec: new(jsontext.Decoder), options: jsonOptions(), keys: make(map[string]string)}
}

// jsonOptions lets pass what lists get wrong: keys that come twice, of which fields
// takes care, and texts that are not UTF-8.
func jsonOptions() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

// walk reads one document after the other. It returns io.ErrUnexpectedEOF, wrapped,
// where one ends before its time.
func (w *jsonWalk) walk(r io.Reader) error {
	w.dec.Reset(r, w.options...)
	key := ""
	for {
		in, length := w.dec.StackIndex(w.dec.StackDepth())
		switch kind := w.dec.PeekKind(); kind {
		case '{', '[':
			if err := w.t.open(key, kind == '['); err != nil {
				return err
			}
			if _, err := w.dec.ReadToken(); err != nil {
				return err
			}
			key = ""
			continue
		case '"', '0', 't', 'f', 'n':
			if in == '{' && length%2 == 0 {
				name, err := w.dec.ReadValue()
				if err != nil {
					return err
				}
				key = w.key(name)
				continue
			}
			if w.t.skips(key) {
				if err := w.dec.SkipValue(); err != nil {
					return err
				}
			} else if v, err := w.dec.ReadValue(); err != nil {
				return err
			} else if kind != 'n' {
				w.t.value(key, unquoted(v))
			}
		default:
			token, err := w.dec.ReadToken()
			switch {
			case err == io.EOF:
				return nil
			case err != nil:
				return err
			}
			if kind := token.Kind(); kind == '}' || kind == ']' {
				w.t.close()
			}
		}
		key = ""
	}
}

func (w *jsonWalk) key(name jsontext.Value) string {
	if key, ok := w.keys[string(name)]; ok {
		return key
	}
	key := unquoted(name)
	if len(w.keys) < maxKeys && len(key) <= maxName {
		w.keys[string(name)] = key
	}
	return key
}

// unquoted returns what a value says: of a text, what is in its quotes.
func unquoted(v jsontext.Value) string {
	switch {
	case len(v) < 2 || v[0] != '"':
		return string(v)
	case bytes.IndexByte(v, '\\') < 0:
		return string(v[1 : len(v)-1])
	}
	text, _ := jsontext.AppendUnquote(nil, v) // its error is about UTF-8
	return string(text)
}

// errLongText says that a text is longer than any in a list.
var errLongText = errors.New("a text too long")

// jsonBounds ends with errLongText where a text or a number is longer than
// maxRecord: the decoder holds each as a whole.
type jsonBounds struct {
	r       io.Reader
	length  int // of the text or number so far
	quoted  bool
	escaped bool
}

func (b *jsonBounds) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	for _, c := range p[:n] {
		b.length++
		switch {
		case b.escaped:
			b.escaped = false
		case c == '"':
			b.quoted, b.length = !b.quoted, 0
		case b.quoted:
			b.escaped = c == '\\'
		case c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			b.length = 0
		}
		if b.length > maxRecord {
			return 0, errLongText
		}
	}
	return n, err
}
