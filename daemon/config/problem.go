package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file, or only doubtful.
type Problem struct {
	File   string `json:"file"`             // as it was given to Load or Parse
	Line   int    `json:"line,omitempty"`   // from 1; 0 if it is about the file as a whole
	Column int    `json:"column,omitempty"` // from 1, in characters; 0 like Line
	Path   string `json:"path,omitempty"`   // such as "pools[0].probe.schedule"; escaped; empty if it is about the file as a whole
	Value  string `json:"value,omitempty"`  // as it was written, quoted if it is a text, escaped, without passwords; empty if there is none
	What   string `json:"what"`             // what is wrong and what to write instead
}

// String returns "FILE:LINE:COL: path: value: what".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	for _, part := range []string{p.Path, p.Value, p.What} {
		if part != "" {
			b.WriteString(": " + part)
		}
	}
	return b.String()
}

// Warning is what is allowed but likely not meant.
type Warning = Problem

// Errors is all that is wrong with a file, by position, never empty.
type Errors []Problem

// Error returns one line for each problem, without a newline at the end.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Sort puts the problems in order of their positions.
func (e Errors) Sort() { sortProblems(e) }

func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
}
