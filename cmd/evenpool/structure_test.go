package main_test

// The shape of the tree: who may import whom, what is said at the top of each
// package and script, how long a file may be and what lies at the top level.
// Each rule is a function from a tree to complaints; structure_broken_test.go
// shows each of them a tree that breaks it.

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestStructure(t *testing.T) {
	tree := readTree(t, os.DirFS("../.."))
	if len(tree.files) < 10 {
		t.Fatalf("read only %d Go files: the test no longer sees the tree", len(tree.files))
	}
	for _, check := range structureChecks() {
		t.Run(check.name, func(t *testing.T) {
			for _, complaint := range check.run(tree) {
				t.Error(complaint)
			}
		})
	}
}

type structureCheck struct {
	name string
	run  func(tree) []string
}

func structureChecks() []structureCheck {
	return []structureCheck{
		{"imports", checkImports},
		{"environment", checkEnvironment},
		{"init", checkInit},
		{"package comments", checkPackageComments},
		{"script headers", checkScriptHeaders},
		{"length", checkLength},
		{"top level", checkTopLevel},
	}
}

// importRule forbids imports to files. Folders and import paths stand for
// themselves and all below them.
type importRule struct {
	in     string                 // the folder that the rule is for; "" is the whole tree
	except []string               // folders in it that are free
	only   func(goFile) bool      // files that the rule is for
	bad    func(path string) bool // the imports that it forbids
	why    string
}

func importRules() []importRule {
	product := func(f goFile) bool { return !f.free() }
	everyFile := func(goFile) bool { return true }
	return []importRule{
		{"sources/proxyurl", nil, product, ours(), "proxyurl is the leaf that everybody imports: it imports nothing of ours"},
		{"daemon/api", nil, product, notStandard, "another program takes daemon/api as its client: the standard library is all it may bring along"},
		{"sources", nil, product, ours("sources"), "a source knows nothing of probing, storing or the daemon: of ours it imports sources alone"},
		{"probe", nil, product, ours("probe", "sources/proxyurl"), "a probe knows nothing of lists, storing or the daemon: of ours it imports probe and proxyurl alone"},
		{"alloc", nil, product, ours("alloc", "sources/proxyurl"), "the store knows nothing of lists, probing or the daemon: of ours it imports alloc and proxyurl alone"},
		{"daemon/config", nil, product, ours("daemon/config", "alloc", "probe", "sources"), "the configuration is read before there is a daemon: it knows the parts, not what wires them"},
		{"", []string{"alloc"}, product, packages("github.com/redis/go-redis/v9"), "only alloc speaks to Redis: whoever needs the pool asks alloc for it"},
		{"", nil, product, packages("evenpool/alloc/alloctest", "github.com/testcontainers/testcontainers-go"), "what serves tests stays out of the binary"},
		{"", []string{"daemon/config"}, func(f goFile) bool { return product(f) && f.dir != "daemon" }, packages("github.com/robfig/cron/v3"), "only daemon and daemon/config know schedules"},
		{"", []string{"cmd"}, product, packages("github.com/urfave/cli/v2", "flag"), "only cmd reads a command line: everybody else takes values"},
		{"", nil, everyFile, packages("github.com/stretchr/testify", "github.com/golang/mock", "go.uber.org/mock", "github.com/onsi"), "tests use real things and plain comparisons: no mocking or assertion libraries"},
	}
}

func checkImports(t tree) (complaints []string) {
	for _, rule := range importRules() {
		for _, f := range t.files {
			if !within(f.dir, rule.in) || slices.ContainsFunc(rule.except, func(dir string) bool { return within(f.dir, dir) }) || !rule.only(f) {
				continue
			}
			for _, imported := range f.syntax.Imports {
				p, _ := strconv.Unquote(imported.Path.Value)
				if rule.bad(p) {
					complaints = append(complaints, fmt.Sprintf("%s imports %s: %s", f.path, p, rule.why))
				}
			}
		}
	}
	return complaints
}

// ours matches the packages of this module but those within the given folders.
func ours(but ...string) func(string) bool {
	return func(p string) bool {
		dir, found := strings.CutPrefix(p, "evenpool/")
		return found && !slices.ContainsFunc(but, func(b string) bool { return within(dir, b) })
	}
}

func packages(list ...string) func(string) bool {
	return func(p string) bool {
		return slices.ContainsFunc(list, func(l string) bool { return within(p, l) })
	}
}

// notStandard: a module's path has a dot in its first element, ours apart.
func notStandard(p string) bool {
	first, _, _ := strings.Cut(p, "/")
	return first == "evenpool" || strings.Contains(first, ".")
}

func within(p, dir string) bool {
	return dir == "" || p == dir || strings.HasPrefix(p, dir+"/")
}

// checkEnvironment keeps the process in cmd: who ends it, its arguments and its
// environment. net/http's default client reads the environment too, for a
// proxy, and a probe or a fetch that went through that one would be worthless.
func checkEnvironment(t tree) (complaints []string) {
	names := map[string]string{
		"os":       "^(Exit|Args|Getenv|LookupEnv|Environ|Setenv|Unsetenv|Clearenv|ExpandEnv)$",
		"syscall":  "^(Exit|Getenv|Environ|Setenv|Unsetenv|Clearenv)$",
		"log":      "^(Fatal|Fatalf|Fatalln)$",
		"net/http": "^(ProxyFromEnvironment|DefaultTransport|DefaultClient|Get|Head|Post|PostForm)$",
	}
	for _, f := range t.files {
		if f.free() || within(f.dir, "cmd") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, isCall := n.(*ast.CallExpr)
			if isCall && within(f.dir, "daemon/api") && readsTheSocketsPlace(f, call) {
				return false
			}
			sel, isSelector := n.(*ast.SelectorExpr)
			if !isSelector {
				return true
			}
			from, isName := sel.X.(*ast.Ident)
			if !isName {
				return true
			}
			pkg := f.imports[from.Name]
			if pattern, known := names[pkg]; known && regexp.MustCompile(pattern).MatchString(sel.Sel.Name) {
				complaints = append(complaints, fmt.Sprintf("%s uses %s.%s: only cmd ends the process and reads its arguments and environment; everybody else takes values", f.path, pkg, sel.Sel.Name))
			}
			return true
		})
	}
	return complaints
}

