package sources

import "strings"

// pipeFormat reads "host:port|Country|Region|City" and the like: an address, or a
// host and a port, then what a list says of it.
type pipeFormat struct{}

func (pipeFormat) name() string { return "pipe" }

func (pipeFormat) parse(line string) (record, bool) {
	fields := strings.Split(line, "|")
	if len(fields) < 2 || !beginsLikeAddress(strings.TrimSpace(fields[0])) {
		return record{}, false
	}
	return parseFields(fields), true
}
