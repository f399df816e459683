package config

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const examplePath = "../../systemd/evenpool.example.yaml"

// keyPaths returns the keys of all mappings in v, such as "pools.probe.timeout",
// sorted and each once.
func keyPaths(v any) []string {
	var paths []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		switch v := v.(type) {
		case yaml.MapSlice:
			for _, item := range v {
				path := strings.TrimPrefix(fmt.Sprintf("%s.%s", prefix, item.Key), ".")
				paths = append(paths, path)
				if item.Key != "headers" { // the keys in it are the user's
					walk(path, item.Value)
				}
			}
		case []any:
			for _, item := range v {
				walk(prefix, item)
			}
		}
	}
	walk("", v)
	slices.Sort(paths)
	return slices.Compact(paths)
}

func TestExampleHasEveryKey(t *testing.T) {
	data, err := os.ReadFile(examplePath)
	if err != nil {
		t.Fatal(err)
	}
	var written yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(data, &written, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	full, _, err := Parse("f", []byte(everything), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := keyPaths(written), keyPaths(full.shown()); !reflect.DeepEqual(got, want) {
		t.Errorf("the example's keys are\n%s\nthe file's keys are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Where a key with a value stands for the first time, a comment says what it is.
	key := regexp.MustCompile(`^ *(- )?([a-z_]+): `)
	explained := map[string]bool{}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		m := key.FindStringSubmatch(line)
		if m == nil || explained[m[2]] {
			continue
		}
		explained[m[2]] = true
		if !strings.HasPrefix(strings.TrimSpace(lines[i-1]), "#") {
			t.Errorf("line %d has no comment: %s", i+1, line)
		}
	}
}

// The example is what the same file without all that has a default would be.
func TestExampleStatesTheDefaults(t *testing.T) {
	example, warnings, err := Load(examplePath, Defaults{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	const needed = `judges:
  - name: mine
    http: http://judge.example.org/
    https: https://judge.example.org/
  - name: page
    http: http://www.example.org/robots.txt
    https: https://www.example.org/robots.txt
    expect:
      contains: "User-agent"
  - name: echo
    https: https://echo.example.org/get
    echo:
      format: json
      address: origin
      headers: headers
targets:
  - name: shop
    url: https://www.example.org/
sources:
  - name: mylist
    url: https://www.example.org/http.txt
pools:
  - name: web
`
	least, _, err := Parse("f", []byte(needed), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(least)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the example is\n%s\nbut the defaults are\n%s", got, want)
	}
}
