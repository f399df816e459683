package sources

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// errYAML says that a piece of YAML is none, or uses what no list needs: aliases,
// which make much of little, and keys that are not texts.
var errYAML = errors.New("no YAML that is read")

// walkYAML tells t what is in a piece of YAML: a document, or one item of a
// sequence, as that sequence. The items of it are within what is open.
//
// It is all parsed before t is told anything: of a damaged item nothing is taken.
func walkYAML(text []byte, t *tree) (err error) {
	if !shallow(text) {
		return errYAML
	}
	// The parser has had its panics; one is no more than a bad item.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errYAML, p)
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return err
	}
	for _, doc := range file.Docs {
		if err := checkYAML(doc.Body, 0); err != nil {
			return err
		}
	}
	depth := len(t.frames)
	for _, doc := range file.Docs {
		items, ok := doc.Body.(*ast.SequenceNode)
		if !ok || depth == 0 {
			err = errors.Join(err, tellYAML(t, "", doc.Body))
			continue
		}
		for _, item := range items.Values {
			err = errors.Join(err, tellYAML(t, "", item))
		}
	}
	return err
}

// shallow says whether a text's brackets and dashes are no deeper than maxDepth:
// the parser works its way down before it can be stopped.
func shallow(text []byte) bool {
	depth, dashes := 0, 0
	for i, c := range text {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '-', '?':
			if i+1 < len(text) && text[i+1] == ' ' {
				dashes++
			}
		case '\n':
			dashes = 0
		}
		if depth > maxDepth || dashes > maxDepth {
			return false
		}
	}
	return true
}

// checkYAML says whether a node is of the kinds that lists are made of.
func checkYAML(node ast.Node, depth int) error {
	if depth > maxDepth {
		return errDepth
	}
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := checkYAML(v, depth); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		if _, ok := scalarYAML(n.Key); !ok {
			return errYAML
		}
		return checkYAML(n.Value, depth+1)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if err := checkYAML(v, depth+1); err != nil {
				return err
			}
		}
	case nil, *ast.NullNode:
	default:
		if _, ok := scalarYAML(node); !ok {
			return errYAML
		}
	}
	return nil
}

// scalarYAML returns what is written as a text or a number.
func scalarYAML(node ast.Node) (text string, ok bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), true // as it is written
	}
	return "", false
}

func tellYAML(t *tree, key string, node ast.Node) error {
	switch n := node.(type) {
	case *ast.MappingNode:
		return tellMapping(t, key, n.Values)
	case *ast.MappingValueNode: // a mapping of one
		return tellMapping(t, key, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		if err := t.open(key, true); err != nil {
			return err
		}
		defer t.close()
		for _, v := range n.Values {
			if err := tellYAML(t, "", v); err != nil {
				return err
			}
		}
	default:
		if text, ok := scalarYAML(node); ok {
			t.value(key, text)
		}
	}
	return nil
}

func tellMapping(t *tree, key string, values []*ast.MappingValueNode) error {
	if err := t.open(key, false); err != nil {
		return err
	}
	defer t.close()
	for _, v := range values {
		name, _ := scalarYAML(v.Key)
		if err := tellYAML(t, name, v.Value); err != nil {
			return err
		}
	}
	return nil
}
