package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/http/httpguts"

	"evenpool/sources"
)

// What the request for a list on the web looks like, and what of it is secret.

// List returns the source as package sources takes it.
func (o Source) List() sources.Source {
	return sources.Source{
		Name: o.Name, URL: o.URL, Format: o.Format, Scheme: o.Scheme, Allow: o.AllowAddresses,
		Headers: o.Headers, UserAgent: o.UserAgent, Proxy: o.Proxy, Timeout: o.Timeout,
		MaxBytes: int64(o.MaxBytes), MaxCandidates: o.MaxCandidates,
	}
}

const (
	maxHeaders     = 32
	maxHeaderBytes = 4096
)

// secrets goes through a mapping of names to secret texts. check returns the name
// that is kept; neither problems nor showing have a value in them.
func secrets(s *section, key string, p *map[string]string, check func(name, value string) (string, error)) {
	if s.r == nil {
		shown := yaml.MapSlice{}
		for _, name := range slices.Sorted(maps.Keys(*p)) {
			shown = append(shown, yaml.MapItem{Key: name, Value: "***"})
		}
		s.shown = append(s.shown, yaml.MapItem{Key: key, Value: shown})
		return
	}
	node, at, found := s.take(key)
	if !found {
		return
	}
	s.r.mapping(s.at(key), node, at, func(inner *section) {
		if len(inner.order) > maxHeaders {
			s.r.fail(inner.path, "has %d entries; write at most %d", len(inner.order), maxHeaders)
		}
		kept := make(map[string]string, len(inner.order))
		for _, name := range inner.order {
			node, _, _ := inner.take(name)
			if as, text, ok := secret(inner, name, node, check); ok {
				if _, doubled := kept[as]; doubled {
					s.r.fail(inner.at(name), "is %s, which is there already; remove one of the two", as)
				}
				kept[as] = text
			}
		}
		if len(kept) > 0 {
			*p = kept
		}
	})
}

func secret(s *section, name string, node ast.Node, check func(name, value string) (string, error)) (kept, text string, ok bool) {
	path := s.at(name)
	v, single := scalarOf(node)
	_, null := node.(*ast.NullNode)
	switch {
	case null:
		s.r.fail(path, "has no value; write one or remove the key")
		return "", "", false
	case !single:
		s.r.fail(path, "expected a single value%s", refusal(node))
		return "", "", false
	case !v.isText():
		s.r.fail(path, "expected a text; write it in quotes")
		return "", "", false
	}
	kept, err := check(name, v.text)
	if err != nil {
		s.r.fail(path, "%s", err)
		return "", "", false
	}
	return kept, v.text, true
}

// ownHeaders are those that evenpool sends itself, or that would change what an
// answer means, by canonical name, with what to do instead.
func ownHeaders(name string) string {
	switch {
	case name == "User-Agent":
		return "has a key of its own; write user_agent"
	case name == "Host":
		return "is the host of the url; write that"
	case name == "Proxy-Authorization":
		return "belongs to a proxy; write user and password into proxy"
	case strings.HasPrefix(name, "If-"), strings.HasPrefix(name, "Content-"), slices.Contains([]string{
		"Accept-Encoding", "Range", "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect"}, name):
		return "is evenpool's own to send; remove it"
	}
	return ""
}

// header checks one header, and returns its canonical name.
func header(name, value string) (string, error) {
	if !httpguts.ValidHeaderFieldName(name) || len(name) > 100 {
		return "", errors.New("is not a header's name; write letters, digits and -")
	}
	name = http.CanonicalHeaderKey(name)
	if why := ownHeaders(name); why != "" {
		return "", errors.New(why)
	}
	return name, headerValue(value, 1, maxHeaderBytes)
}

func headerValue(value string, least, most int) error {
	switch {
	case !httpguts.ValidHeaderFieldValue(value):
		return errors.New("has control characters; write it on one line")
	case strings.TrimSpace(value) != value:
		return errors.New("begins or ends with white space, which is never sent; remove it")
	case len(value) < least || len(value) > most:
		return fmt.Errorf("expected a text of %d to %d bytes", least, most)
	}
	return nil
}

func userAgent() kind[string] {
	return text(func(s string) error { return headerValue(s, 0, 256) })
}

// checkRequest refuses what a file has no use for, and warns of secrets that
// everybody on the way can read.
func (r *reader) checkRequest(path string, o *Source) {
	if !r.clean(path) {
		return
	}
	u, err := url.Parse(o.URL)
	if err != nil {
		return
	}
	if u.Scheme == "file" {
		for _, key := range []struct {
			name string
			set  bool
		}{{"headers", len(o.Headers) > 0}, {"user_agent", o.UserAgent != ""}, {"proxy", o.Proxy != ""}} {
			if key.set {
				r.fail(path+"."+key.name, "has no use for a file; remove it")
			}
		}
	}
	if name := secretHeader(o.Headers); u.Scheme == "http" && name != "" {
		r.warn(path+".headers."+name, "is sent in plain: everybody on the way can read it; write https:// in url, if the server has it")
	}
}

// secretHeader returns the name of a header that may be a key, "" if there is
// none: any that is not known to be none.
func secretHeader(headers map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if !slices.Contains([]string{"Accept", "Accept-Language", "Cache-Control", "Referer"}, name) {
			return name
		}
	}
	return ""
}

// warnOfSecrets names what does not belong into a file that everybody may read.
func (r *reader) warnOfSecrets(c *Config) {
	const what = "is a secret, and everybody may read this file; chmod o= it and give its group to the service"
	for i, o := range c.Sources {
		path := fmt.Sprintf("sources[%d].", i)
		if name := secretHeader(o.Headers); name != "" {
			r.warn(path+"headers."+name, what)
		}
		for key, address := range map[string]string{"url": o.URL, "proxy": o.Proxy} {
			if hideSecrets(address) != address {
				r.warn(path+key, what)
			}
		}
	}
}
