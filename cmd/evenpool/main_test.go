package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// runCLI runs the program in this process and returns what it wrote.
func runCLI(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"evenpool"}, args...), strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		args   []string
		stderr string
	}{
		{"unknown command", []string{"serv"}, "evenpool: unknown command \"serv\"; 'evenpool --help' lists them\n"},
		{"unknown flag", []string{"version", "--jsn"}, "evenpool: flag provided but not defined: -jsn; see 'evenpool version --help'\n"},
		{"bad format", []string{"version", "-o", "xml"}, "evenpool: -o xml: unknown format; use text or json\n"},
		{"argument too many", []string{"version", "now"}, "evenpool: version takes no arguments\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, tc.args...)
			if code != exitUsage || stdout != "" || stderr != tc.stderr {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, nothing, %q", code, stdout, stderr, exitUsage, tc.stderr)
			}
		})
	}
}

// Flags behind an argument used to be ignored without a word.
func TestFlagsAfterArguments(t *testing.T) {
	app := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	for _, tc := range []struct{ in, want string }{
		{"evenpool version now -o json", "evenpool version -o json now"},
		{"evenpool version now -o=json", "evenpool version -o=json now"},
		{"evenpool version -- -o json", "evenpool version -- -o json"},
		{"evenpool version - --help", "evenpool version --help -"},
	} {
		got := flagsFirst(app, strings.Fields(tc.in))
		if want := strings.Fields(tc.want); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", tc.in, got, want)
		}
	}
}

func TestHelpOfEveryCommandHasAnExample(t *testing.T) {
	for _, command := range commands() {
		for _, args := range append([][]string{{command.Name}}, subcommands(command.Name)...) {
			code, stdout, stderr := runCLI(t, append(args, "--help")...)
			if code != exitDone || stderr != "" || !strings.Contains(stdout, "evenpool "+strings.Join(args, " ")) {
				t.Errorf("%v --help: exit %d, stderr %q, and no example in\n%s", args, code, stderr, stdout)
			}
		}
	}
}

func subcommands(name string) (list [][]string) {
	for _, command := range commands() {
		if command.Name == name {
			for _, sub := range command.Subcommands {
				list = append(list, []string{name, sub.Name})
			}
		}
	}
	return list
}
