package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"evenpool/sources/proxyurl"
)

// A section is one mapping of the file while keys.go goes through its keys. It
// goes both ways, so that each key is named once: a section with a reader fills
// the fields from the file, one without collects them into shown.
//
// goccy/go-yaml's own decoder is not used: it stops at the first error, has no
// position for some, and takes 1.5 for an int and 5 for a string.
type section struct {
	r       *reader
	path    string
	entries map[string]entry
	order   []string // the file's keys, in its order
	known   []string // the keys that keys.go asked for
	later   []string // the keys that keys.go refused
	shown   yaml.MapSlice
}

type entry struct {
	key   *token.Token
	value ast.Node
}

// mapping reads the mapping at node with keys; t is where its parent names it.
func (r *reader) mapping(path string, node ast.Node, t *token.Token, keys func(*section)) {
	s := &section{r: r, path: path, entries: map[string]entry{}}
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case nil, *ast.NullNode: // a section whose keys are all left out, or commented out
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.mark(path, startOf(node), "")
		r.fail(path, "expected keys and values%s", refusal(node))
		return
	}
	if len(values) > 0 {
		t = values[0].Key.GetToken()
	}
	r.mark(path, t, "")
	for _, v := range values {
		s.add(v)
	}
	keys(s)
	s.finish()
}

func (s *section) add(v *ast.MappingValueNode) {
	t := v.Key.GetToken()
	path := s.at(t.Value)
	if v.Key.IsMergeKey() {
		s.r.mark(path, t, "")
		s.r.fail(path, "merge keys are not read; write the keys out")
		return
	}
	if first, doubled := s.entries[t.Value]; doubled {
		p := s.r.problem(path, fmt.Sprintf("doubled key; it is on line %d already", first.key.Position.Line))
		p.Line, p.Column, p.Value = t.Position.Line, t.Position.Column, ""
		s.r.problems = append(s.r.problems, p)
		return
	}
	s.entries[t.Value] = entry{key: t, value: v.Value}
	s.order = append(s.order, t.Value)
}

// finish refuses the keys that keys.go did not ask for.
func (s *section) finish() {
	for _, key := range s.order {
		if slices.Contains(s.known, key) || slices.Contains(s.later, key) {
			continue
		}
		path := s.at(key)
		s.r.mark(path, s.entries[key].key, "")
		if near := nearest(key, s.known); near != "" {
			s.r.fail(path, "unknown key; did you mean %s?", near)
		} else {
			s.r.fail(path, "unknown key; the keys here are %s", strings.Join(s.known, ", "))
		}
	}
}

// at returns the path of a key of s.
func (s *section) at(key string) string {
	key = proxyurl.Escape(key, 40)
	if s.path == "" {
		return key
	}
	return s.path + "." + key
}

// take returns the node that the file has for key, and where the key is.
func (s *section) take(key string) (node ast.Node, at *token.Token, found bool) {
	s.known = append(s.known, key)
	e, found := s.entries[key]
	if !found {
		return nil, nil, false
	}
	s.r.mark(s.at(key), e.key, "")
	return e.value, e.key, true
}

func (s *section) has(key string) bool {
	_, found := s.entries[key]
	return found
}

// knows makes key one of those that the file may have.
func (s *section) knows(key string) bool {
	s.known = append(s.known, key)
	return true
}

// need refuses a section without one of its keys.
func (s *section) need(key, what string) {
	if s.r != nil && !s.has(key) {
		s.r.fail(s.at(key), "is missing; write %s", what)
	}
}

// refuse refuses a key with a sentence of its own.
func (s *section) refuse(key, what string) {
	if s.r == nil || !s.has(key) {
		return
	}
	s.later = append(s.later, key)
	s.r.mark(s.at(key), s.entries[key].key, "")
	s.r.fail(s.at(key), "%s", what)
}

