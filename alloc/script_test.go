package alloc_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestScriptHeaders: a script says what it is for, what it takes, gives and refuses, what running it
// twice does, and what it costs; and it names no key that was not passed to it, or it could not run
// in a cluster.
func TestScriptHeaders(t *testing.T) {
	files, err := filepath.Glob("lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	list, err := os.ReadFile("script.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		header, body, _ := strings.Cut(string(content), "\n\n")
		if !strings.HasPrefix(header, "-- "+name+": ") {
			t.Errorf("%s does not begin with %q", file, "-- "+name+": what it does")
		}
		for _, part := range []string{"-- KEYS[1]", "-- ARGV[1]", "-- Reply:", "-- Errors:", "-- Twice:", "-- Cost:"} {
			if !strings.Contains(header, "\n"+part) {
				t.Errorf("the header of %s has no line %q", file, part)
			}
		}
		for _, key := range regexp.MustCompile(`KEYS\[\d\]`).FindAllString(body, -1) {
			if !strings.Contains(header, "\n-- "+key) {
				t.Errorf("%s uses %s, which its header does not explain", file, key)
			}
		}
		if strings.Contains(body, "evenpool:") {
			t.Errorf("%s makes a key's name itself; every key is passed in KEYS", file)
		}
		if !strings.Contains(string(list), `mustScript("`+name+`")`) {
			t.Errorf("%s is not in the list of scripts in script.go", file)
		}
		for line := range strings.Lines(body) {
			if regexp.MustCompile(`^(function|[a-z_]+ =)`).MatchString(line) {
				t.Errorf("%s makes a global: %s", file, line)
			}
		}
	}
}