// readsTheSocketsPlace: the client finds the socket by itself, as every client
// in another language would, and so api may read the two variables that say
// where it is.
func readsTheSocketsPlace(f goFile, call *ast.CallExpr) bool {
	sel, isSelector := call.Fun.(*ast.SelectorExpr)
	if !isSelector || len(call.Args) != 1 {
		return false
	}
	from, isName := sel.X.(*ast.Ident)
	name, isText := call.Args[0].(*ast.BasicLit)
	return isName && isText && f.imports[from.Name] == "os" && (sel.Sel.Name == "Getenv" || sel.Sel.Name == "LookupEnv") &&
		(name.Value == `"EVENPOOL_SOCKET"` || name.Value == `"XDG_RUNTIME_DIR"`)
}

func checkInit(t tree) (complaints []string) {
	for _, f := range t.files {
		for _, d := range f.syntax.Decls {
			if fn, isFunc := d.(*ast.FuncDecl); isFunc && fn.Recv == nil && fn.Name.Name == "init" {
				complaints = append(complaints, f.path+" has an init function: what a package needs comes in through its constructor")
			}
		}
	}
	return complaints
}

func checkPackageComments(t tree) (complaints []string) {
	where := map[string][]string{} // folder -> files with a package comment
	for _, f := range t.files {
		if f.test() {
			continue
		}
		files := where[f.dir]
		if f.syntax.Doc != nil {
			files = append(files, f.path)
			complaints = append(complaints, checkPackageComment(f)...)
		}
		where[f.dir] = files
	}
	for _, dir := range sortedKeys(where) {
		if files := where[dir]; len(files) == 0 {
			complaints = append(complaints, dir+" has no package comment: one file says what the package is for")
		} else if len(files) > 1 {
			complaints = append(complaints, fmt.Sprintf("%s has a package comment in %s: one place says what the package is for", dir, strings.Join(files, " and ")))
		}
	}
	return complaints
}

func checkPackageComment(f goFile) []string {
	want := "Package " + f.syntax.Name.Name + " "
	if f.syntax.Name.Name == "main" {
		want = "Command " + path.Base(f.dir) + " "
	}
	text := f.syntax.Doc.Text()
	if strings.HasPrefix(text, want) {
		return nil
	}
	first, _, _ := strings.Cut(text, "\n")
	return []string{fmt.Sprintf("%s: the package comment starts %q, not %q: go doc shows it, and readers look for the name", f.path, first, want+"...")}
}

// checkScriptHeaders holds the contract at the top of a script: its name and what
// it does, each key with its type, each argument, then the reply, the errors,
// what a second run does and the cost, in this order.
func checkScriptHeaders(t tree) (complaints []string) {
	const why = "whoever calls or changes a script has its contract there"
	starts := regexp.MustCompile(`^-- (?:(KEYS)\[\d+\] +(?:zset|hash|stream|string|list|set) |(ARGV)\[\d+\]|(Reply|Errors|Twice|Cost):) *\S`)
	operand := regexp.MustCompile(`(?:KEYS|ARGV)\[\d+\]`)
	for _, p := range sortedKeys(t.scripts) {
		header, body := cutScript(t.scripts[p])
		var said []string
		name := strings.TrimSuffix(path.Base(p), ".lua")
		if strings.HasPrefix(header, "-- "+name+": ") {
			said = append(said, name)
		}
		for line := range strings.Lines(header) {
			if m := starts.FindStringSubmatch(line); m != nil {
				said = append(said, m[1]+m[2]+m[3])
			}
		}
		want := []string{name, "KEYS", "ARGV", "Reply", "Errors", "Twice", "Cost"}
		if said = slices.Compact(said); !slices.Equal(said, want) {
			complaints = append(complaints, fmt.Sprintf("%s: its header says %q, not %q: %s", p, said, want, why))
		}
		for _, used := range unique(operand.FindAllString(body, -1)) {
			if !strings.Contains(header, used) {
				complaints = append(complaints, fmt.Sprintf("%s uses %s, which its header does not describe: %s", p, used, why))
			}
		}
	}
	return complaints
}

// cutScript parts a script after the comment that it starts with.
func cutScript(text string) (header, body string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		header += line
	}
	return header, text[len(header):]
}

func unique(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

const maxLines = 400

func checkLength(t tree) (complaints []string) {
	for _, p := range sortedKeys(t.lines) {
		if n := t.lines[p]; n > maxLines && !strings.HasSuffix(p, "_test.go") {
			complaints = append(complaints, fmt.Sprintf("%s has %d lines, more than %d: it is about more than one thing", p, n, maxLines))
		}
	}
	return complaints
}

func checkTopLevel(t tree) (complaints []string) {
	allowed := []string{
		"cmd", "daemon", "probe", "sources", "alloc", "systemd",
		"go.mod", "go.sum", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "staticcheck.conf",
		".ci", ".git", ".gitignore", ".gitattributes", ".editorconfig",
	}
	for _, name := range t.top {
		if !slices.Contains(allowed, name) {
			complaints = append(complaints, fmt.Sprintf("%s lies at the top level: it belongs into one of the folders there, which CONTRIBUTING.md names", name))
		}
	}
	return complaints
}
