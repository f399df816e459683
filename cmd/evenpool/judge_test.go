package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"evenpool/daemon/config"
	"evenpool/probe/judge"
)

// TestJudge: what it prints is a configuration, and what the configuration names
// is a judge with a certificate that the configuration trusts.
func TestJudge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "judge.pem")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"evenpool", "judge", "--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--write-cert", file},
			strings.NewReader(""), in, t.Output())
		in.Close()
	}()
	var text strings.Builder
	lines := bufio.NewScanner(io.TeeReader(out, &text))
	for lines.Scan() && !strings.Contains(lines.Text(), "allow_addresses") {
	}
	_, judges, ok := strings.Cut(text.String(), "In a configuration:\n\n")
	if !ok {
		t.Fatalf("printed %q", text.String())
	}
	yaml := judges + "sources: [{name: s, url: 'https://example.org/x', scheme: http}]\npools: [{name: p}]\n"
	cfg, warnings, err := config.Parse("printed", []byte(yaml), config.Defaults{})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v in\n%s", err, warnings, yaml)
	}
	j := cfg.Judges[0]
	if len(j.AllowAddresses) != 1 || j.AllowAddresses[0].String() != "127.0.0.1/32" {
		t.Errorf("opens %v", j.AllowAddresses)
	}
	pem, err := os.ReadFile(j.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}}
	for _, u := range []string{j.HTTP.String(), j.HTTPS.String()} {
		if _, body := fetch(t, client, "GET", u+"?nonce=0123456789abcdef"); !strings.Contains(body, `"nonce":"0123456789abcdef"`) {
			t.Errorf("%s answers %q", u, body)
		}
	}
	cancel()
	if got := <-code; got != exitDone {
		t.Errorf("exit %d after a signal", got)
	}
}

func TestJudgeLines(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines judgeLines
		host  string
		want  string
	}{
		{"by name", judgeLines{http: "[::]:80", https: "[::]:443"}, "judge.example.org",
			"    http: http://judge.example.org:80/\n    https: https://judge.example.org:443/\n"},
		{"by address", judgeLines{http: "8.8.8.8:8080"}, "", "    http: http://8.8.8.8:8080/\n"},
		{"everywhere", judgeLines{http: "[::]:80"}, "", "    http: http://HOST:80/\n"},
		{"private", judgeLines{http: "10.0.0.1:80", caFile: "x.pem"}, "",
			"    http: http://10.0.0.1:80/\n    ca_file: x.pem    # a copy of this file; a new one at each start\n    allow_addresses: [10.0.0.1/32]    # not a public address\n"},
		{"signed", judgeLines{http: "8.8.8.8:80", keyFile: "/etc/evenpool/judge.key"}, "",
			"    http: http://8.8.8.8:80/\n    key_file: /etc/evenpool/judge.key    # a copy of this file\n"},
	} {
		var got strings.Builder
		if err := tc.lines.write(&got, tc.host); err != nil {
			t.Fatal(err)
		}
		if _, text, _ := strings.Cut(got.String(), "  - name: mine\n"); text != tc.want {
			t.Errorf("%s: got\n%s", tc.name, text)
		}
	}
}

func TestJudgeUsage(t *testing.T) {
	for _, tc := range []struct{ args, stderr string }{
		{"", "nothing to serve: give --http ADDRESS:PORT, --https ADDRESS:PORT, or both"},
		{"now", `judge takes no arguments, and got "now"`},
		{"--http 80", "--http 80: want ADDRESS:PORT, such as 127.0.0.1:8080 or :80"},
		{"--https :443", "--https needs --cert FILE and --key FILE; or --write-cert FILE, to make a certificate that those who read the file can verify"},
		{"--https :443 --cert x", "--cert and --key belong together"},
		{"--http :80 --cert x --key y", "a certificate is for https: add --https ADDRESS:PORT"},
		{"--https :443 --cert x --key y --write-cert z", "--write-cert is for the certificate that is made without --cert"},
		{"--new-key x --http :80", "--new-key writes a key and ends: it goes with no other flag"},
		{"--http :80 --key-file=", "--key-file has no value: name a file, or leave it out for answers that are not signed"},
		{"--http :80 --rate -1", "--rate -1: want a number from 0, for no limit, to 1000000"},
		{"--http :80 --burst 0", "--burst 0: want a number from 1 to 1000000"},
		{"--https :443 --write-cert z", "--write-cert needs --host NAME: the certificate is for one name, and :443 is every address"},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"judge"}, strings.Fields(tc.args)...)...)
		if code != exitUsage || stdout != "" || stderr != "evenpool: "+tc.stderr+"\n" {
			t.Errorf("%s: exit %d, %q, %q", tc.args, code, stdout, stderr)
		}
	}
	code, _, stderr := runCLI(t, "judge", "--https", "127.0.0.1:0", "--cert", "/nonexistent", "--key", "/nonexistent")
	if code != exitFailed || !regexp.MustCompile(`^evenpool: --cert, --key: open /nonexistent: no such file or directory\n$`).MatchString(stderr) {
		t.Errorf("exit %d, %q", code, stderr)
	}
}

// TestJudgeSigns: a key is made once, and what the judge then answers verifies
// with it; a bad key file ends the start.
func TestJudgeSigns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "judge.key")
	code, stdout, stderr := runCLI(t, "judge", "--new-key", file)
	if want := "wrote a new key to " + file + "; the judge and the host that probes need the same one\n"; code != exitDone || stdout != want || stderr != "" {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if code, _, stderr := runCLI(t, "judge", "--new-key", file); code != exitFailed || stderr != "evenpool: --new-key: open "+file+": file exists\n" {
		t.Errorf("over an old one: exit %d, %q", code, stderr)
	}
	key, err := judge.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runCLI(t, "judge", "--http", "127.0.0.1:0", "--key-file", file+".not"); code != exitFailed ||
		stderr != "evenpool: --key-file: "+file+".not: there is none; copy it from where it is in use, or make one with: evenpool judge --new-key "+file+".not\n" {
		t.Errorf("no file: exit %d, %q", code, stderr)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"evenpool", "judge", "--http", "127.0.0.1:0", "--key-file", file, "--rate", "0.001", "--burst", "2"},
			strings.NewReader(""), in, t.Output())
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	at := ""
	for lines.Scan() && !strings.Contains(lines.Text(), "allow_addresses") {
		if _, url, ok := strings.Cut(lines.Text(), " http: "); ok {
			at = url
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var a judge.Answer
	_, body := fetch(t, client, "GET", at+"?nonce=0123456789abcdef")
	if err := json.Unmarshal([]byte(body), &a); err != nil || a.Verify(key) != nil {
		t.Errorf("%s: %v, %v", body, err, a.Verify(key))
	}
	if status, body := fetch(t, client, "GET", at+"page"); status != 200 || body != judge.KnownPage {
		t.Errorf("the page: %d %q", status, body)
	}
	if status, _ := fetch(t, client, "GET", at+"204"); status != http.StatusTooManyRequests {
		t.Errorf("the third at once, of two: status %d", status)
	}
	cancel()
	out.Close()
	if got := <-ended; got != exitDone {
		t.Errorf("exit %d", got)
	}
}
