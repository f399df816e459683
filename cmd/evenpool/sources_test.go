package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"evenpool/sources"
)

// listFile writes a list with something of everything into a new directory, and
// goes there.
func listFile(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	text := "# mine\n1.2.3.4:8080\n1.2.3.4:8080\nsocks5://1.2.3.4:8080\n1.2.3.5:25\n10.0.0.1:80:joe:hunter2\n1.2.3.\x1b[31m\n1.2.3.400:80\n"
	if err := os.WriteFile("list.txt", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSourcesCheckOfAFile(t *testing.T) {
	listFile(t)
	code, stdout, stderr := runCLI(t, "sources", "check", "list.txt", "--scheme", "http")
	want := `SOURCE    FORMAT  RECORDS  CANDIDATES  ENDPOINTS  DUPLICATES  REJECTED  REFUSED  USABLE
list.txt  plain   7        3           2          1           3         1        yes

list.txt
  rejected: bad-host 1, private 1, unparseable 1
    line 6: private: 10.0.0.1:80:***
    line 7: unparseable: 1.2.3.\x1b[31m
    line 8: bad-host: 1.2.3.400:80
  refused: port-25 1
`
	if code != exitDone || stderr != "" || stdout != want {
		t.Errorf("exit %d, stderr %q, stdout\n%s\nwant 0, nothing and\n%s", code, stderr, stdout, want)
	}
}

func TestSourcesCheckInJSON(t *testing.T) {
	listFile(t)
	if err := os.WriteFile("page.html", []byte("<html>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runCLI(t, "sources", "check", "list.txt", "page.html", "--scheme=http", "-o", "json")
	if code != exitFailed || stderr != "evenpool: fetch page.html: a page of HTML or XML in place of a list\n" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	lines := strings.SplitAfter(stdout, "\n")
	if len(lines) != 3 {
		t.Fatalf("want a line for each list, got\n%s", stdout)
	}
	for i, want := range []string{
		`{"name":"list.txt","format":"plain","records":7,"candidates":3,"endpoints":2,"duplicates":1,"rejected":3,
		  "rejects":{"bad-host":1,"private":1,"unparseable":1},"refused":{"port-25":1},
		  "samples":[{"line":6,"reason":"private","text":"10.0.0.1:80:***"},
		    {"line":7,"reason":"unparseable","text":"1.2.3.\\x1b[31m"},
		    {"line":8,"reason":"bad-host","text":"1.2.3.400:80"}]}`,
		`{"name":"page.html","format":"plain","records":1,"candidates":0,"endpoints":0,"duplicates":0,"rejected":1,
		  "rejects":{"unparseable":1},"refused":{},"samples":[{"line":1,"reason":"unparseable","text":"<html>"}],
		  "error":"fetch page.html: a page of HTML or XML in place of a list"}`,
	} {
		var got, expected any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("got  %s\nwant %s", lines[i], want)
		}
	}
}

func TestSourcesCheckOfTheConfiguration(t *testing.T) {
	listFile(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "127.0.0.1:8080\n127.0.0.1:25\n")
	}))
	defer web.Close()
	here, _ := os.Getwd()
	yaml := fmt.Sprintf(`sources:
  - {name: mine, url: "file://%s", scheme: http}
  - {name: lab, url: %s, scheme: socks5, allow_addresses: [127.0.0.0/8]}
judges:
  - {name: judge, https: "https://judge.example.org/"}
pools:
  - name: web
    eligibility: {require: [tls]}
`, filepath.Join(here, "list.txt"), web.URL)
	if err := os.WriteFile("evenpool.yaml", []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	// A source that is asked for by name comes before a file that is called so.
	if err := os.WriteFile("lab", []byte("1.2.3.4:8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string // names, and candidates of each
	}{
		{nil, "mine 3, lab 2"},
		{[]string{"lab"}, "lab 2"},
		{[]string{"lab", "--scheme", "socks4"}, "lab 2"},
		{[]string{"lab", "list.txt", "--scheme", "http"}, "lab 2, list.txt 3"},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"sources", "check", "-c", "evenpool.yaml", "-o", "json"}, c.args...)...)
		var got []string
		for dec := json.NewDecoder(strings.NewReader(stdout)); ; {
			var check sourceCheck
			if dec.Decode(&check) != nil {
				break
			}
			got = append(got, fmt.Sprint(check.Name, " ", check.Candidates))
		}
		if code != exitDone || stderr != "" || strings.Join(got, ", ") != c.want {
			t.Errorf("%q: exit %d, %q, stderr %q; want 0, %q", c.args, code, got, stderr, c.want)
		}
	}
}

func TestSourcesCheckOfAURL(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "1.2.3.4:8080\n")
	}))
	defer web.Close()
	url := web.URL + "/list.txt?key=hunter2"
	// Loopback is not public, and nothing opens it.
	code, stdout, stderr := runCLI(t, "sources", "check", url, "--scheme", "http")
	want := "evenpool: fetch " + web.URL + "/list.txt: address 127.0.0.1 may not be dialled: loopback\n"
	if code != exitFailed || stderr != want || strings.Contains(stdout, "hunter2") {
		t.Errorf("exit %d, stderr %q, stdout %q; want 1, %q", code, stderr, stdout, want)
	}
	code, stdout, stderr = runCLI(t, "sources", "check", url, "--scheme", "http", "--allow-address", "127.0.0.1")
	if code != exitDone || stderr != "" || !strings.Contains(stdout, web.URL+"/list.txt  plain   1        1 ") {
		t.Errorf("exit %d, stderr %q, stdout %q", code, stderr, stdout)
	}
}

