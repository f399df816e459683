package sources

import "evenpool/sources/proxyurl"

// A format is one way of writing a record on a line of its own. Formats are
// stateless: a list may change from one to the other on every line.
type format interface {
	// name is the format's word, as List.Format shows it.
	name() string
	// parse reads one line, trimmed and not empty. claimed is false when the line
	// is not written in this format, so that the next one is asked; a line that is
	// claimed and damaged is rejected here, and no other format gets to rescue a
	// part of it.
	parse(line string) (r record, claimed bool)
}

// record is what one line says.
type record struct {
	scheme   proxyurl.Scheme // "" when the line names none
	endpoint proxyurl.Endpoint
	reject   Reason // "" when the line was understood
}

// formats lists every format, in the order in which a line is offered to them.
// The last one claims every line.
func formats() []format {
	return []format{
		schemeFormat{},
		plainFormat{},
	}
}
