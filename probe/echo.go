package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"net/textproto"
	"regexp"
	"strings"
)

// Echo describes a judge of somebody else's: a page that tells what it received.
// What it says is claimed, not proven. Two examples: httpbin.org/get is {"query:n",
// "json", "origin", "headers"}, and the many copies of azenv.php are {"query:n",
// "env", "REMOTE_ADDR", "HTTP_"}.
type Echo struct {
	// Nonce is where the nonce goes: "query:NAME" or "header:NAME". The page has to
	// repeat it, anywhere.
	Nonce string
	// Format is "json", or "env" for lines of NAME = VALUE, within HTML or without.
	Format string
	// Address is where the asker's address stands: a path of keys "a.b", or the
	// variable's name. Of a list of addresses the last counts: whoever stands before
	// the page adds the one that it sees behind those that it was told.
	Address string
	// Headers is where the headers stand: a path to an object of name to text or to
	// list of texts, or the prefix of the variables' names. "": the page does not
	// tell, and so anonymity is unknown.
	Headers string
}

// Check says what is wrong with the description; nil for nothing.
func (e Echo) Check() error {
	if _, _, ok := e.nonce(); !ok {
		return fmt.Errorf("nonce: want query:NAME or header:NAME")
	}
	switch {
	case e.Format != "json" && e.Format != "env":
		return fmt.Errorf("format: want json or env")
	case e.Address == "":
		return fmt.Errorf("address: is empty")
	}
	return nil
}

func (e Echo) nonce() (where, name string, ok bool) {
	where, name, _ = strings.Cut(e.Nonce, ":")
	ok = (where == "query" || where == "header") && name != "" && isToken([]byte(name))
	return where, name, ok
}

// read reads an answer. The error is a *fault.
func (e *Echo) read(r response, nonce string) (witness, error) {
	if r.status != 200 {
		return witness{}, faultf(WrongStatus, "status %d in place of 200", r.status)
	}
	var (
		address string
		headers map[string][]string
		err     error
	)
	if e.Format == "env" {
		address, headers = e.readEnv(string(r.body))
	} else if address, headers, err = e.readJSON(r.body); err != nil {
		return witness{}, faultf(WrongContent, "not the judge's answer but \"%s\"", start(r.body))
	}
	seen := witness{headers: headers}
	for addr := range addresses(address) {
		seen.exit = addr.WithZone("")
	}
	switch {
	case !seen.exit.IsValid():
		return witness{}, faultf(WrongContent, "no address at %s in \"%s\"", e.Address, start(r.body))
	case !bytes.Contains(r.body, []byte(nonce)):
		return witness{}, faultf(NonceMissing, "an answer to another question")
	}
	if len(headers) == 0 {
		seen.headers = nil // not even ours: they are told elsewhere, or not at all
	}
	// Our own doing.
	if where, name, _ := e.nonce(); where == "header" {
		delete(seen.headers, textproto.CanonicalMIMEHeaderKey(name))
	}
	return seen, nil
}

func (e *Echo) readJSON(body []byte) (address string, headers map[string][]string, err error) {
	var all any
	if err := json.Unmarshal(body, &all); err != nil {
		return "", nil, err
	}
	address, _ = follow(all, e.Address).(string)
	if e.Headers == "" {
		return address, nil, nil
	}
	object, ok := follow(all, e.Headers).(map[string]any)
	if !ok {
		return "", nil, fmt.Errorf("no headers at %s", e.Headers)
	}
	headers = map[string][]string{}
	for name, value := range object {
		name = textproto.CanonicalMIMEHeaderKey(name)
		switch value := value.(type) {
		case string:
			headers[name] = append(headers[name], value)
		case []any:
			for _, v := range value {
				headers[name] = append(headers[name], fmt.Sprint(v))
			}
		default:
			headers[name] = append(headers[name], fmt.Sprint(value))
		}
	}
	return address, headers, nil
}

// follow goes down a path of keys.
func follow(value any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// tags are what HTML puts around names and values.
var tags = regexp.MustCompile(`<[^<>]*>`)

// readEnv reads lines of NAME = VALUE.
func (e *Echo) readEnv(body string) (address string, headers map[string][]string) {
	if e.Headers != "" {
		headers = map[string][]string{}
	}
	for line := range strings.Lines(body) {
		name, value, ok := strings.Cut(tags.ReplaceAllString(line, ""), "=")
		if !ok {
			continue
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(html.UnescapeString(value))
		if name == e.Address {
			address = value
		}
		if header, ok := strings.CutPrefix(name, e.Headers); ok && header != "" && e.Headers != "" {
			header = textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(header, "_", "-"))
			headers[header] = append(headers[header], value)
		}
	}
	return address, headers
}
