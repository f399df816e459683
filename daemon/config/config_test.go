package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"

	"evenpool/sources/proxyurl"
)

// minimal is the least that is a configuration.
const minimal = `judges:
  - name: mine
    http: http://judge.example.org/
    https: https://judge.example.org/
sources:
  - name: mylist
    url: https://example.org/http.txt
pools:
  - name: web
`

// Defaults are values, and this is all of them.
func TestDefaults(t *testing.T) {
	const want = `redis:
  url: ""
  username: ""
  password_file: ""
  pool_size: 8
socket:
  path: /run/evenpool/evenpool.sock
  mode: "0660"
state_dir: /var/lib/evenpool
max_dials_per_second: 1000
geoip:
  country: ""
  asn: ""
judges:
  - name: mine
    http: http://judge.example.org/
    https: https://judge.example.org/
    key_file: ""
    ca_file: ""
    allow_addresses: []
targets: []
sources:
  - name: mylist
    url: https://example.org/http.txt
    format: auto
    scheme: ""
    schedule: "*/30 * * * *"
    headers: {}
    user_agent: ""
    proxy: ""
    timeout: 30s
    max_bytes: 16777216
    max_candidates: 200000
    allow_addresses: []
pools:
  - name: web
    sources:
      - mylist
    judges:
      - mine
    max_candidates: 200000
    probe:
      schedule: "*/5 * * * *"
      timeout: 8s
      connect_timeout: 4s
      proxy_ca_file: ""
      confirm_after: 5s
      concurrency: 512
    eligibility:
      schemes:
        - http
        - socks5
      require:
        - http
        - tls
      banned_file: ""
      networks: []
      not_networks: []
      ports: []
      min_judges: 1
      anonymity: ""
      accept_claimed: false
      exit_countries: []
      not_countries: []
      exit_asns: []
      not_asns: []
      require_targets: []
      max_latency:
        connect: 0s
        first_byte: 0s
        total: 0s
        over: 1
        quantile: p90
      min_success:
        percent: 0%
        over: 20
      max_exit_changes: any
      max_age: 0s
      quarantine: 24h
      rise: 2
      fall: 2
    guard:
      max_retired: 20%
      panic_above: 50%
      max_freeze: 15m
    allocation:
      start: min
      restore: floor
      forget_after: 168h
`
	c, warnings, err := Parse("f", []byte(minimal), Defaults{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	got, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c, _, err = Parse("f", []byte(minimal), Defaults{SocketPath: "/tmp/e.sock", StateDir: "/tmp/state"})
	if err != nil || c.Socket.Path != "/tmp/e.sock" || c.StateDir != "/tmp/state" {
		t.Errorf("defaults of the caller are not taken: %v, %+v", err, c)
	}
}

// everything has a value other than its default for every key.
const everything = `redis:
  url: rediss://redis.example.org:6380/3
  username: evenpool
  password_file: /etc/evenpool/redis-password
  pool_size: 16
socket:
  path: /run/ep.sock
  mode: 0600
state_dir: /srv/evenpool
max_dials_per_second: 0
geoip: {country: /srv/country.mmdb, asn: /srv/asn.mmdb}
judges:
  - name: mine
    http: http://127.0.0.1:8081/
    https: https://127.0.0.1:8443/
    key_file: /etc/evenpool/judge.key
    ca_file: /etc/evenpool/judge.pem
    allow_addresses: [127.0.0.1, "::1"]
  - name: page
    https: https://example.org/robots.txt
    expect: {status: 404, contains: "User-agent: *"}
  - name: azenv
    http: http://echo.example.org/azenv.php
    echo: {nonce: "header:X-Nonce", format: env, address: REMOTE_ADDR, headers: HTTP_}
targets:
  - name: shop
    url: https://shop.example.org/
    status: 404
    headers: {content-type: "^text/"}
    body: "(?i)sorry"
    min_interval: 1m
    ca_file: /etc/evenpool/shop.pem
    allow_addresses: [10.0.0.0/8]
sources:
  - name: mylist
    url: file:///etc/evenpool/own.txt
    scheme: SOCKS5h
    schedule: "@every 90s"
    allow_addresses: [10.0.0.0/8]
  - name: other
    url: https://example.org/@all/http.txt?page=2
    format: plain
    scheme: any
    headers: {x-key: "a: b", authorization: "***"}
    user_agent: me/1.0 (me@example.org)
    proxy: socks5://127.0.0.1:1080
    timeout: 1m
    max_bytes: 1024
    max_candidates: 1
pools:
  - name: web
    sources: [mylist]
    judges: [page, mine]
    max_candidates: 2000000
    probe: {schedule: "0  6 * * mon", timeout: 2m30s, connect_timeout: 10s, proxy_ca_file: /p.pem, confirm_after: 0, concurrency: 1}
    eligibility:
      schemes: [socks4a, socks4]
      require: [tls, http]
      banned_file: /etc/evenpool/banned.txt
      networks: [9.0.0.0/8]
      not_networks: [9.1.0.0/16, 1.2.3.4]
      ports: [8080, 8000-8999]
      min_judges: 1
      anonymity: elite
      accept_claimed: true
      exit_countries: [DE, "NO"]
      not_countries: [US]
      exit_asns: [3320, 3215]
      not_asns: [4294967295]
      require_targets: [shop]
      max_latency: {connect: 1s, first_byte: 2s, total: 1500ms, over: 10, quantile: max}
      min_success: {percent: 80%, over: 10}
      max_exit_changes: 0
      max_age: 720h
      quarantine: 0
      rise: 1
      fall: 3
    guard: {max_retired: 0%, panic_above: 100%, max_freeze: 1h30m}
    allocation: {start: 100, restore: max, forget_after: 1h}
  - name: mail_2-x
    sources: [other]
    eligibility: {max_latency: 1500ms, min_success: 50%}
`

// What policy show prints is the same configuration.
func TestShowIsTheSameConfiguration(t *testing.T) {
	for _, file := range []string{minimal, everything} {
		c, warnings, err := Parse("f", []byte(file), Defaults{})
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		for name, marshal := range map[string]func(any) ([]byte, error){"yaml": yaml.Marshal, "json": json.Marshal} {
			shown, err := marshal(c)
			if err != nil {
				t.Fatal(name, err)
			}
			again, _, err := Parse("shown", shown, Defaults{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, shown)
			}
			for i, j := range again.Judges {
				again.Judges[i].AllowAddresses = append(proxyurl.Allow(nil), j.AllowAddresses...) // nil for an empty one
			}
			for i, o := range again.Sources {
				if o.Headers != nil {
					again.Sources[i].Headers["X-Key"] = "a: b" // the one secret of the file
				}
				again.Sources[i].AllowAddresses = append(proxyurl.Allow(nil), o.AllowAddresses...)
			}
			again.places = c.places // another text
			if !reflect.DeepEqual(c, again) {
				t.Errorf("%s is another configuration:\n%s", name, shown)
			}
		}
	}
}

// What a source says of itself reaches the fetch: all of it.
func TestListTakesEverythingAlong(t *testing.T) {
	c, _, err := Parse("f", []byte(everything), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	o := c.Sources[1]
	o.AllowAddresses = c.Sources[0].AllowAddresses
	for _, v := range []reflect.Value{reflect.ValueOf(o), reflect.ValueOf(o.List())} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s has no %s", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
}

func TestWarnings(t *testing.T) {
	const file = `redis:
  username: me
  password_file: /etc/evenpool/redis-password
judges:
  - name: mine
    http: http://judge.example.org/
    https: https://judge.example.org/
    allow_addresses: [0.0.0.0/0]
  - name: spare
    http: http://spare.example.org/
sources:
  - name: mylist
    url: https://example.org/http.txt
    allow_addresses: [127.0.0.1, "::/0"]
  - name: unused
    url: http://example.org/http.txt
    headers: {Accept: text/plain, X-Key: hunter2}
pools:
  - name: web
    sources: [mylist]
    max_candidates: 10001
    judges: [mine]
    eligibility: {max_latency: 8s}
    allocation: {start: zero, restore: zero}
  - name: kept
    sources: [mylist]
    judges: [mine]
    allocation: {restore: keep}
`
	want := []string{
		`f:2:13: redis.username: "me": has no use without redis.url: the embedded store has no users`,
		`f:3:18: redis.password_file: "/etc/evenpool/redis-password": has no use without redis.url: the embedded store has no users`,
		`f:8:23: judges[0].allow_addresses[0]: "0.0.0.0/0": opens every address, private ones included; write the prefixes that are meant`,
		`f:9:11: judges[1].name: "spare": no pool asks this judge`,
		`f:14:34: sources[0].allow_addresses[1]: "::/0": opens every address, private ones included; write the prefixes that are meant`,
		`f:15:11: sources[1].name: "unused": no pool draws on this source`,
		`f:17:35: sources[1].headers.X-Key: is sent in plain: everybody on the way can read it; write https:// in url, if the server has it`,
		`f:21:21: pools[0].max_candidates: 10001: is more than the embedded store is meant for (10000); set redis.url`,
		`f:23:32: pools[0].eligibility.max_latency: "8s": never applies: no probe takes longer than the timeout of 8s`,
		`f:24:25: pools[0].allocation.start: "zero": a new proxy takes every allocation until it has caught up; min avoids that`,
		`f:24:40: pools[0].allocation.restore: "zero": a proxy that comes back takes every allocation until it has caught up; floor avoids that`,
		`f:28:27: pools[1].allocation.restore: "keep": a proxy that was away for long takes every allocation until it has caught up; floor avoids that`,
	}
	wantWarnings(t, file, want)
}

// Secrets in a file that everybody may read are warned of, one by one; in a file
// that only the service may read they are where they belong.
func TestSecretsInAFileThatEverybodyMayRead(t *testing.T) {
	file := strings.Replace(minimal, "    url: https://example.org/http.txt\n", `    url: https://example.org/http.txt?api_key=hunter2
    headers: {Accept: text/plain, authorization: Bearer hunter2}
    proxy: http://me:hunter2@proxy.example.org:3128
  - name: open
    url: https://example.org/http.txt
    headers: {Accept: text/plain}
    proxy: http://proxy.example.org:3128
`, 1)
	path := filepath.Join(t.TempDir(), "f")
	for mode, want := range map[fs.FileMode][]string{
		0o640: nil,
		0o644: {
			`:7:10: sources[0].url: "https://example.org/http.txt?api_key=***": `,
			`:8:15: sources[0].headers.Authorization: `,
			`:9:12: sources[0].proxy: "http://***@proxy.example.org:3128": `,
		},
	} {
		if err := os.WriteFile(path, []byte(file), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		c, warnings, err := Load(path, Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range warnings {
			got = append(got, w.String())
		}
		for i := range want {
			want[i] = path + want[i] + "is a secret, and everybody may read this file; chmod o= it and give its group to the service"
		}
		if !slices.Equal(got, want) {
			t.Errorf("mode %o: got\n%s\nwant\n%s", mode, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for name, marshal := range map[string]func(any) ([]byte, error){"yaml": yaml.Marshal, "json": json.Marshal} {
			shown, err := marshal(c)
			if err != nil || strings.Contains(string(shown), "hunter2") || !strings.Contains(string(shown), "Authorization") {
				t.Errorf("%s shows a secret, or not its name: %v\n%s", name, err, shown)
			}
		}
	}
}

func TestFormsThatAreAccepted(t *testing.T) {
	for name, file := range map[string]string{
		"byte order mark":               "\ufeff" + minimal,
		"Windows line ends":             strings.ReplaceAll(minimal, "\n", "\r\n"),
		"a start and an end":            "---\n" + minimal + "...\n",
		"sections with only comments":   "redis:\n  # url: redis://127.0.0.1\nsocket:\n" + minimal,
		"mode with 0o":                  "socket: {mode: 0o660}\n" + minimal,
		"policy in quotes":              minimal + "    allocation: {start: \"7\"}\n",
		"schedule as a folded text":     minimal + "    probe:\n      schedule: >-\n        */5 *\n        * * *\n",
		"a list in block style":         minimal + "    sources:\n    - mylist\n",
		"a Redis on a Unix socket":      "redis: {url: \"unix:///run/redis.sock?db=2\"}\n" + minimal,
		"a Redis by its name alone":     "redis: {url: \"redis://localhost\"}\n" + minimal,
		"a Redis by its IPv6 address":   "redis: {url: \"redis://[::1]:6379/0\"}\n" + minimal,
		"a password file, but no Redis": "redis: {url: \"redis://localhost\", password_file: \"\"}\n" + minimal,
	} {
		if _, warnings, err := Parse("f", []byte(file), Defaults{}); err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v %v", name, err, warnings)
		}
	}
}

func TestLoadWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir + "/missing.yaml": ": no such file or directory",
		dir:                   ": is not a regular file",
		"/dev/zero":           ": is not a regular file",
	} {
		_, _, err := Load(path, Defaults{})
		if err == nil || err.Error() != path+want {
			t.Errorf("got %v, want %s", err, path+want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(everything))
	f.Add([]byte("a: {b: [c, &d *d, !!str e]}\n? x\n: |\n  y\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, warnings, err := Parse("f", data, Defaults{})
		said := ""
		for _, w := range warnings {
			said += w.String()
		}
		if err != nil {
			said += strings.ReplaceAll(err.Error(), "\n", "")
		}
		if i := strings.IndexFunc(said, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }); i >= 0 {
			t.Errorf("what is said has %q in it: %q", said[i:], said)
		}
		if (c == nil) != (err != nil) {
			t.Errorf("configuration %v and error %v", c, err)
		}
		if c == nil {
			return
		}
		if _, err := yaml.Marshal(c); err != nil {
			t.Error(err)
		}
	})
}
