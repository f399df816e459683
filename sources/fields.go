package sources

import (
	"cmp"
	"strings"

	"evenpool/sources/proxyurl"
)

// fields is a record as a table, an object or an element gives it: by names.
type fields struct {
	ip, host, port, address, url string
	user, password               string

	protocols claims // by a field that names them
	flags     claims // by fields that say yes or no
	foreign   bool   // a protocol that evenpool does not speak
	ports     []portClaim
	hint      Hint
	code      string // a country's code
	twice     bool   // two fields say different things of the address
}

// portClaim is one of several ports that a record lists, with what is spoken there.
type portClaim struct {
	port    string
	claims  claims
	foreign bool
}

// maxPorts bounds how many ports one record lists.
const maxPorts = 64

// set takes in one field; name is its name as the list has it, r what that stands
// for.
func (f *fields) set(r role, name, value string) {
	value = strings.TrimSpace(value)
	switch r {
	case roleIP:
		f.once(&f.ip, value)
	case roleHost:
		f.once(&f.host, value)
	case rolePort:
		if strings.ContainsAny(value, ",/;|") {
			for port := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(",/;| []", r) }) {
				f.addPort(portClaim{port: port})
			}
			return
		}
		f.once(&f.port, value)
	case roleAddress:
		f.once(&f.address, value)
	case roleURL:
		f.once(&f.url, value)
	case roleUser:
		f.once(&f.user, value)
	case rolePassword:
		f.once(&f.password, value)
	case roleProtocol, roleType:
		f.protocol(r, value)
	case roleTLS:
		if yes, _ := flag(value); yes {
			f.flags |= claimOf(proxyurl.HTTPS)
		}
	case roleProtocolFlag:
		if yes, _ := flag(value); yes {
			f.flags |= protocols[normal(name)]
		}
	case roleCountry:
		if f.hint.Country == "" {
			f.hint.Country = countryName(value)
		}
	case roleCode:
		if f.code == "" {
			f.code = countryCode(value)
		}
	case roleAnonymity:
		if f.hint.Anonymity == "" {
			f.hint.Anonymity = anonymity(value)
		}
	}
}

// once sets what a record says once: of two that differ, nobody knows which is meant.
func (f *fields) once(field *string, value string) {
	if *field != "" && value != "" && *field != value {
		f.twice = true
		return
	}
	if value != "" {
		*field = value
	}
}

func (f *fields) protocol(r role, value string) {
	named, known := claimsOf(value)
	switch {
	case known:
		f.protocols |= named
	case strings.Contains(value, "("):
		f.groups(value)
	case foreign[normal(value)]:
		f.foreign = true
	case r == roleProtocol:
		if _, says := flag(value); !says {
			f.foreign = true
		}
	case f.hint.Anonymity == "":
		f.hint.Anonymity = anonymity(value)
	}
}

// groups reads "[Name(type=socks4, port=4153, ...), Name(type=http, ...)]".
func (f *fields) groups(value string) {
	for group := range strings.SplitSeq(value, "(") {
		var one portClaim
		group, _, closed := strings.Cut(group, ")")
		for pair := range strings.SplitSeq(group, ",") {
			name, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if ok && closed {
				one.set(roleOf(name), text)
			}
		}
		f.addPort(one)
	}
}

// set takes in one field of a port.
func (p *portClaim) set(r role, value string) {
	switch r {
	case rolePort:
		p.port = value
	case roleProtocol, roleType:
		named, known := claimsOf(value)
		p.claims |= named
		p.foreign = p.foreign || !known
	}
}

func (f *fields) addPort(p portClaim) {
	if (p.port != "" || p.claims != 0 || p.foreign) && len(f.ports) < maxPorts {
		f.ports = append(f.ports, p)
	}
}

// named says whether the record names an address at all, good or bad.
func (f *fields) named() bool {
	if f.ip != "" || f.host != "" || f.address != "" {
		return true
	}
	_, _, err := parseURL(f.url)
	return err == nil
}

