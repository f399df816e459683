package config

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/net/http/httpguts"

	"evenpool/sources/proxyurl"
)

// Target is a page that the operator may have asked through proxies, and what it
// is to answer. It is asked for by the pools that require it.
type Target struct {
	// Name is unique among the targets: [a-z0-9][a-z0-9_-]{0,31}.
	Name string
	// URL is http:// or https://. It is asked for with GET, without any cookie.
	URL *url.URL
	// Status is the HTTP status, 0 or from 200 to 599. Default: 0, any of 2xx.
	Status int
	// Headers are patterns (RE2) by header's name, at most 32: each of these headers
	// has to be there with a value that matches. Default: none.
	Headers map[string]*regexp.Regexp
	// Body is a pattern (RE2) that matches within the body's first 64 KiB; at most
	// 1,024 bytes. Default: nil, any body.
	Body *regexp.Regexp
	// MinInterval is the time between two questions, over all proxies and pools of
	// this host, from 100ms to 24h. Default: 10s. Lowering it is harder on the target
	// and lets a pool fill sooner: each proxy has to have had its turn.
	MinInterval time.Duration
	// CAFile is a PEM file of roots that are trusted besides the system's, for this
	// target alone. Default: empty.
	CAFile string
	// AllowAddresses are the prefixes that may be dialled for this target although
	// they are not public. Default: none.
	AllowAddresses proxyurl.Allow
}

// GeoIP names files in the MaxMind DB format, which say where an exit is. They are
// read when the daemon starts, and again when they change.
type GeoIP struct {
	// Country is a file of countries. Default: empty; then no country is known, and
	// nothing meets exit_countries and not_countries.
	Country string
	// ASN is a file of autonomous systems. Default: empty; then nothing meets exit_asns
	// and not_asns.
	ASN string
}

func defaultTarget() Target { return Target{MinInterval: 10 * time.Second} }

// maxPatternBytes bounds a regular expression. RE2 takes time in proportion to the
// text, whatever the pattern.
const maxPatternBytes = 1024

func compile(text string) (*regexp.Regexp, error) {
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("expected a regular expression of at most %d bytes", maxPatternBytes)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("is no regular expression (RE2): %s", proxyurl.Escape(err.Error(), 200))
	}
	return re, nil
}

// pattern reads a regular expression; empty is none.
func pattern() kind[*regexp.Regexp] {
	raw := text(func(string) error { return nil })
	return kind[*regexp.Regexp]{
		read: func(v scalar) (*regexp.Regexp, error) {
			if _, err := raw.read(v); err != nil || v.text == "" {
				return nil, err
			}
			return compile(v.text)
		},
		show: func(re *regexp.Regexp) any {
			if re == nil {
				return ""
			}
			return re.String()
		},
	}
}

// patterns goes through a mapping of headers' names to regular expressions.
func patterns(s *section, key string, p *map[string]*regexp.Regexp) {
	if s.r == nil {
		shown := yaml.MapSlice{}
		for _, name := range slices.Sorted(maps.Keys(*p)) {
			shown = append(shown, yaml.MapItem{Key: name, Value: (*p)[name].String()})
		}
		s.shown = append(s.shown, yaml.MapItem{Key: key, Value: shown})
		return
	}
	var texts map[string]string
	secrets(s, key, &texts, func(name, value string) (string, error) {
		if !httpguts.ValidHeaderFieldName(name) || len(name) > 100 {
			return "", errors.New("is not a header's name; write letters, digits and -")
		}
		_, err := compile(value)
		return http.CanonicalHeaderKey(name), err
	})
	for name, text := range texts {
		if *p == nil {
			*p = map[string]*regexp.Regexp{}
		}
		(*p)[name] = regexp.MustCompile(text)
	}
}
