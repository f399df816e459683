package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"evenpool/probe/judge"
	"evenpool/probe/lab"
)

// startLab runs the lab command in this process. What it prints can be read from
// the reader; stop sends it the signal and returns its exit code.
func startLab(t *testing.T, args ...string) (stdout io.Reader, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"evenpool", "lab"}, args...), strings.NewReader(""), in, t.Output())
		in.Close()
	}()
	stop = func() int {
		cancel()
		out.Close()
		return <-code
	}
	return out, stop
}

func fetch(t *testing.T, client *http.Client, method, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestLab(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list.txt")
	stdout, stop := startLab(t, "--judge", "--write-list", list, "-o", "json")
	var report labReport
	if err := json.NewDecoder(stdout).Decode(&report); err != nil {
		t.Fatal(err, stop())
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

	_, fetched := fetch(t, client, "GET", report.ListURL)
	written, err := os.ReadFile(list)
	if err != nil || string(written) != fetched || strings.Count(fetched, "\n") != len(report.Proxies) {
		t.Errorf("the list has %d lines for %d proxies, and is written as %q, %v", strings.Count(fetched, "\n"), len(report.Proxies), written, err)
	}
	if status, body := fetch(t, client, "POST", report.ControlURL+"proxies/flaky/fail"); status != 204 {
		t.Errorf("fail: %d %q", status, body)
	}
	if _, body := fetch(t, client, "GET", report.ControlURL); strings.Count(body, `"failing": true`) != 1 {
		t.Errorf("one proxy was told to fail:\n%s", body)
	}

	const question, nonce = "?nonce=0123456789abcdef", `"nonce":"0123456789abcdef"`
	if _, body := fetch(t, client, "GET", report.Judge.HTTP+question); !strings.Contains(body, nonce) {
		t.Errorf("the judge answers %q", body)
	}
	pem, err := os.ReadFile(report.Judge.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %q", pem)
	}
	client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	for _, url := range []string{report.Judge.HTTPS, strings.Replace(report.Judge.HTTPS, "127.0.0.1", "localhost", 1)} {
		if _, body := fetch(t, client, "GET", url+question); !strings.Contains(body, nonce) {
			t.Errorf("the judge answers %q at %s", body, url)
		}
	}

	if code := stop(); code != exitDone {
		t.Errorf("exit code %d after a signal", code)
	}
	if _, err := os.Stat(report.Judge.CAFile); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary certificate is still there: %v", err)
	}
}

func TestLabSaysHowToUseIt(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	stdout, stop := startLab(t, "--judge", "--ca-file", ca)
	var text strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(text.String(), "/flaky/recover\n"); {
		n, err := stdout.Read(buf)
		if err != nil {
			t.Fatal(err, stop())
		}
		text.Write(buf[:n])
	}
	if code := stop(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"NAME", "socks5://lab:***@127.0.0.1:", "tls_intercepted",
		"sources:\n  - name: lab\n    url: http://127.0.0.1:", "    allow_addresses: [127.0.0.0/8]\n",
		"judges:\n  - name: lab\n    http: http://127.0.0.1:", "    ca_file: " + ca + "\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "s3cret") {
		t.Error("a password is shown")
	}
	if _, err := os.Stat(ca); err != nil {
		t.Errorf("the certificate that was asked for is gone: %v", err)
	}
}

func TestLabRefuses(t *testing.T) {
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"an argument", []string{"http"}, exitUsage, "evenpool: lab takes no arguments, and got \"http\"\n"},
		{"control for all the world", []string{"--control", "0.0.0.0:20999"}, exitUsage,
			"evenpool: --control 0.0.0.0:20999: want a loopback address and a port, such as 127.0.0.1:20999\n"},
		{"a certificate of nothing", []string{"--ca-file", "x.pem"}, exitUsage, "evenpool: --ca-file is for the certificate of the judge: add --judge\n"},
		{"an unknown mix", []string{"--mix", "best"}, exitUsage, "evenpool: --mix best: unknown; use one of public, good, each\n"},
		{"a mix of none", []string{"--mix", "good"}, exitUsage, "evenpool: --mix good needs --population N\n"},
		{"a population of none", []string{"--population", "0"}, exitUsage, "evenpool: --population 0: want at least 1\n"},
		{"too few of each", []string{"--mix", "each", "--population", "3"}, exitFailed,
			fmt.Sprintf("evenpool: lab population 3: want at least %d for one of each\n", len(lab.Kinds()))},
		{"a key of nothing", []string{"--key-file", "x.key"}, exitUsage, "evenpool: --key-file is for the answers of the judge: add --judge\n"},
		{"a second judge of none", []string{"--second-judge"}, exitUsage, "evenpool: --second-judge is for one more than the judge: add --judge\n"},
		{"no key there", []string{"--judge", "--key-file", "/nowhere/key"}, exitFailed,
			"evenpool: --key-file: /nowhere/key: there is none; copy it from where it is in use, or make one with: evenpool judge --new-key /nowhere/key\n"},
		{"proxies for all the world", []string{"--addr", "0.0.0.0"}, exitFailed, "evenpool: lab address \"0.0.0.0\": want an address within 127.0.0.0/8\n"},
		{"control taken", []string{"--control", taken.Addr().String()}, exitFailed,
			"evenpool: --control: listen tcp " + taken.Addr().String() + ": bind: address already in use\n"},
		{"no place for the list", []string{"--write-list", "/nowhere/list"}, exitFailed, "evenpool: --write-list: open /nowhere/list: no such file or directory\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, append([]string{"lab"}, test.args...)...)
			if code != test.code || stdout != "" || stderr != test.stderr {
				t.Errorf("exit %d, stdout %q, stderr %q; want %d, nothing, %q", code, stdout, stderr, test.code, test.stderr)
			}
		})
	}
}

