package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"evenpool/daemon/config"
	"evenpool/probe"
	"evenpool/sources"
	"evenpool/sources/proxyurl"
)

// What README says has to be so.

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fenced returns the README's blocks in a language.
func fenced(t *testing.T, language string) (blocks []string) {
	t.Helper()
	for _, part := range strings.Split(readme(t), "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```\n")
		blocks = append(blocks, block+"\n")
	}
	if len(blocks) == 0 {
		t.Fatalf("README has no %s", language)
	}
	return blocks
}

// wantInReadme compares what README has between the marks of a command, and says what
// belongs there.
func wantInReadme(t *testing.T, command, want string) {
	t.Helper()
	begin, end := "<!-- evenpool "+command+" -->\n", "<!-- end of evenpool "+command+" -->\n"
	_, rest, ok := strings.Cut(readme(t), begin)
	got, _, closed := strings.Cut(rest, end)
	if !ok || !closed || strings.TrimSpace(got) != strings.TrimSpace(want) {
		t.Errorf("between %q and %q README is to have\n%s", begin, end, want)
	}
}

// markdown is a table, its heading first.
func markdown(table [][]string) string {
	var b strings.Builder
	for i, row := range table {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(&b, "|"+strings.Repeat("---|", len(row)))
		}
	}
	return b.String()
}

// README's table of rules is what policy explain says of README's configuration, and
// that one has every rule.
func TestReadmeHasEveryRule(t *testing.T) {
	blocks := fenced(t, "yaml")
	i := slices.IndexFunc(blocks, func(block string) bool { return strings.Contains(block, "banned_file") })
	if i < 0 {
		t.Fatal("README has no configuration with every rule")
	}
	cfg, warnings, err := config.Parse("README.md", []byte(blocks[i]), config.Defaults{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	said := map[string]int{} // its row
	table := [][]string{{"RULE", "WHAT IT SAYS", "NEEDS", "ACTS"}}
	for _, rule := range explainPool(cfg.Pools[0]).Rules {
		if row := said[rule.Rule]; row > 0 {
			table[row][1] += " " + rule.Sentence
			continue
		}
		name := "`" + rule.Rule + "`"
		if rule.Key != "" && rule.Key != rule.Rule {
			name += " (`" + rule.Key + "`)"
		}
		table = append(table, []string{name, rule.Sentence, rule.Needs, string(rule.Acts)})
		said[rule.Rule] = len(table) - 1
	}
	for _, rule := range probe.RuleTable() {
		if said[rule.Name] == 0 {
			t.Errorf("README's configuration does not have %s", rule.Name)
		}
	}
	want := markdown(table) + "\n"
	for _, acts := range probe.AllActs() {
		want += fmt.Sprintf("- acts %s: %s.\n", acts, acts.Says())
	}
	wantInReadme(t, "policy explain", want)
}

func TestReadmeConfigurationsAreRight(t *testing.T) {
	blocks := fenced(t, "yaml")
	// Within a list item they are indented, and without sources.
	indented := regexp.MustCompile(`(?m)^ {6}judges:\n(?: {8}.*\n| {6}pools:\n)+`).FindAllString(readme(t), -1)
	if len(indented) != 2 {
		t.Errorf("found %d configurations of judges", len(indented))
	}
	for _, block := range indented {
		blocks = append(blocks, strings.ReplaceAll("\n"+block, "\n      ", "\n")+"sources: [{name: mylist, url: 'https://www.example.org/http.txt'}]\n")
	}
	for _, block := range blocks {
		if _, warnings, err := config.Parse("README.md", []byte(block), config.Defaults{}); err != nil || len(warnings) > 0 {
			t.Errorf("%v, %v in\n%s", err, warnings, block)
		}
	}
}

// README lists all formats and no others, and each example is read as what it is
// an example of.
func TestReadmeFormatsAreThoseThatAreRead(t *testing.T) {
	_, table, _ := strings.Cut(readme(t), "\n| format | for example | and |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	row := regexp.MustCompile("^\\| `([a-z-]+)` \\| `(.*?)` \\| ")
	named := []string{"auto"}
	for line := range strings.Lines(table) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		named = append(named, m[1])
		example := strings.ReplaceAll(m[2], `\|`, "|") + "\n"
		if m[1] == "jsonl" {
			example += example // one line is JSON
		}
		list, err := sources.Parse(strings.NewReader(example), sources.Source{Scheme: proxyurl.Any}, sources.Limits{})
		if err != nil || list.Format != m[1] || len(list.Candidates) != 1 || list.Rejected() != 0 {
			t.Errorf("%s: %s is read as %q with %d candidates and %v, %v", m[1], m[2], list.Format, len(list.Candidates), list.Rejects, err)
		}
	}
	want := sources.Formats()
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		t.Errorf("README names the formats %q, and these are read: %q", named, want)
	}
}

func TestReadmeGoCompiles(t *testing.T) {
	for _, block := range fenced(t, "go") {
		dir := t.TempDir()
		file := filepath.Join(dir, "main.go")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		// Built as part of this module, whose packages it imports.
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "worker"), file).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, block)
		}
	}
}

