package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"
)

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPassword(t *testing.T) {
	credentials := filepath.Dir(write(t, PasswordCredential, "from systemd"))
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, file, credentials, want, err string
	}{
		{name: "none"},
		{name: "a file", file: write(t, "p", "pass word"), want: "pass word"},
		{name: "one newline goes", file: write(t, "p", "pass\n"), want: "pass"},
		{name: "and that of Windows", file: write(t, "p", "pass\r\n"), want: "pass"},
		{name: "two are a mistake", file: write(t, "p", "pass\n\n"), err: "has more than one line"},
		{name: "the file goes before the credential", file: write(t, "p", "pass"), credentials: credentials, want: "pass"},
		{name: "the credential", credentials: credentials, want: "from systemd"},
		{name: "other credentials", credentials: t.TempDir()},
		{name: "a missing file", file: "/nonexistent/p", err: "no such file"},
		{name: "an empty file", file: write(t, "p", "\n"), err: "is empty"},
		{name: "a huge file", file: write(t, "p", strings.Repeat("x", maxPasswordBytes+1)), err: "is larger than 4096 bytes"},
		{name: "a pipe does not block", file: fifo, err: "is not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Redis{PasswordFile: tc.file}.Password(tc.credentials)
			if got != tc.want || (err != nil) != (tc.err != "") {
				t.Fatalf("got %q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.err) || !strings.Contains(err.Error(), tc.file)) {
				t.Errorf("got %v, want %s and the file's name", err, tc.err)
			}
		})
	}
}

// What is wrong later has its place in the file, with a key's file and without.
func TestFilesIn(t *testing.T) {
	c, _, err := Parse("f", []byte("redis: {url: \"redis://a\", password_file: /nonexistent}\n"+minimal), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	empty := filepath.Dir(write(t, PasswordCredential, ""))
	_, first := c.Redis.Password("")
	_, second := Redis{}.Password(empty)
	const want = `f:1:42: redis.password_file: "/nonexistent": no such file or directory
f:1:9: redis: systemd's credential redis-password: is empty; write the password into it
f:1:1: geoip.country: "/x\x1b": none`
	got := append(c.FilesIn("redis", errors.Join(first, second)), c.FilesIn("", InKey("geoip.country", "/x\x1b", errors.New("none")))...)
	if got.Error() != want || c.FilesIn("redis", nil) != nil {
		t.Errorf("got\n%v", got)
	}
}

func TestRootCAs(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	cert := server.Certificate()
	file := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))

	if roots, err := (Judge{}).RootCAs(); roots != nil || err != nil {
		t.Errorf("without a file: %v, %v", roots, err)
	}
	roots, err := Judge{Name: "mine", CAFile: file}.RootCAs()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "example.com"}); err != nil {
		t.Error(err)
	}
	_, err = Judge{Name: "mine", CAFile: write(t, "ca.pem", "no PEM")}.RootCAs()
	if err == nil || !strings.HasSuffix(err.Error(), "ca.pem: has no certificate in PEM form") {
		t.Errorf("a file without certificates: %v", err)
	}
	_, err = Judge{Name: "mine", CAFile: "/nonexistent"}.RootCAs()
	if err == nil || !strings.HasPrefix(err.Error(), "ca_file: /nonexistent: no such file") {
		t.Errorf("a missing file: %v", err)
	}
}

// No secret of the file is in what is shown or said about it.
func TestR13_SecretsAreHidden(t *testing.T) {
	const secret = "hunter2"
	for _, url := range []string{
		"https://me:hunter2@lists.example.net/http.txt",
		"https://hunter2@lists.example.net/http.txt",
		"https://me:hunter2@lists.example.net/@all/http.txt",
		"https://lists.example.net/http.txt?token=hunter2&page=2",
		"https://lists.example.net/http.txt?a=1&API_Key=hunter2",
		"https://me:hunter2@lists.example.net:99999/",
		"https://me:hun/hunter2@lists.example.net/",
		"me:hunter2@lists.example.net",
		"redis://:hunter2@lists.example.net",
	} {
		file := strings.Replace(minimal, "https://example.org/http.txt", url, 1)
		c, _, err := Parse("f", []byte(file), Defaults{})
		said := ""
		if err != nil {
			said = err.Error()
		} else {
			shown, err := yaml.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			said = string(shown)
		}
		if strings.Contains(said, secret) || !strings.Contains(said, "***") || !strings.Contains(said, "lists.example.net") {
			t.Errorf("%s:\n%s", url, said)
		}
	}
}
