package config

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every key of the file is wrong in at least one of the bad files, so that what is said
// of it has been read by somebody.
func TestEveryKeyHasABadFile(t *testing.T) {
	index := regexp.MustCompile(`\[[0-9]+\]`)
	wrong := map[string]bool{}
	for _, tc := range badConfigs() {
		for _, line := range tc.lines {
			// LINE:COL: PATH: ...
			if parts := strings.SplitN(line, ": ", 3); len(parts) == 3 {
				wrong[index.ReplaceAllString(parts[1], "")] = true
			}
		}
	}
	full, _, err := Parse("f", []byte(everything), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	sections := keyPaths(full.shown())
	for _, key := range sections {
		// A section is wrong where one of its keys is.
		section := slices.ContainsFunc(sections, func(other string) bool { return strings.HasPrefix(other, key+".") })
		if !section && !wrong[key] && key != "sources.headers" && key != "targets.headers" {
			t.Errorf("%s is wrong in none of testdata/bad", key)
		}
	}
}
