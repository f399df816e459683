package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"evenpool/probe"
)

// The kinds of values that eligibility alone uses.

// orSection goes through a section of which one value may stand in its place.
func orSection[T any](s *section, key string, p *T, k kind[T], keys func(*section)) {
	if s.r != nil {
		if e, found := s.entries[key]; found {
			if _, single := scalarOf(e.value); single {
				value(s, key, p, k)
				return
			}
		}
	}
	s.sub(key, keys)
}

// optional is a list of which an empty one is none.
func optional[T comparable](s *section, key string, p *[]T, k kind[T]) {
	list(s, key, p, k)
	if len(*p) == 0 {
		*p = nil
	}
}

// truth reads true or false.
func truth() kind[bool] {
	return kind[bool]{
		read: func(v scalar) (bool, error) {
			if v.kind != ast.BoolType || v.text != "true" && v.text != "false" {
				return false, errors.New("expected true or false")
			}
			return v.text == "true", nil
		},
		show: func(b bool) any { return b },
	}
}

// orAny reads a limit; "any" is none.
func orAny(least, most int) kind[*int] {
	number := whole(least, most)
	return kind[*int]{
		read: func(v scalar) (*int, error) {
			if v.text == "any" {
				return nil, nil
			}
			n, err := number.read(v)
			if err != nil {
				return nil, fmt.Errorf("expected any, or a whole number from %d to %d", least, most)
			}
			return &n, nil
		},
		show: func(n *int) any {
			if n == nil {
				return "any"
			}
			return *n
		},
	}
}

// anonymity reads a level; empty is none.
func anonymity() kind[probe.Anonymity] {
	levels := member([]probe.Anonymity{probe.Transparent, probe.Anonymous, probe.Elite})
	return kind[probe.Anonymity]{
		read: func(v scalar) (probe.Anonymity, error) {
			if v.isText() && v.text == "" {
				return "", nil
			}
			return levels.read(v)
		},
		show: levels.show,
	}
}

func ports() kind[probe.PortRange] {
	return kind[probe.PortRange]{
		read: func(v scalar) (probe.PortRange, error) { return probe.ParsePortRange(v.text) },
		show: func(r probe.PortRange) any {
			if r.First == r.Last {
				return int(r.First)
			}
			return r.String()
		},
	}
}

// country reads a code of ISO 3166-1.
func country() kind[string] {
	return kind[string]{
		read: func(v scalar) (string, error) {
			upper := strings.ToUpper(v.text)
			switch {
			case len(upper) != 2 || strings.Trim(upper, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
				return "", errors.New("expected a country's code of two capitals (ISO 3166-1), such as DE")
			case upper == "UK":
				return "", errors.New("is not in ISO 3166-1; write GB")
			case upper != v.text:
				return "", fmt.Errorf("expected capitals; write %s", upper)
			case !slices.Contains(strings.Fields(countries), upper):
				return "", errors.New("is no country's code in ISO 3166-1")
			}
			return upper, nil
		},
		show: func(s string) any { return s },
	}
}

// asn reads the number of an autonomous system.
func asn() kind[uint32] {
	return kind[uint32]{
		read: func(v scalar) (uint32, error) {
			digits, prefixed := strings.CutPrefix(v.text, "AS")
			n, err := strconv.ParseUint(digits, 10, 32)
			switch {
			case err != nil || n == 0:
				return 0, errors.New("expected the number of an autonomous system, such as 3320")
			case prefixed:
				return 0, fmt.Errorf("expected the number alone; write %d", n)
			}
			return uint32(n), nil
		},
		show: func(n uint32) any { return n },
	}
}