func TestSourcesCheckOfStandardInput(t *testing.T) {
	var out, errs bytes.Buffer
	args := []string{"evenpool", "sources", "check", "-", "--scheme", "http", "-o", "json"}
	code := run(t.Context(), args, strings.NewReader("1.2.3.4:8080\n1.2.3.4:8080\n1.2.3.4\n"), &out, &errs)
	want := `{"name":"-","format":"plain","candidates":1,"duplicates":1,"rejected":1,"rejects":{"unparseable":1},"records":3,"endpoints":1,"refused":{},` +
		`"samples":[{"line":3,"reason":"unparseable","text":"1.2.3.4"}]}` + "\n"
	if code != exitDone || errs.Len() > 0 || out.String() != want {
		t.Errorf("exit %d, stderr %q, stdout\n%s\nwant 0, nothing and\n%s", code, &errs, &out, want)
	}
	out.Reset()
	code = run(t.Context(), args, strings.NewReader("<html>\n"), &out, &errs)
	if code != exitFailed || !strings.HasPrefix(errs.String(), "evenpool: standard input: ") {
		t.Errorf("exit %d, stderr %q", code, &errs)
	}
}

// An interrupt ends what still waits, and what was read is shown: list.txt, if it
// was read by then, which it mostly is.
func TestSourcesCheckInterrupted(t *testing.T) {
	listFile(t)
	for range 100 {
		ctx, interrupt := context.WithCancel(t.Context())
		stuck, write := io.Pipe()
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "1.2.3.4:8080\n")
			w.(http.Flusher).Flush()
			interrupt()
			<-r.Context().Done()
		}))
		var out, errs bytes.Buffer
		code := run(ctx, []string{"evenpool", "sources", "check", "list.txt", "-", web.URL, "--scheme", "http", "--allow-address", "127.0.0.1", "-o", "json"}, stuck, &out, &errs)
		web.Close()
		write.Close()
		read := strings.Count(out.String(), "\n")
		if want := fmt.Sprintf("evenpool: interrupted after %d of 3 lists\n", read); code != exitFailed || errs.String() != want || read > 1 {
			t.Fatalf("exit %d, stderr %q, stdout\n%s", code, &errs, &out)
		}
		if read == 1 {
			if !strings.HasPrefix(out.String(), `{"name":"list.txt",`) {
				t.Errorf("stdout %s", &out)
			}
			return
		}
	}
	t.Error("what was read was never shown")
}

func TestSourcesCheckErrors(t *testing.T) {
	listFile(t)
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"no scheme", []string{"list.txt"}, exitDone,
			"evenpool: list.txt names no scheme for some records: give the source a scheme, or use --scheme\n"},
		{"a directory", []string{"."}, exitFailed, "evenpool: fetch .: open " + mustGetwd(t) + ": not a regular file\n"},
		{"nothing of that name", []string{"absent.txt"}, exitUsage,
			"evenpool: absent.txt is neither a source of /etc/evenpool/evenpool.yaml nor a file nor a URL\n"},
		{"a bad scheme", []string{"list.txt", "--scheme", "vmess"}, exitUsage,
			"evenpool: --scheme vmess: want http, https, socks4, socks4a, socks5 or any\n"},
		{"a bad prefix", []string{"list.txt", "--allow-address", "here"}, exitUsage,
			"evenpool: --allow-address here: want a prefix, such as 127.0.0.0/8\n"},
		{"a bad URL", []string{"ftp://example.org/list"}, exitFailed,
			"evenpool: fetch ftp://example.org/list: the URL is neither http:// nor https:// nor file:///\n"},
		{"a bad format", []string{"list.txt", "--format", "csw"}, exitUsage,
			"evenpool: --format csw: want one of " + strings.Join(sources.Formats(), ", ") + "\n"},
		{"prefixes for the configuration", []string{"-c", "absent.yaml", "--allow-address", "127.0.0.1"}, exitUsage,
			"evenpool: --allow-address is for a FILE or URL; a source of the configuration has its own allow_addresses\n"},
		{"standard input twice", []string{"-", "-"}, exitUsage, "evenpool: standard input is there once: name - once\n"},
		{"no configuration", []string{"-c", "absent.yaml"}, exitConfig, "evenpool: absent.yaml: no such file or directory\n"},
	} {
		if _, err := os.Stat("/etc/evenpool/evenpool.yaml"); err == nil && c.code == exitUsage {
			continue // this host has one of its own
		}
		code, _, stderr := runCLI(t, append([]string{"sources", "check"}, c.args...)...)
		if code != c.code || stderr != c.stderr {
			t.Errorf("%s: exit %d, stderr %q; want %d, %q", c.name, code, stderr, c.code, c.stderr)
		}
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
