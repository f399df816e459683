package sources

import (
	"cmp"
	"errors"
	"strings"
)

// tree finds the records of a document of objects, arrays and values: JSON, YAML
// or XML. The parser of the document tells it what it meets, in order:
//
//	open, with the key that the object or array has in its object, "" within an array
//	value, likewise
//	close, at the end of each object and array
//
// A record is an object that names an address, or a text within an array of
// records. What is within a record says more of it (the country of its location,
// its protocols), and is no record itself, unless its key says so: a list may tell
// where a proxy's requests come from, or give an example.
//
// It keeps of a document what is open, and some records of which it is not known
// yet whether they are within another.
type tree struct {
	c       *collector
	formats []lineFormat // of texts that are addresses
	number  int          // of the line that is read, or 0 to count records
	frames  []frame
	roles   map[string]role // of the keys met, so that each is looked at once
}

// frame is an object or array that is open.
type frame struct {
	kind    kind
	array   bool
	claims  claims // of what is in it, where its key is a protocol
	country string // likewise
	fields  fields
	port    portClaim // of an object of kind isProtocols
	role    role      // of the key, for kind isPlace
	found   bool      // a record in it has been handed on
	waiting []fields  // records found in it, until it is known whether it is one itself
	full    bool      // it had too many of them to be one
	cells   []string  // of an array within an array of records
}

// kind says what the content of an object or array is.
type kind uint8

const (
	isIgnored   kind = iota // nothing
	isList                  // records
	isUnknown               // records, if it is objects and not within a record
	isProtocols             // what a record speaks
	isPorts                 // a record's ports
	isPlace                 // where a record is
)

// maxWaiting is how many records may wait: what has more of them in it is no
// record, but a list.
const maxWaiting = 16

// errDepth says that a document is nested deeper than any list.
var errDepth = errors.New("nested too deep")

// maxKeys bounds how many keys are kept with what they stand for.
const maxKeys = 256

func newTree(c *collector) *tree {
	return &tree{c: c, formats: addressFormats(), roles: make(map[string]role)}
}

func (t *tree) role(key string) role {
	r, ok := t.roles[key]
	if !ok {
		r = roleOf(key)
		if len(t.roles) < maxKeys && len(key) <= maxName {
			t.roles[strings.Clone(key)] = r // it may be a part of much more
		}
	}
	return r
}

// open begins an object or an array.
func (t *tree) open(key string, array bool) error {
	if len(t.frames) >= maxDepth {
		return errDepth
	}
	next := frame{kind: isList, array: array}
	if len(t.frames) > 0 {
		next = t.within(&t.frames[len(t.frames)-1], key, array)
	}
	t.frames = append(t.frames, next)
	return nil
}

// within says what an object or array is by its key and by what it is in.
func (t *tree) within(f *frame, key string, array bool) frame {
	next := frame{kind: f.kind, array: array, claims: f.claims, country: f.country, role: f.role}
	if f.array || f.kind == isIgnored || f.kind == isProtocols {
		return next
	}
	r := t.role(key)
	if f.kind == isPlace {
		if next.role = r; r != rolePlace && r != roleCountry && normal(key) != "names" {
			next.kind = isIgnored
		} else if r == roleNone {
			next.role = f.role // the names of what it is in
		}
		return next
	}
	next.role = r
	switch r {
	case roleList, roleAddress, roleIP, roleHost:
		next.kind = isList
	case roleProtocolFlag:
		next.kind, next.claims = isList, protocols[normal(key)]
	case roleProtocol, roleType:
		next.kind = isProtocols
	case rolePort:
		next.kind = isPorts
	case rolePlace, roleCountry:
		next.kind = isPlace
	case roleDecoy:
		next.kind = isIgnored
	default:
		next.kind = isUnknown
		if code := countryCode(key); code == key && code != "" { // a list for each country
			next.kind, next.country = isList, code
		}
	}
	return next
}

// skips says whether a value that comes now with this key tells nothing.
func (t *tree) skips(key string) bool {
	if len(t.frames) == 0 {
		return true
	}
	switch f := &t.frames[len(t.frames)-1]; f.kind {
	case isIgnored:
		return true
	case isList:
		return !f.array && t.role(key) == roleNone
	case isUnknown:
		return f.array || t.role(key) == roleNone
	}
	return false
}

// value takes in a text, a number, or yes or no, as it is written.
func (t *tree) value(key, text string) {
	if len(t.frames) == 0 { // a document of one text
		return
	}
	f := &t.frames[len(t.frames)-1]
	switch f.kind {
	case isList:
		switch {
		case f.array && t.inArray():
			if len(f.cells) <= maxColumns { // one more is one too many
				f.cells = append(f.cells, text)
			}
		case f.array:
			t.address(f, text)
		default:
			t.field(f, key, text)
		}
	case isUnknown:
		if !f.array {
			t.field(f, key, text)
		}
	case isProtocols:
		t.protocol(f, key, text)
	case isPorts:
		if f.array {
			t.object().addPort(portClaim{port: text})
		}
	case isPlace:
		t.place(f, key, text)
	}
}

// inArray says whether what is open is within an array.
func (t *tree) inArray() bool {
	return len(t.frames) > 1 && t.frames[len(t.frames)-2].array
}

// field takes in a value of an object that may be a record.
func (t *tree) field(f *frame, key, text string) {
	r := t.role(key)
	switch r {
	case roleProtocolFlag:
		if f.kind == isList && holdsAddress(text) { // {"http": "1.2.3.4:80"}
			t.address(&frame{claims: protocols[normal(key)], country: f.country}, text)
			f.found = true
			return
		}
	case roleIP, roleHost:
		if t.oneMore(f, cmp.Or(f.fields.ip, f.fields.host), text) {
			return
		}
	case roleAddress:
		if t.oneMore(f, f.fields.address, text) {
			return
		}
	}
	f.fields.set(r, key, text)
}