// sub goes through the section at key.
func (s *section) sub(key string, keys func(*section)) {
	if s.r == nil {
		inner := &section{}
		keys(inner)
		s.shown = append(s.shown, yaml.MapItem{Key: key, Value: inner.shown})
		return
	}
	if node, at, found := s.take(key); found {
		s.r.mapping(s.at(key), node, at, keys)
	}
}

// kind is a type of single values: how it is read and how it is shown. Errors of
// read say what to write instead; show returns nil for a value that is left out.
type kind[T any] struct {
	read func(scalar) (T, error)
	show func(T) any
}

// value goes through a single value.
func value[T any](s *section, key string, p *T, k kind[T]) {
	if s.r == nil {
		if v := k.show(*p); v != nil {
			s.shown = append(s.shown, yaml.MapItem{Key: key, Value: v})
		}
		return
	}
	if node, _, found := s.take(key); found {
		read(s.r, s.at(key), node, p, k)
	}
}

// list goes through a list of single values, each once.
func list[T comparable](s *section, key string, p *[]T, k kind[T]) {
	if s.r == nil {
		shown := make([]any, len(*p))
		for i, v := range *p {
			shown[i] = k.show(v)
		}
		s.shown = append(s.shown, yaml.MapItem{Key: key, Value: shown})
		return
	}
	node, _, found := s.take(key)
	if !found {
		return
	}
	entries, ok := s.r.sequence(s.at(key), node)
	if !ok {
		return
	}
	*p = make([]T, 0, len(entries))
	for i, entry := range entries {
		path := fmt.Sprintf("%s[%d]", s.at(key), i)
		var v T
		if !read(s.r, path, entry, &v, k) {
			continue
		}
		if slices.Contains(*p, v) {
			s.r.fail(path, "is in the list already; remove it")
			continue
		}
		*p = append(*p, v)
	}
}

// items goes through a list of at least that many (none or one) sections; fresh makes one with its defaults.
func items[T any](s *section, key string, p *[]T, least int, fresh func() T, keys func(*section, *T)) {
	if s.r == nil {
		shown := make([]any, len(*p))
		for i := range *p {
			inner := &section{}
			keys(inner, &(*p)[i])
			shown[i] = inner.shown
		}
		s.shown = append(s.shown, yaml.MapItem{Key: key, Value: shown})
		return
	}
	node, _, found := s.take(key)
	if !found {
		return
	}
	entries, ok := s.r.sequence(s.at(key), node)
	if !ok {
		return
	}
	if len(entries) < least {
		s.r.fail(s.at(key), "is empty; write at least one")
	}
	for i, entry := range entries {
		v := fresh()
		s.r.mapping(fmt.Sprintf("%s[%d]", s.at(key), i), entry, startOf(entry), func(s *section) { keys(s, &v) })
		*p = append(*p, v)
	}
}

func (r *reader) sequence(path string, node ast.Node) ([]ast.Node, bool) {
	n, ok := node.(*ast.SequenceNode)
	if !ok {
		v, single := scalarOf(node)
		switch {
		case single && v.isText():
			r.mark(path, startOf(node), v.quoted())
			r.fail(path, "expected a list; write it in [ ]")
		case single:
			r.mark(path, startOf(node), v.quoted())
			r.fail(path, "expected a list")
		default:
			r.fail(path, "expected a list%s", refusal(node))
		}
		return nil, false
	}
	return n.Values, true
}

// read reads the single value at node; on an error *p stays as it is.
func read[T any](r *reader, path string, node ast.Node, p *T, k kind[T]) bool {
	v, ok := scalarOf(node)
	if !ok {
		if _, null := node.(*ast.NullNode); null {
			r.fail(path, "has no value; write one or remove the key")
		} else {
			r.fail(path, "expected a single value%s", refusal(node))
		}
		return false
	}
	r.mark(path, startOf(node), v.quoted())
	got, err := k.read(v)
	if err != nil {
		r.fail(path, "%s", proxyurl.Escape(err.Error(), 400))
		return false
	}
	*p = got
	return true
}
