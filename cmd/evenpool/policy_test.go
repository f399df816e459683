package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"evenpool/daemon/config"
)

const policyFile = `judges:
  - name: mine
    http: http://judge.example.org/
    https: https://judge.example.org/
sources:
  - name: mylist
    url: https://me:hunter2@www.example.org/http.txt?a=1&b=2
    schedule: "0 6 29 2 *"
pools:
  - name: web
    probe: {schedule: "*/30 * * * *"}
`

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "evenpool.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPolicyCheckText(t *testing.T) {
	cfg, _, err := config.Parse("evenpool.yaml", []byte(policyFile), config.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 22, 40, 0, 0, time.UTC)
	check := policyCheck{File: "evenpool.yaml", Schedules: []policySchedule{
		schedule("pool", "web", cfg.Pools[0].Probe.Schedule, now),
		schedule("source", "mylist", cfg.Sources[0].Schedule, now),
	}}
	var out strings.Builder
	if err := writeCheck(&out, check); err != nil {
		t.Fatal(err)
	}
	const want = `evenpool.yaml: sound

WHAT    NAME    SCHEDULE      NEXT RUNS (UTC), BESIDES THE DAEMON'S START
pool    web     */30 * * * *  2026-11-30 23:00:00 23:30:00  2026-12-01 00:00:00 00:30:00 01:00:00
source  mylist  0 6 29 2 *    2028-02-29 06:00:00  2032-02-29 06:00:00  2036-02-29 06:00:00  2040-02-29 06:00:00  2044-02-29 06:00:00
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestPolicyCheck(t *testing.T) {
	sound := writeFile(t, policyFile)
	doubtful := writeFile(t, policyFile+"    allocation: {restore: zero}\n")
	broken := writeFile(t, policyFile+"    allocation: {restore: zero, start: -1, strat: min}\n")
	missing := sound + ".missing"
	const zero = `:12:27: pools[0].allocation.restore: "zero": a proxy that comes back takes every allocation until it has caught up; floor avoids that` + "\n"
	for _, tc := range []struct {
		name, file string
		code       int
		stderr     string
	}{
		{"sound", sound, exitDone, ""},
		{"doubtful", doubtful, exitDone, "warning: " + doubtful + zero},
		{"broken", broken, exitConfig, "warning: " + broken + zero +
			broken + ":12:40: pools[0].allocation.start: -1: expected one of min, median, max, zero, or a whole number from 0 to 2^52 (4503599627370496)\n" +
			broken + ":12:44: pools[0].allocation.strat: unknown key; did you mean start?\n"},
		{"missing", missing, exitConfig, missing + ": no such file or directory\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := runCLI(t, "policy", "check", tc.file)
			if code != tc.code || stderr != tc.stderr {
				t.Errorf("exit %d, stderr\n%s\nwant %d,\n%s", code, stderr, tc.code, tc.stderr)
			}
			if ok := strings.HasPrefix(stdout, tc.file+": sound\n"); ok != (tc.code == exitDone) || !ok && stdout != "" {
				t.Errorf("stdout is\n%s", stdout)
			}
			code, stdout, stderr = runCLI(t, "policy", "check", tc.file, "-o", "json")
			if code != tc.code || stderr != tc.stderr {
				t.Errorf("with -o json: exit %d, stderr\n%s", code, stderr)
			}
			var got policyCheck
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatalf("%v in\n%s", err, stdout)
			}
			lines := strings.Count(tc.stderr, "\n")
			if got.OK != (code == exitDone) || got.File != tc.file || len(got.Problems)+len(got.Warnings) != lines {
				t.Errorf("got %+v", got)
			}
			if got.OK && (len(got.Schedules) != 2 || len(got.Schedules[0].Next) != shownRuns) {
				t.Errorf("schedules: %+v", got.Schedules)
			}
		})
	}
}

// Every file that the configuration names is read, unless it is for another host;
// all that is wrong is said at once.
func TestPolicyCheckReadsFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := write("empty", "", 0o600)
	open := write("open.key", strings.Repeat("k", 64), 0o644)
	banned := write("banned.txt", "1.2.3.4\nnot a proxy\n", 0o600)
	file := writeFile(t, fmt.Sprintf(`redis: {url: "redis://127.0.0.1", password_file: %[1]s/none}