// oneMore takes in an address of an object that is no record, but a list of them,
// <ip>1.2.3.4:80</ip><ip>1.2.3.5:80</ip>, and says whether it is. before is what the
// object's fields hold of the same kind.
func (t *tree) oneMore(f *frame, before, text string) bool {
	if f.kind != isList || f.fields.port != "" || !isAddress(text) || !f.full && (before == text || !isAddress(before)) {
		return false
	}
	if !f.full {
		f.full = true
		f.fields.reset()
		t.address(f, before)
	}
	t.address(f, text)
	return true
}

// isAddress says whether a text is a whole address.
func isAddress(text string) bool {
	_, _, err := parseURL(text)
	return err == nil
}

// address takes in a text that is a record.
func (t *tree) address(f *frame, text string) {
	r := parseLine(t.formats, text)
	if r.claims == 0 {
		r.claims = f.claims
	}
	if r.hint.Country == "" {
		r.hint.Country = f.country
	}
	t.c.begin(t.record())
	t.c.takeRecord(r, text)
	f.found = true
}

func (t *tree) protocol(f *frame, key, text string) {
	record := t.object()
	switch r := t.role(key); {
	case f.array:
		record.protocol(roleProtocol, text)
	case r == roleProtocolFlag:
		record.set(r, key, text)
	default:
		f.port.set(r, text)
	}
}

func (t *tree) place(f *frame, key, text string) {
	record := t.object()
	switch r := t.role(key); {
	case r == roleCode && (f.role == roleCountry || normal(key) != "code"):
		record.set(roleCode, key, text)
	case r == roleCountry:
		record.set(roleCountry, key, text)
	case f.role == roleCountry && (normal(key) == "name" || normal(key) == "en"):
		record.set(roleCountry, key, text)
	}
}

// object returns the fields of the object that may be a record and that is nearest:
// the places, protocols and ports in it are its own.
func (t *tree) object() *fields {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if f := &t.frames[i]; !f.array && (f.kind == isList || f.kind == isUnknown) {
			return &f.fields
		}
	}
	return new(fields) // of no record
}

// close ends an object or an array.
func (t *tree) close() {
	f := t.frames[len(t.frames)-1]
	t.frames = t.frames[:len(t.frames)-1]
	listed := len(t.frames) > 0 && t.frames[len(t.frames)-1].array
	switch {
	case len(f.cells) > 0:
		t.row(&f)
	case f.kind == isProtocols && !f.array:
		t.object().addPort(f.port)
	case f.array || f.kind != isList && f.kind != isUnknown:
	case f.fields.named():
		if f.fields.protocols == 0 {
			f.fields.protocols = f.claims
		}
		if f.fields.hint.Country == "" {
			f.fields.hint.Country = f.country
		}
		f.waiting = nil // they are within a record, and none themselves
		t.hand(f.kind, f.fields)
	case f.kind == isList && (listed || f.fields.port != "") && !f.found && len(f.waiting) == 0:
		t.c.begin(t.record()) // an element of a list, and no record
		t.c.reject(reasonUnparseable, f.fields.shown(portClaim{}), asIs)
	}
	for _, record := range f.waiting {
		t.hand(f.kind, record)
	}
	if len(t.frames) > 0 {
		t.frames[len(t.frames)-1].found = t.frames[len(t.frames)-1].found || f.found
	}
}

// hand passes on a record that is in, or was found in, what has just been closed.
func (t *tree) hand(k kind, record fields) {
	if k == isList {
		t.c.record(t.record(), &record)
		t.markFound()
		return
	}
	in := &t.frames[len(t.frames)-1] // what is not a list is in something
	in.waiting = append(in.waiting, record)
	if len(in.waiting) <= maxWaiting && !in.full {
		return
	}
	if !t.inRecord() {
		for _, record := range in.waiting {
			t.c.record(t.record(), &record)
		}
		t.markFound()
	}
	in.waiting, in.full = in.waiting[:0], true
}

func (t *tree) markFound() {
	if len(t.frames) > 0 {
		t.frames[len(t.frames)-1].found = true
	}
}

// inRecord says whether what is open is within a record, as far as that is known.
func (t *tree) inRecord() bool {
	for i := len(t.frames) - 1; i >= 0; i-- {
		if f := &t.frames[i]; !f.array && f.fields.named() {
			return true
		} else if f.kind == isList {
			return false
		}
	}
	return false
}

// row takes in an array within an array: several addresses, or the columns of one.
func (t *tree) row(f *frame) {
	f.found = true
	if len(f.cells) > maxColumns {
		t.c.begin(t.record())
		t.c.reject(reasonUnparseable, strings.Join(f.cells[:2], ","), showLine)
		return
	}
	addresses := true
	for _, cell := range f.cells {
		addresses = addresses && isAddress(cell)
	}
	if addresses {
		for _, cell := range f.cells {
			t.address(f, cell)
		}
		return
	}
	r := parseFields(f.cells)
	if r.claims == 0 {
		r.claims = f.claims
	}
	t.c.begin(t.record())
	t.c.takeRecord(r, strings.Join(f.cells, ","))
}

// abandon ends a document that is broken: what is open is dropped, and what was
// found in it is told.
func (t *tree) abandon() {
	for _, f := range t.frames {
		for _, record := range f.waiting {
			t.c.record(t.record(), &record)
		}
	}
	t.frames = t.frames[:0]
}

// record returns the number of the record that comes now.
func (t *tree) record() int {
	if t.number != 0 {
		return t.number
	}
	return t.c.list.Records + 1
}
