package main_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tree is what the checks read. Paths are slash-separated, from the top.
type tree struct {
	top     []string // names at the top level that git would not ignore
	files   []goFile
	scripts map[string]string // path of a .lua file -> text
	lines   map[string]int    // path of a .go or .lua file -> how many lines
}

type goFile struct {
	path, dir string
	syntax    *ast.File
	imports   map[string]string // name in the file -> import path
}

func (f goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// free says that a file is no part of the product: tests, what serves tests
// alone, and measurements may import what they look at.
func (f goFile) free() bool {
	return f.test() || f.dir == "alloc/alloctest" || path.Base(f.dir) == "bench"
}

func readTree(t *testing.T, top fs.FS) tree {
	t.Helper()
	got := tree{scripts: map[string]string{}, lines: map[string]int{}}
	ignored := ignoredNames(top)
	err := fs.WalkDir(top, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p == "." {
			return nil
		}
		if slices.ContainsFunc(ignored, func(pattern string) bool { m, _ := path.Match(pattern, d.Name()); return m }) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains(p, "/") {
			got.top = append(got.top, p)
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		return got.add(top, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (t *tree) add(top fs.FS, p string) error {
	if ext := path.Ext(p); ext != ".go" && ext != ".lua" {
		return nil
	}
	text, err := fs.ReadFile(top, p)
	if err != nil {
		return err
	}
	t.lines[p] = bytes.Count(text, []byte("\n"))
	if path.Ext(p) == ".lua" {
		t.scripts[p] = string(text)
		return nil
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := goFile{path: p, dir: path.Dir(p), syntax: syntax, imports: map[string]string{}}
	for _, i := range syntax.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		name := path.Base(imported)
		if i.Name != nil {
			name = i.Name.Name
		}
		f.imports[name] = imported
	}
	t.files = append(t.files, f)
	return nil
}

// ignoredNames reads what git does not see: it does not belong to the tree.
func ignoredNames(top fs.FS) (patterns []string) {
	text, err := fs.ReadFile(top, ".gitignore")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if pattern := strings.Trim(strings.TrimSpace(line), "/"); pattern != "" && pattern[0] != '#' {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
