package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"evenpool/sources/proxyurl"
)

// scalar is a single value as it was written.
type scalar struct {
	text string
	kind ast.NodeType
}

func (v scalar) isText() bool {
	return v.kind == ast.StringType || v.kind == ast.LiteralType
}

// quoted returns the value as problems show it: texts in quotes, all of it safe
// to print and without passwords.
func (v scalar) quoted() string {
	if text := proxyurl.Escape(hideSecrets(v.text), 80); v.isText() {
		return `"` + text + `"`
	} else {
		return text
	}
}

// reader collects what is wrong with one file and where its values are.
type reader struct {
	places
	problems []Problem
	warnings []Warning
}

// places are where the values of a file are.
type places struct {
	file  string
	marks map[string]mark
}

// mark is where a value is and how problems show it.
type mark struct {
	line, column int
	value        string
}

func (r *reader) mark(path string, t *token.Token, value string) {
	r.marks[path] = mark{line: t.Position.Line, column: t.Position.Column, value: value}
}

// problem makes a problem with the value at path or, if the file does not have
// that value, at the nearest section that has it.
func (s places) problem(path, what string) Problem {
	at, found := s.marks[path]
	p := Problem{File: s.file, Path: path, Value: at.value, What: what}
	for up := path; !found && up != ""; {
		up = up[:max(strings.LastIndexAny(up, ".["), 0)]
		at, found = s.marks[up]
	}
	p.Line, p.Column = at.line, at.column
	return p
}

func (r *reader) fail(path, format string, args ...any) {
	r.problems = append(r.problems, r.problem(path, fmt.Sprintf(format, args...)))
}

func (r *reader) warn(path, format string, args ...any) {
	r.warnings = append(r.warnings, r.problem(path, fmt.Sprintf(format, args...)))
}

// clean reports whether all is well so far at path and below it.
func (r *reader) clean(path string) bool {
	return !slices.ContainsFunc(r.problems, func(p Problem) bool { return strings.HasPrefix(p.Path, path) })
}

func scalarOf(node ast.Node) (scalar, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return scalar{n.Value, ast.StringType}, true
	case *ast.LiteralNode:
		return scalar{n.Value.Value, ast.LiteralType}, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return scalar{n.GetToken().Value, n.Type()}, true
	}
	return scalar{}, false
}

// refusal says why a node of a kind that is never read is refused.
func refusal(node ast.Node) string {
	switch node.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		return "; anchors and aliases are not read, write the value out"
	case *ast.TagNode:
		return "; tags are not read, remove it"
	}
	return ""
}

// startOf returns the first token of a node: that of a mapping in block style
// would be its first colon.
func startOf(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return node.GetToken()
}
