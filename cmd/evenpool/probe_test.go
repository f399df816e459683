package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// startJudge serves our judge on http and https; it returns the flags that name
// it.
func startJudge(t *testing.T) []string {
	t.Helper()
	cert, pem, err := judge.SelfSigned("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "judge.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		t.Fatal(err)
	}
	var servers serverSet
	t.Cleanup(servers.close)
	var handler judge.Handler
	plain, err := servers.listen(t.Context(), "127.0.0.1:0", judge.NewServer(&handler), nil)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := servers.listen(t.Context(), "127.0.0.1:0", judge.NewServer(&handler), &cert)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--judge-http", "http://" + plain + "/", "--judge-https", "https://" + secure + "/", "--ca-file", file, "--allow-address", "127.0.0.0/8"}
}

// probeJSON runs the command on a list and returns its report.
func probeJSON(t *testing.T, list string, args ...string) probeReport {
	t.Helper()
	var out, errs bytes.Buffer
	args = slices.Concat([]string{"evenpool", "probe", "--list", "-", "-o", "json"}, args)
	if code := run(t.Context(), args, strings.NewReader(list), &out, &errs); code != exitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var report probeReport
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	return report
}

// TestProbeTheLab: the lab's list, with its passwords on standard input, gives the
// lab's truth, and no password is printed.
func TestProbeTheLab(t *testing.T) {
	l, err := lab.Start(t.Context(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	report := probeJSON(t, l.ListText(), append(startJudge(t), "--timeout", "1s")...)
	byEndpoint := map[string]triedReport{}
	for _, p := range report.Proxies {
		byEndpoint[p.Endpoint] = p
	}
	eligible := 0
	for _, p := range l.Proxies() {
		got, ok := byEndpoint[p.URL.Endpoint.Redacted()]
		if !ok {
			t.Errorf("%s: not in the report", p.Name)
			continue
		}
		last := got.Results[len(got.Results)-1]
		if string(last.Outcome) != p.Truth.Outcome || (got.Verdict == probe.Pass) != p.Truth.Eligible {
			t.Errorf("%s: %s, %s; want %s, eligible %v", p.Name, last.Outcome, got.Verdict, p.Truth.Outcome, p.Truth.Eligible)
		}
		if p.Truth.Eligible {
			eligible++
			if got.Proxy != p.URL.Redacted() {
				t.Errorf("%s: passes as %s, want %s", p.Name, got.Proxy, p.URL.Redacted())
			}
		}
		if password := p.URL.Endpoint.Password(); password != "" && strings.Contains(fmt.Sprint(report), password) {
			t.Errorf("%s: the password is in the report", p.Name)
		}
	}
	if report.Passed != eligible || len(report.Proxies) != len(l.Proxies()) {
		t.Errorf("%d of %d pass, want %d of %d", report.Passed, len(report.Proxies), eligible, len(l.Proxies()))
	}
}

// TestProbeTriesTheSchemes: a line without a scheme is tried by all of them.
func TestProbeTriesTheSchemes(t *testing.T) {
	l, err := lab.Start(t.Context(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := slices.IndexFunc(l.Proxies(), func(p lab.Proxy) bool {
		return p.Truth.Eligible && p.URL.Scheme == proxyurl.SOCKS5 && !p.URL.Endpoint.HasUser()
	})
	good := l.Proxies()[i].URL
	flags := startJudge(t)
	report := probeJSON(t, good.Endpoint.HostPort()+"\nnonsense\n", flags...)
	if len(report.Proxies) != 1 || report.Proxies[0].Proxy != good.String() {
		t.Errorf("got %+v", report.Proxies)
	}

	code, stdout, stderr := runCLI(t, append([]string{"probe", good.String()}, flags...)...)
	if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, good.String()+": pass\n") || !strings.HasSuffix(stdout, "\n1 of 1 pass\n") {
		t.Fatalf("exit %d, %q, %q", code, stdout, stderr)
	}
	if got := strings.Fields(strings.Split(stdout, "\n")[1]); strings.Join(got, " ") != "socks5 ok" {
		t.Errorf("result %q in %s", got, stdout)
	}
	// Of many there is a line each.
	var out, errs bytes.Buffer
	if code := run(t.Context(), append([]string{"evenpool", "probe", "--list", "-"}, flags...), strings.NewReader(good.String()+"\n"+manyDead(8)), &out, &errs); code != exitDone {
		t.Fatalf("exit %d, %s", code, &errs)
	}
	lines := strings.Split(out.String(), "\n")
	if got := strings.Fields(lines[1]); len(lines) != 13 || lines[11] != "1 of 9 pass" || len(got) != 7 || strings.Join(got[:5], " ") != good.Endpoint.String()+" pass socks5 ok -" {
		t.Errorf("lines %q", lines)
	}
	if got := strings.Fields(lines[0]); strings.Join(got, " ") != "PROXY VERDICT SCHEME OUTCOME STAGE MS DETAIL" {
		t.Errorf("heading %q", lines[0])
	}
}

// A list is read in whatever format a source may have, and opened like one: what
// waits for a writer or never ends is refused at once.
func TestProbeReadsListsAsSourcesAreRead(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "list.csv")
	if err := os.WriteFile(csv, []byte("ip,port,protocols\n127.0.0.1,9,http\n127.0.0.1,19,socks5\n10.0.0.1,80,http\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := append(startJudge(t), "-o", "json")
	code, stdout, stderr := runCLI(t, append([]string{"probe", "--list", csv}, flags...)...)
	var report probeReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitDone || len(report.Proxies) != 2 || report.Proxies[1].Endpoint != "127.0.0.1:19" {
		t.Errorf("exit %d, %v, %+v, %s", code, err, report, stderr)
	}
	if want := "line 4: private: 10.0.0.1:80\n1 of 3 records give no proxy\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
	for path, want := range map[string]string{
		fifo:               "evenpool: --list: fetch " + fifo + ": open " + fifo + ": not a regular file\n",
		dir:                "evenpool: --list: fetch " + dir + ": open " + dir + ": not a regular file\n",
		"/dev/zero":        "evenpool: --list: fetch /dev/zero: open /dev/zero: not a regular file\n",
		dir + "/elsewhere": "evenpool: --list " + dir + "/elsewhere: no such file\n",
	} {
		code, stdout, stderr := runCLI(t, append([]string{"probe", "--list", path}, flags...)...)
		if code == exitDone || stdout != "" || stderr != want {
			t.Errorf("exit %d, %q, stderr %q; want %q", code, stdout, stderr, want)
		}
	}
}

func TestProbeUsage(t *testing.T) {
	judge := " --judge-http http://judge.example.org/"
	for _, tc := range []struct{ args, stderr string }{
		{"" + judge, "no proxy to try: give URLs, or --list FILE"},
		{"http://203.0.113.7:80 --list -" + judge, "give proxies as arguments or by --list, not both"},
		{"http://us:secret@203.0.113.7:80" + judge, "http://us:***@203.0.113.7:80 has a password, and other users of this host can see arguments: put it in a file and use --list FILE, or --list - for standard input"},
		{"http://us:secret@nowhere:80" + judge, `bad-host: "nowhere"; want a URL such as http://203.0.113.7:8080`},
		{"203.0.113.7:80" + judge, `unparseable: "203.0.113.7:80"; want a URL such as http://203.0.113.7:8080`},
		{"http://203.0.113.7:80 --judge-http https://judge.example.org/", "--judge-http https://judge.example.org/: want a URL such as http://judge.example.org/"},
		{"http://203.0.113.7:80 --expect x", "--expect is for a judge given by --judge-http or --judge-https"},
		{"http://203.0.113.7:80 --judge-key-file x", "--judge-key-file is for a judge given by --judge-http or --judge-https"},
		{"http://203.0.113.7:80 --expect x --echo json,origin" + judge, "--expect, --echo and --judge-key-file are for judges of different kinds: give one of them"},
		{"http://203.0.113.7:80 --echo xml,origin" + judge, "--echo xml,origin: format: want json or env; want FORMAT,ADDRESS[,HEADERS], such as json,origin,headers"},
		{"http://203.0.113.7:80 --echo json" + judge, "--echo json: address: is empty; want FORMAT,ADDRESS[,HEADERS], such as json,origin,headers"},
		{"http://203.0.113.7:80 --allow-address x" + judge, "--allow-address x: want a prefix, such as 127.0.0.0/8"},
		{"http://203.0.113.7:80 --concurrency 0" + judge, "--concurrency 0: want 1 to 10000"},
		{"http://203.0.113.7:80 --timeout 1h" + judge, "--timeout 1h0m0s: want 10ms to 1m"},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"probe"}, strings.Fields(tc.args)...)...)
		if code != exitUsage || stdout != "" || stderr != "evenpool: "+tc.stderr+"\n" {
			t.Errorf("%s: exit %d, %q, %q", tc.args, code, stdout, stderr)
		}
	}
}

// TestProbeWithoutAWellJudge: nothing is tried when nothing can be proven.
func TestProbeWithoutAWellJudge(t *testing.T) {
	s := httptest.NewServer(nil) // 404 for everything
	defer s.Close()
	code, stdout, stderr := runCLI(t, "probe", "http://127.0.0.1:9", "--allow-address", "127.0.0.1", "--judge-http", s.URL)
	want := "evenpool: no judge answers as it should: flags (http): judge_answer at answer: status 404 in place of 200\n"
	if code != exitFailed || stdout != "" || stderr != want {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}