// TestLabOfAll: one of each, with all that it takes to find the truth about them.
func TestLabOfAll(t *testing.T) {
	dir := t.TempDir()
	keyFile, proxyCA := filepath.Join(dir, "judge.key"), filepath.Join(dir, "proxies.pem")
	runCLI(t, "judge", "--new-key", keyFile)
	stdout, stop := startLab(t, "--mix", "each", "--judge", "--second-judge", "--key-file", keyFile, "--proxy-ca-file", proxyCA, "-o", "json")
	var report labReport
	if err := json.NewDecoder(stdout).Decode(&report); err != nil {
		t.Fatal(err, stop())
	}
	if got, want := len(report.Proxies)+len(report.Left), len(lab.Kinds()); got != want {
		t.Errorf("%d proxies and %v, want %d", len(report.Proxies), report.Left, want)
	}
	key, err := judge.ReadKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(report.Judge.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, j := range []*labJudge{report.Judge, report.SecondJudge} {
		for _, url := range []string{j.HTTP, j.HTTPS} {
			var a judge.Answer
			_, body := fetch(t, client, "GET", url+"?nonce=0123456789abcdef")
			if err := json.Unmarshal([]byte(body), &a); err != nil || a.Verify(key) != nil {
				t.Errorf("%s: %v, %v", url, err, a.Verify(key))
			}
		}
	}
	if !strings.HasPrefix(report.SecondJudge.HTTP, "http://127.0.0.2:") {
		t.Errorf("the second judge is at %s", report.SecondJudge.HTTP)
	}
	if text, err := os.ReadFile(proxyCA); err != nil || !x509.NewCertPool().AppendCertsFromPEM(text) {
		t.Errorf("%s: %v", text, err)
	}
	if code := stop(); code != exitDone {
		t.Errorf("exit %d", code)
	}
}

// TestLabOfMany prints a line for each kind, and lists all.
func TestLabOfMany(t *testing.T) {
	list := filepath.Join(t.TempDir(), "list.txt")
	stdout, stop := startLab(t, "--population", "1000", "--write-list", list)
	var text strings.Builder
	for buf := make([]byte, 4096); !strings.Contains(text.String(), "/recover\n"); {
		n, err := stdout.Read(buf)
		if err != nil {
			t.Fatal(err, stop())
		}
		text.Write(buf[:n])
	}
	if lines, err := os.ReadFile(list); err != nil || strings.Count(string(lines), "\n") != 1000 {
		t.Errorf("%d lines, %v", strings.Count(string(lines), "\n"), err)
	}
	for _, want := range []string{"NAME         COUNT  FIRST URL", "\nsilent       600    http://127.16.0.1:", "\nrefuses      200    http://127.16.2.89:", "proxies/silent-1/fail\n"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, text.String())
		}
	}
	if n := strings.Count(text.String(), "http://127."); n > 30 {
		t.Errorf("%d URLs are printed", n)
	}
	if code := stop(); code != exitDone {
		t.Errorf("exit %d", code)
	}
}

func TestLabExplain(t *testing.T) {
	code, stdout, stderr := runCLI(t, "lab", "--explain")
	lines := strings.Split(stdout, "\n")
	if code != exitDone || stderr != "" || len(lines) != 1+len(lab.Kinds())+5 {
		t.Fatalf("exit %d, %d lines, %q", code, len(lines), stderr)
	}
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "NAME LISTED AS SPEAKS VERDICT OUTCOME CLASS STAGE ANONYMITY CAN NEEDS WHAT IT DOES" {
		t.Errorf("heading %q", got)
	}
	code, stdout, _ = runCLI(t, "lab", "--explain", "-o", "json")
	var kinds []lab.Kind
	if err := json.Unmarshal([]byte(stdout), &kinds); code != exitDone || err != nil || !reflect.DeepEqual(kinds, lab.Kinds()) {
		t.Errorf("exit %d, %v in %s", code, err, stdout)
	}
}

// TestReadmeHasTheLabsTable: README's table is that of --explain. Where it is
// not, the test says what belongs there.
func TestReadmeHasTheLabsTable(t *testing.T) {
	wantInReadme(t, "lab --explain", markdown(labTable()))
}
