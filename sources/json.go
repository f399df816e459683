package sources

import (
	"encoding/json"
	"errors"
	"io"
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
	dec := json.NewDecoder(&jsonBounds{r: in})
	t := newTree(c)
	err := walkJSON(dec, t)
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

// walkJSON tells t what is in one document after the other. It returns
// io.ErrUnexpectedEOF where one ends before its time.
func walkJSON(dec *json.Decoder, t *tree) error {
	dec.UseNumber()
	key, inObject, isKey := "", []bool{}, false // of each of what is open: whether it is an object
	for {
		token, err := dec.Token()
		switch {
		case err == io.EOF && len(inObject) > 0:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		text, isText := token.(string)
		if isKey && isText {
			key, isKey = text, false
			continue
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				if err := t.open(key, v == '['); err != nil {
					return err
				}
				inObject = append(inObject, v == '{')
			} else {
				t.close()
				inObject = inObject[:len(inObject)-1]
			}
		case string:
			t.value(key, v)
		case json.Number:
			t.value(key, v.String())
		case bool:
			if v {
				t.value(key, "true")
			} else {
				t.value(key, "false")
			}
		}
		key, isKey = "", len(inObject) > 0 && inObject[len(inObject)-1]
	}
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
