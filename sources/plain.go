package sources

// plainFormat reads "host:port", alone on its line. It claims every line.
type plainFormat struct{}

func (plainFormat) name() string { return "plain" }

func (plainFormat) parse(line string) (record, bool) {
	e, err := parseAddress(line)
	if err == nil && e.HasUser() { // the userPassFormat's
		return record{reject: reasonUnparseable}, true
	}
	return record{endpoint: e, reject: reasonOf(err)}, true
}