// The programs of README are those that alloc --help shows, and that are run.
func TestReadmeHasTheWorkers(t *testing.T) {
	for language, file := range map[string]string{"go": "worker.go.txt", "python": "worker.py", "js": "worker.mjs"} {
		text, err := workers.ReadFile("clients/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got := fenced(t, language)[0]; got != string(text) {
			t.Errorf("README's %s is\n%s\nand clients/%s\n%s", language, got, file, text)
		}
	}
}

func TestReadmeScriptIsTheClassicOne(t *testing.T) {
	if got := strings.TrimSpace(fenced(t, "lua")[0]); got != classicScript {
		t.Errorf("README's script is\n%s\nand the one that is tested\n%s", got, classicScript)
	}
}

// Every command that README types exists, with its flags, and every command is
// in README.
func TestReadmeCommandsExist(t *testing.T) {
	text := readme(t)
	lines := regexp.MustCompile("(?m)(?:`|^ +|\\$\\()evenpool ([a-z][^`\n#|)]*)").FindAllStringSubmatch(text, -1)
	if len(lines) < 12 {
		t.Fatalf("found %d commands in README only", len(lines))
	}
	app := newApp(strings.NewReader(""), os.Stderr, os.Stderr)
	for _, line := range lines {
		words := strings.Fields(line[1])
		list, flags := app.Commands, app.Flags
		for len(words) > 0 {
			i := slices.IndexFunc(list, func(c *cli.Command) bool { return c.HasName(words[0]) })
			if i < 0 {
				break
			}
			list, flags, words = list[i].Subcommands, list[i].Flags, words[1:]
		}
		if len(flags) == len(app.Flags) && len(list) == len(app.Commands) {
			t.Errorf("README types %q: no such command", line[1])
			continue
		}
		for _, word := range words {
			name := strings.TrimLeft(word, "-")
			if name != word && !slices.ContainsFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
				t.Errorf("README types %q: no flag %s", line[1], word)
			}
		}
	}
	for _, command := range app.Commands {
		if !strings.Contains(text, "evenpool "+command.Name) && command.Name != "demo" && command.Name != "version" {
			t.Errorf("README does not speak of evenpool %s", command.Name)
		}
	}
}

// The shell and curl lines of README, run as they stand but for the place of the
// socket, against a real daemon.
func TestReadmeWorkersAreServed(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl on PATH to run README's lines with")
	}
	h := newHost(t, "", quickPool)
	h.start()
	h.awaitCycle()
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wrapper := "#!/bin/sh\n" + asProgram + "=evenpool exec " + self + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "evenpool"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	shell := func(script string) (string, error) {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(script, "/run/evenpool/evenpool.sock", h.client.Socket))
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "EVENPOOL_SOCKET="+h.client.Socket)
		out, err := cmd.Output()
		return string(out), err
	}
	curls := regexp.MustCompile("(?m)^    (curl --unix-socket .*)$").FindAllStringSubmatch(readme(t), -1)
	if len(curls) != 2 {
		t.Fatalf("README has %d curl lines for the socket, want 2", len(curls))
	}
	for i, want := range []string{`^{"proxy":"[a-z0-9]+://[^"]+","count":1}\n$`, `^[a-z0-9]+://\S+\n$`} {
		out, err := shell("curl -s" + strings.TrimPrefix(curls[i][1], "curl"))
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s gave %q, %v; want %s", curls[i][1], out, err, want)
		}
	}
	for _, w := range []struct{ language, file, program string }{{"python", "worker.py", "python3"}, {"js", "worker.mjs", "node"}} {
		if _, err := exec.LookPath(w.program); err != nil {
			t.Logf("SKIPPED: there is no %s to run README's %s with", w.program, w.language)
			continue
		}
		out, err := shell(w.program + " clients/" + w.file)
		if err != nil || !regexp.MustCompile(`^[a-z0-9]+://\S+ 1\n$`).MatchString(out) {
			t.Errorf("%s gave %q, %v", w.file, out, err)
		}
	}
	const line = "proxy=$(evenpool alloc) || exit"
	if !strings.Contains(readme(t), line) {
		t.Fatalf("README has no %q", line)
	}
	if out, err := shell(line + "\necho \"got $proxy\""); err != nil || !strings.HasPrefix(out, "got ") || !strings.Contains(out, "://") {
		t.Errorf("%s gave %q, %v", line, out, err)
	}
	// Without a daemon the script goes no further.
	h.stop()
	if out, err := shell(line + "\necho \"got $proxy\""); err == nil || out != "" {
		t.Errorf("without a daemon, %s gave %q, %v", line, out, err)
	}
}