// reset makes f empty, for the next record.
func (f *fields) reset() { *f = fields{ports: f.ports[:0]} }

// record hands what the fields say to c: one address, or one for each port.
func (c *collector) record(number int, f *fields) {
	c.begin(number)
	hint := f.hint
	if f.code != "" {
		hint.Country = f.code
	}
	ports := f.ports
	if len(ports) == 0 {
		ports = []portClaim{{}}
	}
	for _, p := range ports {
		e, named, reason := f.endpoint(p)
		if reason == "" {
			reason = c.take(e, named, hint)
		}
		if reason != "" {
			c.reject(reason, f.shown(p), asIs)
		}
	}
}

// endpoint puts one address together.
func (f *fields) endpoint(p portClaim) (e proxyurl.Endpoint, named claims, reason Reason) {
	named = cmp.Or(p.claims, f.protocols)
	switch {
	case f.twice:
		return e, 0, reasonUnparseable
	case named == 0 && (f.foreign || p.foreign):
		return e, 0, Reason(proxyurl.ReasonScheme)
	}
	host, port := cmp.Or(f.ip, f.host), cmp.Or(p.port, f.port)
	whole := cmp.Or(f.address, f.url)
	other, otherSpoken, otherErr := parseURL(whole)
	var spoken claims // by the scheme of a URL
	var err error
	switch {
	case host == "", port == "" && f.address != "":
		e, spoken, err = other, otherSpoken, otherErr
	case port == "":
		e, spoken, err = parseURL(host)
	default:
		e, spoken, err = joinURL(host, port)
		if otherErr == nil {
			spoken |= otherSpoken
		}
		if err == nil && otherErr == nil && f.address != "" && p.port == "" && !agree(e, other) {
			return e, 0, reasonUnparseable // nobody knows which one is meant
		}
	}
	if err == nil && f.user != "" && !e.HasUser() {
		e, err = proxyurl.NewEndpoint(e.Host(), e.Port(), f.user, f.password)
	}
	return e, cmp.Or(named, spoken, f.flags), reasonOf(err)
}

// agree says whether two addresses may be of one proxy: they are the same, or one
// of them is a name.
func agree(a, b proxyurl.Endpoint) bool {
	addrA, isA := a.Addr()
	addrB, isB := b.Addr()
	return a.Port() == b.Port() && (addrA == addrB || !isA || !isB)
}

// shown is what may be shown of a record that gave no candidate: its address.
func (f *fields) shown(p portClaim) string {
	text := cmp.Or(f.ip, f.host)
	if port := cmp.Or(p.port, f.port); text != "" && port != "" {
		text += ":" + port
	}
	if text = cmp.Or(text, f.address, f.url); text == "" {
		return "(no address)"
	}
	return showLine(text)
}

// parseURL reads an address, with or without a scheme before it.
func parseURL(text string) (e proxyurl.Endpoint, spoken claims, err error) {
	rest, spoken, err := cutClaim(text)
	if err != nil {
		return e, 0, err
	}
	e, err = parseAddress(strings.TrimSuffix(rest, "/"))
	return e, spoken, err
}

// joinURL reads a host that may have a scheme before it, or its port behind it.
func joinURL(host, port string) (e proxyurl.Endpoint, spoken claims, err error) {
	host, spoken, err = cutClaim(host)
	if err != nil {
		return e, 0, err
	}
	if head, tail, ok := strings.Cut(host, ":"); ok && tail == port {
		host = head
	}
	e, err = joinAddress(host, port)
	return e, spoken, err
}

func cutClaim(text string) (rest string, spoken claims, err error) {
	name, rest, ok := proxyurl.CutScheme(text)
	if !ok {
		return text, 0, nil
	}
	scheme, err := proxyurl.ParseScheme(name)
	return rest, claimOf(scheme), err
}
