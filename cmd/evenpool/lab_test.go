package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