geoip: {country: %[1]s/none.mmdb, asn: %[2]s}
judges:
  - {name: mine, http: "http://judge.example.org/", https: "https://judge.example.org/", key_file: %[1]s/none.key, ca_file: %[2]s}
  - {name: second, http: "http://judge.example.org/", key_file: %[2]s}
  - {name: third, http: "http://judge.example.org/", key_file: %[3]s}
targets:
  - {name: shop, url: "https://shop.example.org/", ca_file: %[2]s}
sources:
  - {name: mylist, url: "https://www.example.org/http.txt"}
pools:
  - name: web
    probe: {proxy_ca_file: %[1]s}
    eligibility: {banned_file: %[4]s}
`, dir, empty, open, banned))
	want := []string{
		`:1: redis.password_file: "DIR/none": no such file or directory`,
		`:2: geoip.country: "DIR/none.mmdb": no such file or directory`,
		`:2: geoip.asn: "DIR/empty": not a MaxMind DB file, or cut short; name the .mmdb file, whole and unpacked`,
		`:4: judges[0].key_file: "DIR/none.key": there is none; copy it from where it is in use, or make one with: evenpool judge --new-key DIR/none.key`,
		`:4: judges[0].ca_file: "DIR/empty": has no certificate in PEM form`,
		`:5: judges[1].key_file: "DIR/empty": is empty; copy it from where it is in use, or remove it and make one with: evenpool judge --new-key DIR/empty`,
		`:6: judges[2].key_file: "DIR/open.key": mode 0644 lets everybody have it; chmod o= it, and make a new key if others may have read it`,
		`:8: targets[0].ca_file: "DIR/empty": has no certificate in PEM form`,
		`:13: pools[0].probe.proxy_ca_file: "DIR": is not a regular file`,
		`:14: pools[0].eligibility.banned_file: "DIR/banned.txt": line 2: "not a proxy": expected HOST:PORT, a host, or a prefix such as 1.2.3.0/24`,
	}
	column := regexp.MustCompile(`(?m)^(.*\.yaml:\d+):\d+:`) // they vary with the directory's name
	code, stdout, stderr := runCLI(t, "policy", "check", file, "-o", "json")
	var got policyCheck
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitConfig || got.OK || len(got.Problems) != len(want) {
		t.Fatalf("exit %d, %v in\n%s\n%s", code, err, stdout, stderr)
	}
	for i, p := range got.Problems {
		if got := column.ReplaceAllString(strings.ReplaceAll(p.String(), dir, "DIR"), "$1:"); got != file+want[i] {
			t.Errorf("got %s\nwant %s", got, want[i])
		}
		if !strings.Contains(stderr, p.String()+"\n") {
			t.Errorf("standard error has no %s", p)
		}
	}
	if code, _, stderr := runCLI(t, "policy", "check", "--alone", file); code != exitDone || stderr != "" {
		t.Errorf("alone: exit %d, %s", code, stderr)
	}
}

func TestPolicyShow(t *testing.T) {
	file := writeFile(t, policyFile)
	_, same, _ := runCLI(t, "policy", "show", file)
	code, stdout, stderr := runCLI(t, "policy", "show", "-c", file)
	if same != stdout {
		t.Errorf("with FILE as argument it is\n%s", same)
	}
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d, stderr %s", code, stderr)
	}
	for _, want := range []string{"timeout: 8s\n", "schedule: \"*/30 * * * *\"\n", "url: https://***@www.example.org/http.txt?a=1&b=2\n", "start: min\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	code, stdout, _ = runCLI(t, "policy", "show", "-c", file, "-o", "json")
	var got struct {
		Sources []struct{ URL string }
		Pools   []struct{ Probe struct{ Timeout string } }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v in\n%s", code, err, stdout)
	}
	if got.Pools[0].Probe.Timeout != "8s" || got.Sources[0].URL != "https://***@www.example.org/http.txt?a=1&b=2" || strings.Contains(stdout, `\u0026`) {
		t.Errorf("got\n%s", stdout)
	}
	code, stdout, stderr = runCLI(t, "policy", "show", "-c", file+".missing")
	if code != exitConfig || stdout != "" || stderr != "evenpool: "+file+".missing: no such file or directory\n" {
		t.Errorf("a missing file: exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestPolicyUsage(t *testing.T) {
	for _, args := range [][]string{{"policy", "check", "a", "b"}, {"policy", "show", "a", "-c", "b"}, {"policy", "chekc", "a"}} {
		if code, stdout, stderr := runCLI(t, args...); code != exitUsage || stdout != "" || stderr == "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
}
