package sources

import (
	"fmt"
	"strings"

	"evenpool/sources/proxyurl"
)

// A format is one way of writing a list. Formats keep nothing between lists.
type format interface {
	// name is the format's word, as Source.Format and List.Format have it.
	name() string
	// fits says whether a list that begins so is written in this format. A format
	// of single lines never says so: see lineList.
	fits(start []byte) bool
	// readsMarkup says whether a document of HTML or XML may be such a list.
	readsMarkup() bool
	// read hands what the list names to c, to the list's end.
	read(in *input, c *collector) error
}

// formats lists every format. A list is in the first one that its beginning fits;
// where none does, each of its lines is in the first of the line formats that
// claims it.
func formats() []format {
	all := []format{
		jsonLinesFormat{},
		jsonFormat{},
		htmlFormat{},
		xmlFormat{},
		yamlFormat{},
		csvFormat{},
	}
	for _, f := range lineFormats() {
		if f.name() != "csv" { // a row without a head; the format above reads it, too
			all = append(all, lineList{f})
		}
	}
	return all
}

// lineFormats lists the ways of writing a record on a line of its own, in the
// order in which a line is offered to them. The last one claims every line.
func lineFormats() []lineFormat {
	others := []lineFormat{
		colonCountryFormat{},
		pipeFormat{},
		annotatedFormat{},
		emojiFormat{},
		rowFormat{},
		userPassFormat{},
		plainFormat{},
	}
	return append([]lineFormat{schemeFormat{others}}, others...)
}

// rowFormats are the ways of writing a row of a table without a head, and
// addressFormats those of writing an address where other columns, or a key, say
// what else is known.
func rowFormats() []lineFormat {
	return append([]lineFormat{pipeFormat{}, rowFormat{}}, addressFormats()...)
}

func addressFormats() []lineFormat {
	others := []lineFormat{colonCountryFormat{}, userPassFormat{}, plainFormat{}}
	return append([]lineFormat{schemeFormat{others}}, others...)
}

// auto has a list's format found by its content.
const auto = "auto"

// Formats returns the names that Source.Format may have, "auto" first.
func Formats() []string {
	names := []string{auto}
	for _, f := range formats() {
		names = append(names, f.name())
	}
	return names
}

// formatNamed returns the format of a name; nil to have it found.
func formatNamed(name string) (format, error) {
	if name == "" || name == auto {
		return nil, nil
	}
	for _, f := range formats() {
		if f.name() == name {
			return f, nil
		}
	}
	return nil, fmt.Errorf("no format has the name \"%s\": they are %s", proxyurl.Escape(name, 40), strings.Join(Formats(), ", "))
}

// formatOf finds a list's format by its beginning.
func formatOf(start []byte) format {
	for _, f := range formats() {
		if f.fits(start) {
			return f
		}
	}
	return autoLines()
}

// autoLines reads lines of every kind.
func autoLines() format { return lineList(lineFormats()) }
