package sources

import (
	"bufio"
	"encoding/csv"
	"io"
	"strings"

	"evenpool/sources/proxyurl"
)

// separators are what columns are separated by, in the order in which they are
// tried.
const separators = ",;\t"

// rowFormat reads one row of a table without a head: "host,port,...",
// "host:port,..." or, with a protocol before either, "protocol,host,...". What the
// other columns are is told by what is in them.
type rowFormat struct{}

func (rowFormat) name() string { return "csv" }

func (rowFormat) parse(line string) (record, bool) {
	separator := separatorOf(line)
	if separator == 0 {
		return record{}, false
	}
	fields, err := new(splitter).split(line, separator)
	if err != nil || len(fields) < 2 {
		return record{}, false
	}
	first := strings.TrimSpace(fields[0])
	if _, known := claimsOf(first); known {
		first = strings.TrimSpace(fields[1])
	}
	if !beginsLikeAddress(first) {
		return record{}, false
	}
	return parseFields(fields), true
}

// separatorOf returns the first separator of a line's columns; 0 for none.
func separatorOf(line string) rune {
	for _, r := range separators {
		if strings.ContainsRune(line, r) {
			return r
		}
	}
	return 0
}

// splitter cuts lines into their columns. Its zero value is ready.
type splitter struct {
	line strings.Reader
	buf  *bufio.Reader
}

func (s *splitter) split(line string, separator rune) ([]string, error) {
	switch {
	case strings.IndexByte(line, '"') < 0 && strings.Count(line, string(separator)) < maxColumns:
		return strings.Split(line, string(separator)), nil // what the reader below would give
	case strings.IndexByte(line, '"') < 0:
		return nil, csv.ErrFieldCount
	case strings.Count(line, `"`)%2 != 0:
		return nil, csv.ErrQuote
	}
	s.line.Reset(line)
	if s.buf == nil {
		s.buf = bufio.NewReader(&s.line)
	} else {
		s.buf.Reset(&s.line)
	}
	r := csv.NewReader(s.buf) // which takes the buffer as its own
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1
	fields, err := r.Read()
	if err == io.EOF || len(fields) > maxColumns {
		err = csv.ErrFieldCount
	}
	return fields, err
}

// parseFields reads the columns of a row without a head. The address is the first
// one, or the second behind a protocol.
func parseFields(fields []string) (r record) {
	if named, known := claimsOf(fields[0]); known {
		r.claims, fields = named, fields[1:]
	}
	address := strings.TrimSpace(fields[0])
	notes := fields[1:]
	var err error
	if strings.HasSuffix(address, "]") || !strings.Contains(address, ":") {
		if len(notes) == 0 {
			return record{reject: reasonUnparseable}
		}
		r.endpoint, err = joinAddress(address, strings.TrimSpace(notes[0]))
		notes = notes[1:]
	} else {
		r.endpoint, err = proxyurl.ParseEndpoint(address)
	}
	if r.reject = reasonOf(err); r.reject != "" {
		return r
	}
	for _, note := range notes {
		note = strings.TrimSpace(note)
		if (holdsAddress(note) || holdsDotted(note)) && note != r.endpoint.Host() { // two records glued together
			return record{reject: reasonUnparseable}
		}
		named, known := claimsOf(note)
		switch level := anonymity(note); {
		case known:
			r.claims |= named
		case len(note) > 1 && level != "":
			r.hint.Anonymity = level
		case countryCode(note) != "" && strings.ToUpper(note) == note:
			r.hint.Country = countryCode(note)
		case r.hint.Country == "":
			if country, _, _ := strings.Cut(note, " - "); isCountry(country) { // "Brazil - Novo Hamburgo"
				r.hint.Country = countryName(country)
			}
		}
	}
	return r
}

// joinAddress makes an endpoint of a host, an IPv6 address with or without its
// brackets, and a port.
func joinAddress(host, port string) (proxyurl.Endpoint, error) {
	number, err := proxyurl.ParsePort(port)
	if inside, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inside, "]") && strings.Contains(inside, ":") {
		host = strings.TrimSuffix(inside, "]")
	}
	e, hostErr := proxyurl.NewEndpoint(host, max(number, 1), "", "")
	switch {
	case hostErr != nil: // the host is told first
		return proxyurl.Endpoint{}, hostErr
	case err != nil:
		return proxyurl.Endpoint{}, err
	}
	return e, nil
}
