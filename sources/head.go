package sources

import "strings"

// head is what the first row of a table says of its columns.
type head struct {
	roles []role
	names []string
	// spoken is set where the columns are protocols: each cell is then an address.
	spoken  []claims
	formats []lineFormat // of these
	// address is the first column that is or names an address.
	address int
}

// newHead reads the names of a table's columns; nil where they are no names, or
// name no address. Where the only address that they name is no proxy's, such as
// exit_ip, address is -1: without a head, each row would be taken for one.
func newHead(names []string) *head {
	h := &head{roles: make([]role, len(names)), names: names, spoken: make([]claims, len(names)), address: -1}
	var has [roleDecoy + 1]int
	known, spoken := 0, 0
	for i, name := range names {
		r := roleOf(name)
		h.roles[i] = r
		has[r]++
		switch r {
		case roleNone, roleList, roleDecoy:
		case roleIP, roleHost, roleAddress:
			if h.address < 0 {
				h.address = i
			}
			known++
		case roleProtocolFlag:
			h.spoken[i] = protocols[normal(name)]
			spoken++
			known++
		default:
			known++
		}
	}
	switch {
	case len(names) < 2:
		return nil
	case h.address >= 0 && (has[rolePort] > 0 || known >= 2):
		h.spoken = nil
		return h
	case spoken >= 2 && spoken == len(names):
		h.address, h.formats = 0, addressFormats()
		return h
	case h.address < 0 && has[roleDecoy] > 0 && has[roleDecoy]+known >= 2:
		h.spoken = nil
		return h
	}
	return nil
}

// row takes in the cells of one row, which has as many as the head.
func (h *head) row(c *collector, number int, cells []string, f *fields) {
	if h.spoken != nil {
		if strings.TrimSpace(strings.Join(cells, "")) != "" {
			c.begin(number)
		}
		for i, cell := range cells {
			if cell = strings.TrimSpace(cell); cell == "" {
				continue
			}
			r := parseLine(h.formats, cell)
			if r.claims == 0 {
				r.claims = h.spoken[i]
			}
			c.takeRecord(r, cell)
		}
		return
	}
	f.reset()
	for i, cell := range cells {
		f.set(h.roles[i], h.names[i], cell)
	}
	c.record(number, f)
}

// again says whether a row is the head once more, as at a table's end.
func (h *head) again(cells []string) bool {
	return max(h.address, 0) < len(cells) && roleOf(cells[max(h.address, 0)]) == h.roles[max(h.address, 0)]
}
