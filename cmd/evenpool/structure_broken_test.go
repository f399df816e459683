package main_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestStructureComplains shows each check a tree that breaks one rule, and the
// nearest thing to it that is allowed.
func TestStructureComplains(t *testing.T) {
	header := func(name string) string {
		return "-- " + name + ": does.\n--\n-- KEYS[1]  zset  k\n-- KEYS[2]  hash  k\n-- ARGV[1]  a\n-- ARGV[2]\n--          b\n-- Reply:   r\n-- Errors:  e\n-- Twice:   t\n-- Cost:    c\n"
	}
	cases := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{
			name:  "proxyurl imports ours",
			files: map[string]string{"sources/proxyurl/a.go": "// Package proxyurl x.\npackage proxyurl\nimport _ \"evenpool/sources\""},
			want:  []string{"sources/proxyurl/a.go imports evenpool/sources: proxyurl is the leaf that everybody imports: it imports nothing of ours"},
		},
		{
			name:  "api imports a module",
			files: map[string]string{"daemon/api/a.go": "// Package api x.\npackage api\nimport (\n_ \"net/http\"\n_ \"golang.org/x/net/proxy\"\n)"},
			want:  []string{"daemon/api/a.go imports golang.org/x/net/proxy: another program takes daemon/api as its client: the standard library is all it may bring along"},
		},
		{
			name:  "sources imports probe",
			files: map[string]string{"sources/a.go": "// Package sources x.\npackage sources\nimport (\n_ \"evenpool/sources/proxyurl\"\n_ \"evenpool/probe\"\n)"},
			want:  []string{"sources/a.go imports evenpool/probe: a source knows nothing of probing, storing or the daemon: of ours it imports sources alone"},
		},
		{
			name:  "probe imports sources",
			files: map[string]string{"probe/lab/a.go": "// Package lab x.\npackage lab\nimport (\n_ \"evenpool/sources/proxyurl\"\n_ \"evenpool/sources\"\n)"},
			want:  []string{"probe/lab/a.go imports evenpool/sources: a probe knows nothing of lists, storing or the daemon: of ours it imports probe and proxyurl alone"},
		},
		{
			name:  "alloc imports the daemon",
			files: map[string]string{"alloc/a.go": "// Package alloc x.\npackage alloc\nimport _ \"evenpool/daemon/api\""},
			want:  []string{"alloc/a.go imports evenpool/daemon/api: the store knows nothing of lists, probing or the daemon: of ours it imports alloc and proxyurl alone"},
		},
		{
			name:  "the configuration imports the daemon",
			files: map[string]string{"daemon/config/a.go": "// Package config x.\npackage config\nimport (\n_ \"evenpool/probe\"\n_ \"evenpool/daemon\"\n)"},
			want:  []string{"daemon/config/a.go imports evenpool/daemon: the configuration is read before there is a daemon: it knows the parts, not what wires them"},
		},
		{
			name: "the daemon speaks to Redis itself",
			files: map[string]string{
				"daemon/a.go":      "// Package daemon x.\npackage daemon\nimport _ \"github.com/redis/go-redis/v9\"",
				"daemon/a_test.go": "package daemon\nimport _ \"github.com/redis/go-redis/v9\"",
				"alloc/b.go":       "// Package alloc x.\npackage alloc\nimport _ \"github.com/redis/go-redis/v9\"",
			},
			want: []string{"daemon/a.go imports github.com/redis/go-redis/v9: only alloc speaks to Redis: whoever needs the pool asks alloc for it"},
		},
		{
			name: "the binary brings testcontainers along",
			files: map[string]string{
				"cmd/evenpool/a.go":      "// Command evenpool x.\npackage main\nimport _ \"evenpool/alloc/alloctest\"",
				"cmd/evenpool/a_test.go": "package main\nimport _ \"evenpool/alloc/alloctest\"",
			},
			want: []string{"cmd/evenpool/a.go imports evenpool/alloc/alloctest: what serves tests stays out of the binary"},
		},
		{
			name: "api knows schedules",
			files: map[string]string{
				"daemon/a.go":        "// Package daemon x.\npackage daemon\nimport _ \"github.com/robfig/cron/v3\"",
				"daemon/config/a.go": "// Package config x.\npackage config\nimport _ \"github.com/robfig/cron/v3\"",
				"daemon/web/a.go":    "// Package web x.\npackage web\nimport _ \"github.com/robfig/cron/v3\"",
			},
			want: []string{"daemon/web/a.go imports github.com/robfig/cron/v3: only daemon and daemon/config know schedules"},
		},
		{
			name: "flags outside cmd",
			files: map[string]string{
				"daemon/a.go":       "// Package daemon x.\npackage daemon\nimport (\n_ \"flag\"\n_ \"github.com/urfave/cli/v2\"\n)",
				"probe/bench/a.go":  "// Command bench x.\npackage main\nimport _ \"flag\"",
				"cmd/evenpool/a.go": "// Command evenpool x.\npackage main\nimport _ \"github.com/urfave/cli/v2\"",
			},
			want: []string{
				"daemon/a.go imports flag: only cmd reads a command line: everybody else takes values",
				"daemon/a.go imports github.com/urfave/cli/v2: only cmd reads a command line: everybody else takes values",
			},
		},
		{
			name:  "an assertion library in a test",
			files: map[string]string{"probe/a_test.go": "package probe\nimport _ \"github.com/stretchr/testify/require\""},
			want:  []string{"probe/a_test.go imports github.com/stretchr/testify/require: tests use real things and plain comparisons: no mocking or assertion libraries"},
		},
		{
			name: "the environment outside cmd",
			files: map[string]string{
				"cmd/evenpool/a.go": "// Command evenpool x.\npackage main\nimport \"os\"\nfunc a() { os.Exit(len(os.Getenv(\"A\"))) }",
				"daemon/api/a.go":   "// Package api x.\npackage api\nimport \"os\"\nfunc a() { os.Getenv(\"EVENPOOL_SOCKET\"); os.Getenv(\"XDG_RUNTIME_DIR\"); os.Getenv(\"HOME\") }",
				"daemon/a.go":       "// Package daemon x.\npackage daemon\nimport (\nlinux \"os\"\n\"log\"\n)\nfunc a() { linux.Exit(1); log.Fatal() }",
				"sources/a.go":      "// Package sources x.\npackage sources\nimport \"net/http\"\nfunc a() { http.Get(\"\"); _ = http.Transport{Proxy: http.ProxyFromEnvironment} }",
			},
			want: []string{
				"daemon/a.go uses os.Exit: only cmd ends the process and reads its arguments and environment; everybody else takes values",
				"daemon/a.go uses log.Fatal: only cmd ends the process and reads its arguments and environment; everybody else takes values",
				"daemon/api/a.go uses os.Getenv: only cmd ends the process and reads its arguments and environment; everybody else takes values",
				"sources/a.go uses net/http.Get: only cmd ends the process and reads its arguments and environment; everybody else takes values",
				"sources/a.go uses net/http.ProxyFromEnvironment: only cmd ends the process and reads its arguments and environment; everybody else takes values",
			},
		},
		{
			name:  "init",
			files: map[string]string{"probe/a.go": "// Package probe x.\npackage probe\nfunc init() {}\ntype a struct{}\nfunc (a) init() {}"},
			want:  []string{"probe/a.go has an init function: what a package needs comes in through its constructor"},
		},
		{
			name: "package comments",
			files: map[string]string{
				"alloc/a.go":        "// Package alloc x.\npackage alloc",
				"alloc/b.go":        "// Package alloc y.\npackage alloc",
				"cmd/evenpool/a.go": "// Package main x.\npackage main",
				"probe/a.go":        "package probe",
				"sources/a.go":      "// Sources are lists.\n// Many.\npackage sources",
			},
			want: []string{
				"cmd/evenpool/a.go: the package comment starts \"Package main x.\", not \"Command evenpool ...\": go doc shows it, and readers look for the name",
				"sources/a.go: the package comment starts \"Sources are lists.\", not \"Package sources ...\": go doc shows it, and readers look for the name",
				"alloc has a package comment in alloc/a.go and alloc/b.go: one place says what the package is for",
				"probe has no package comment: one file says what the package is for",
			},
		},
		{
			name: "script headers",
			files: map[string]string{
				"alloc/lua/good.lua":  header("good") + "return KEYS[2] .. ARGV[1]\n",
				"alloc/lua/late.lua":  "local x = 1\n" + header("late"),
				"alloc/lua/copy.lua":  header("good"),
				"alloc/lua/empty.lua": strings.Replace(header("empty"), "Cost:    c", "Cost:    ", 1),
				"alloc/lua/order.lua": strings.Replace(header("order"), "-- Twice:   t\n-- Cost:    c", "-- Cost:    c\n-- Twice:   t", 1),
				"alloc/lua/type.lua":  strings.ReplaceAll(strings.ReplaceAll(header("type"), "  zset", "  sorted"), "  hash", "  map"),
				"alloc/lua/uses.lua":  header("uses") + "return KEYS[4] .. ARGV[3]\n",
			},
			want: []string{
				`alloc/lua/copy.lua: its header says ["KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"], not ["copy" "KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"]: whoever calls or changes a script has its contract there`,
				`alloc/lua/empty.lua: its header says ["empty" "KEYS" "ARGV" "Reply" "Errors" "Twice"], not ["empty" "KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"]: whoever calls or changes a script has its contract there`,
				`alloc/lua/late.lua: its header says [], not ["late" "KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"]: whoever calls or changes a script has its contract there`,
				`alloc/lua/late.lua uses ARGV[1], which its header does not describe: whoever calls or changes a script has its contract there`,
				`alloc/lua/late.lua uses ARGV[2], which its header does not describe: whoever calls or changes a script has its contract there`,
				`alloc/lua/late.lua uses KEYS[1], which its header does not describe: whoever calls or changes a script has its contract there`,
				`alloc/lua/late.lua uses KEYS[2], which its header does not describe: whoever calls or changes a script has its contract there`,
				`alloc/lua/order.lua: its header says ["order" "KEYS" "ARGV" "Reply" "Errors" "Cost" "Twice"], not ["order" "KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"]: whoever calls or changes a script has its contract there`,
				`alloc/lua/type.lua: its header says ["type" "ARGV" "Reply" "Errors" "Twice" "Cost"], not ["type" "KEYS" "ARGV" "Reply" "Errors" "Twice" "Cost"]: whoever calls or changes a script has its contract there`,
				`alloc/lua/uses.lua uses ARGV[3], which its header does not describe: whoever calls or changes a script has its contract there`,
				`alloc/lua/uses.lua uses KEYS[4], which its header does not describe: whoever calls or changes a script has its contract there`,
			},
		},
		{
			name: "length",
			files: map[string]string{
				"probe/a.go":        "// Package probe x.\npackage probe\n" + strings.Repeat("\n", 398),
				"probe/b.go":        "package probe\n" + strings.Repeat("\n", 400),
				"probe/a_test.go":   "package probe\n" + strings.Repeat("\n", 500),
				"alloc/lua/big.lua": header("big") + strings.Repeat("\n", 390),
			},
			want: []string{
				"alloc/lua/big.lua has 401 lines, more than 400: it is about more than one thing",
				"probe/b.go has 401 lines, more than 400: it is about more than one thing",
			},
		},
		{
			name:  "top level",
			files: map[string]string{"utils/a.txt": "", "notes.md": "", "README.md": "", ".gitignore": "# made\n/bin/\n*.out\n", "bin/evenpool": "", "cpu.out": ""},
			want: []string{
				"notes.md lies at the top level: it belongs into one of the folders there, which CONTRIBUTING.md names",
				"utils lies at the top level: it belongs into one of the folders there, which CONTRIBUTING.md names",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			top := fstest.MapFS{}
			for p, text := range c.files {
				top[p] = &fstest.MapFile{Data: []byte(text)}
			}
			tree := readTree(t, top)
			var got []string
			for _, check := range structureChecks() {
				got = append(got, check.run(tree)...)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}
