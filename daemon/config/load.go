package config

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"evenpool/sources/proxyurl"
)

const maxFileBytes = 256 << 10

// Load reads, completes and checks the file at path, which is at most 256 KiB
// large. The error is an Errors; warnings may come with an error or without, by
// position. It reads no other file and asks nobody: what the file names may be
// missing.
func Load(path string, d Defaults) (*Config, []Warning, error) {
	data, err := readSmall(path, maxFileBytes)
	if err != nil {
		what := proxyurl.Escape(err.Error(), 300)
		if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			what = pathErr.Err.Error()
		}
		return nil, nil, Errors{{File: path, What: what}}
	}
	info, err := os.Stat(path)
	return parse(path, data, d, err == nil && info.Mode().Perm()&0o004 != 0)
}

// Parse is Load for the content of a file; name is what problems call it.
func Parse(name string, data []byte, d Defaults) (*Config, []Warning, error) {
	return parse(name, data, d, false)
}

// parse reads a file that everybody may read, if open is true.
func parse(name string, data []byte, d Defaults, open bool) (*Config, []Warning, error) {
	r := &reader{places: places{name, map[string]mark{}}}
	c := d.config()
	if root := r.document(data); root != nil {
		r.mapping("", root, startOf(root), c.keys)
		r.check(c)
		r.complete(c)
		if open {
			r.warnOfSecrets(c)
		}
	}
	sortProblems(r.warnings)
	if len(r.problems) > 0 {
		sortProblems(r.problems)
		return nil, r.warnings, Errors(r.problems)
	}
	c.places = r.places
	return c, r.warnings, nil
}

// document returns the file's only document; nil if there is none, or another
// problem that leaves nothing to read.
func (r *reader) document(data []byte) ast.Node {
	whole := func(line, column int, what string) {
		r.problems = append(r.problems, Problem{File: r.file, Line: line, Column: column, What: what})
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		before := data[:len(data)-len(bytes.TrimLeftFunc(data, func(r rune) bool { return r != utf8.RuneError }))]
		whole(bytes.Count(before, []byte("\n"))+1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])+1,
			"is not UTF-8; write it anew as UTF-8")
		return nil
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(data, err)
		return nil
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if directive, ok := doc.Body.(*ast.DirectiveNode); ok {
			at := directive.GetToken().Position
			whole(at.Line, at.Column, "directives are not read; remove the line")
			return nil
		}
		if root != nil || doc != file.Docs[0] {
			at := &token.Position{Line: 1, Column: 1}
			if doc.Start != nil {
				at = doc.Start.Position
			}
			whole(at.Line, at.Column, "a second document begins; write one document in a file")
			return root
		}
		root = doc.Body
	}
	if root == nil {
		whole(1, 1, "is empty; it needs judges, sources and pools")
	}
	return root
}

// syntax reports the error of goccy/go-yaml, which knows one at a time.
func (r *reader) syntax(data []byte, err error) {
	p := Problem{File: r.file, Line: 1, Column: 1, What: "is not YAML: " + proxyurl.Escape(err.Error(), 200)}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		p.Line, p.Column = at.GetToken().Position.Line, at.GetToken().Position.Column
		p.What = "is not YAML: " + proxyurl.Escape(at.GetMessage(), 200)
		if lines := bytes.Split(data, []byte("\n")); p.Line <= len(lines) && bareSign(lines[p.Line-1]) {
			p.What += "; write a text that begins with * or @ in quotes"
		}
	}
	r.problems = append(r.problems, p)
}

// bareSign reports whether a line's value begins with a sign that YAML keeps for
// itself and schedules begin with.
func bareSign(line []byte) bool {
	_, value, found := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	return found && len(value) > 0 && (value[0] == '*' || value[0] == '@')
}
