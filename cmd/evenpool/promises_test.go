package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A promise without a test fails, and so does a test that names no promise; one test may
// hold several.
func TestPromisesScript(t *testing.T) {
	script, err := filepath.Abs("../../.ci/promises.sh")
	if err != nil {
		t.Fatal(err)
	}
	const promises = "# a comment\nH1 One.\nR13 Two.\n"
	for _, tc := range []struct{ name, tests, want string }{
		{"all", "func TestH1_R13_Both(t *testing.T) {\nfunc TestOther(t *testing.T) {\n",
			"H1  One.\n      TestH1_R13_Both\nR13  Two.\n      TestH1_R13_Both\n2 promises, 0 without a test\n"},
		{"one without", "func FuzzH1_X(f *testing.F) {\n",
			"H1  One.\n      FuzzH1_X\nR13  Two.\n      NO TEST\n2 promises, 1 without a test: R13\nexit status 1"},
		{"a number that begins like another", "func TestH1_X(t *testing.T) {\nfunc TestR1_X(t *testing.T) {\n",
			"no such promise: R1 of TestR1_X\nH1  One.\n      TestH1_X\nR13  Two.\n      NO TEST\n2 promises, 1 without a test: R13\nexit status 1"},
		{"no tests at all", "package x\n",
			"H1  One.\n      NO TEST\nR13  Two.\n      NO TEST\n2 promises, 2 without a test: H1 R13\nexit status 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, ".ci"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{".ci/promises.txt": promises, "x_test.go": tc.tests} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out, err := exec.Command(script, dir).CombinedOutput()
			got := string(out)
			if err != nil {
				got += err.Error()
			}
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
