package config

import (
	"os"
	"slices"
	"strings"
	"testing"

	"evenpool/sources"
)

// One broken file for each rule, and every word that is said about it. A line
// here is what Error gives without the file's name before it.
func TestLoadBadConfigs(t *testing.T) {
	t.Chdir("testdata/bad")
	tests := badConfigs()
	for _, tc := range tests {
		t.Run(tc.rule, func(t *testing.T) {
			file := tc.rule + ".yaml"
			c, _, err := Load(file, Defaults{})
			if err == nil {
				t.Fatalf("%s is accepted", file)
			}
			if c != nil {
				t.Error("there is a configuration besides the error")
			}
			want := file + ":" + strings.Join(tc.lines, "\n"+file+":")
			if err.Error() != want {
				t.Errorf("got\n%s\nwant\n%s", err, want)
			}
		})
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		rule := strings.TrimSuffix(f.Name(), ".yaml")
		if !slices.ContainsFunc(tests, func(tc badConfig) bool { return tc.rule == rule }) {
			t.Errorf("%s is not in the table", f.Name())
		}
	}
}

type badConfig struct {
	rule  string // the file is named after it
	lines []string
}

func badConfigs() []badConfig {
	return []badConfig{
		{"accept-claimed-form", []string{`12:23: pools[0].eligibility.accept_claimed: "yes": expected true or false`}},
		{"alias", []string{
			`10:12: pools[0].probe: expected keys and values; anchors and aliases are not read, write the value out`,
			`13:12: pools[1].probe: expected keys and values; anchors and aliases are not read, write the value out`,
		}},
		{"allow-addresses-bits", []string{`8:23: sources[0].allow_addresses[0]: "10.1.2.3/8": has bits behind the prefix; write 10.0.0.0/8, or 10.1.2.3 for the address alone`}},
		{"allow-addresses-form", []string{
			`8:23: sources[0].allow_addresses[0]: "localhost": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
			`8:34: sources[0].allow_addresses[1]: "127.0.0.0/33": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
			`8:48: sources[0].allow_addresses[2]: "::ffff:127.0.0.1": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
			`8:68: sources[0].allow_addresses[3]: "fe80::1%eth0": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
		}},
		{"allow-addresses-of-judges-and-targets", []string{
			`5:22: judges[0].allow_addresses: "127.0.0.1": expected a list; write it in [ ]`,
			`12:23: targets[0].allow_addresses[0]: "10.0.0.0/99": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
		}},
		{"anonymity-unknown", []string{`11:18: pools[0].eligibility.anonymity: "elit": expected one of transparent, anonymous, elite`}},
		{"asns", []string{
			`11:19: pools[0].eligibility.exit_asns[0]: "AS3320": expected the number alone; write 3320`,
			`11:27: pools[0].eligibility.exit_asns[1]: 0: expected the number of an autonomous system, such as 3320`,
			`12:18: pools[0].eligibility.not_asns[0]: 4294967296: expected the number of an autonomous system, such as 3320`,
		}},
		{"ca-file-without-https", []string{`4:14: judges[0].ca_file: "/etc/evenpool/judge.pem": has no use without https; remove it or add https`}},
		{"connect-timeout-range", []string{`11:24: pools[0].probe.connect_timeout: "50ms": expected a duration from 100ms to 5m`}},
		{"control-characters", []string{
			`10:5: pools[0].\x1b[2J\u202e: unknown key; the keys here are name, sources, judges, max_candidates, probe, eligibility, guard, allocation`,
			`12:17: pools[0].probe.schedule: "\x1b]0;x\x07* * * *": expected 5 fields (minute hour day month weekday)`,
		}},
		{"countries", []string{
			`11:24: pools[0].eligibility.exit_countries[0]: "de": expected capitals; write DE`,
			`11:28: pools[0].eligibility.exit_countries[1]: "UK": is not in ISO 3166-1; write GB`,
			`11:32: pools[0].eligibility.exit_countries[2]: "Germany": expected a country's code of two capitals (ISO 3166-1), such as DE`,
			`12:23: pools[0].eligibility.not_countries[0]: "": expected a country's code of two capitals (ISO 3166-1), such as DE`,
			`12:27: pools[0].eligibility.not_countries[1]: "D1": expected a country's code of two capitals (ISO 3166-1), such as DE`,
			`12:31: pools[0].eligibility.not_countries[2]: "ZZ": is no country's code in ISO 3166-1`,
		}},
		{"dials-range", []string{`1:23: max_dials_per_second: 100001: expected a whole number from 0 to 100000`}},
		{"directive", []string{`1:1: directives are not read; remove the line`}},
		{"doubled-key", []string{`13:7: pools[0].probe.timeout: doubled key; it is on line 11 already`}},
		{"doubled-section", []string{`12:5: pools[0].probe: doubled key; it is on line 10 already`}},
		{"duration-form", []string{`11:16: pools[0].probe.timeout: "8 seconds": expected a duration with a unit, such as 8s, 5m or 168h`}},
		{"duration-too-long", []string{`11:16: pools[0].probe.timeout: "6m": expected a duration from 100ms to 5m`}},
		{"duration-without-unit", []string{`11:16: pools[0].probe.timeout: 8: a duration needs a unit; write 8s or 8m`}},
		{"echo-and-expect", []string{`5:12: judges[0].echo: is for another kind of judge than expect; write one of the two`}},
		{"echo-headers", []string{`4:47: judges[0].echo.headers: expected a single value`}},
		{"echo-incomplete", []string{
			`5:5: judges[0].echo.address: is missing; write where the asker's address stands, such as origin or REMOTE_ADDR`,
			`5:5: judges[0].echo.format: is missing; write json or env`,
		}},
		{"echo-keys", []string{
			`5:19: judges[0].echo.nonce: "path:n": expected query:NAME or header:NAME`,
			`5:37: judges[0].echo.format: "xml": expected one of json, env`,
			`5:51: judges[0].echo.address: "": expected a text of 1 to 100 bytes`,
		}},
		{"empty-but-comments", []string{`1:1: is empty; it needs judges, sources and pools`}},
		{"empty", []string{`1:1: is empty; it needs judges, sources and pools`}},
		{"everything-at-once", []string{
			`2:14: redis.pool_size: 0: expected a whole number from 1 to 1000`,
			`3:16: socket.mode: 888: expected permission bits such as 0660`,
			`3:27: socket.path: 5: expected a text; write it in quotes: "5"`,
			`5:11: judges[0].name: "Mine": is not a name; write 1 to 32 of a-z, 0-9, _ and -, the first a letter or digit`,
			`6:11: judges[0].http: "judge.example.org": expected http://HOST/PATH`,
			`9:14: judges[1].expect.contains: is missing; write a text that the page has; a status alone proves nothing`,
			`9:22: judges[1].expect.status: "200": expected a number; write it without quotes`,
			`12:10: sources[0].url: "example.org/http.txt": expected http://, https:// or file:///PATH`,
			`13:5: sources[0].schedul: unknown key; did you mean schedule?`,
			`17:23: pools[0].probe.schedule: "*/5 * *": expected 5 fields (minute hour day month weekday)`,
			`17:43: pools[0].probe.timeout: 8: a duration needs a unit; write 8s or 8m`,
			`18:25: pools[0].eligibility.rise: 2.0: expected a whole number from 1 to 100`,
			`18:36: pools[0].eligibility.fall: "two": expected a whole number from 1 to 100`,
			`19:11: pools[1].name: "web": is the name of pools[0] already; choose another`,
		}},
		{"exit-changes", []string{`11:25: pools[0].eligibility.max_exit_changes: -1: expected any, or a whole number from 0 to 19`}},
		{"expect-contains-empty", []string{`5:24: judges[0].expect.contains: "": expected a text of 1 to 1024 bytes`}},
		{"expect-status", []string{`5:22: judges[0].expect.status: 99: expected a whole number from 200 to 599`}},
		{"expect-without-contains", []string{`5:14: judges[0].expect.contains: is missing; write a text that the page has; a status alone proves nothing`}},
		{"format-unknown", []string{`8:13: sources[0].format: "txt": expected one of ` + strings.Join(sources.Formats(), ", ")}},
		{"geoip-keys", []string{
			`1:18: geoip.country: 5: expected a text; write it in quotes: "5"`,
			`1:21: geoip.city: unknown key; the keys here are country, asn`,
		}},
		{"header-names", []string{
			`9:7: sources[0].headers.Host: is the host of the url; write that`,
			`10:7: sources[0].headers.user-agent: has a key of its own; write user_agent`,
			`11:7: sources[0].headers.Proxy-Authorization: belongs to a proxy; write user and password into proxy`,
			`12:7: sources[0].headers.If-None-Match: is evenpool's own to send; remove it`,
			`13:7: sources[0].headers.Content-Length: is evenpool's own to send; remove it`,
			`14:7: sources[0].headers.Accept-Encoding: is evenpool's own to send; remove it`,
			`15:7: sources[0].headers.Range: is evenpool's own to send; remove it`,
			`16:7: sources[0].headers.Connection: is evenpool's own to send; remove it`,
			`17:7: sources[0].headers.TE: is evenpool's own to send; remove it`,
			`18:7: sources[0].headers.X Key: is not a header's name; write letters, digits and -`,
			`19:7: sources[0].headers.X-Key:: is not a header's name; write letters, digits and -`,
			`20:7: sources[0].headers.: is not a header's name; write letters, digits and -`,
		}},
		{"header-twice", []string{
			`10:7: sources[0].headers.x-key: is X-Key, which is there already; remove one of the two`,
			`11:7: sources[0].headers.X-Key: doubled key; it is on line 9 already`,
		}},
		{"header-values", []string{
			`9:7: sources[0].headers.X-Lines: has control characters; write it on one line`,
			`10:7: sources[0].headers.X-Number: expected a text; write it in quotes`,
			`11:7: sources[0].headers.X-Empty: expected a text of 1 to 4096 bytes`,
			`12:7: sources[0].headers.X-Space: begins or ends with white space, which is never sent; remove it`,
			`13:7: sources[0].headers.X-List: expected a single value`,
			`14:7: sources[0].headers.X-Alias: expected a single value; anchors and aliases are not read, write the value out`,
			`15:7: sources[0].headers.X-Null: has no value; write one or remove the key`,
		}},
		{"headers-for-a-file", []string{
			`8:15: sources[0].headers: has no use for a file; remove it`,
			`9:17: sources[0].user_agent: "me/1.0": has no use for a file; remove it`,
			`10:12: sources[0].proxy: "http://***@127.0.0.1:3128": has no use for a file; remove it`,
		}},
		{"headers-too-many", []string{`9:7: sources[0].headers: has 33 entries; write at most 32`}},
		{"headers-without-names", []string{`8:14: sources[0].headers: expected keys and values`}},
		{"judge-url-fragment", []string{`3:11: judges[0].http: "http://judge.example.org/#top": has a fragment (#), which is never sent; leave it out`}},
		{"judge-url-scheme", []string{
			`3:11: judges[0].http: "https://judge.example.org/": expected http://HOST/PATH`,
			`4:12: judges[0].https: "https://": expected https://HOST/PATH`,
		}},
		{"judge-url-user", []string{`3:11: judges[0].http: "http://***@judge.example.org/": has a user, which every proxy would see; leave it out`}},
		{"judge-without-url", []string{`2:5: judges[0].http: is missing, and so is https; write at least one`}},
		{"key-file-and-echo", []string{`5:15: judges[0].key_file: "/etc/evenpool/judge.key": has no use with echo: only evenpool judge signs; remove one of the two`}},
		{"key-file-and-expect", []string{`5:15: judges[0].key_file: "/etc/evenpool/judge.key": has no use with expect: a page signs nothing; remove one of the two`}},
		{"keys-of-a-pool", []string{
			`10:28: pools[0].probe.confirm_after: "11m": expected a duration from 0s to 10m`,
			`10:48: pools[0].probe.proxy_ca_file: 7: expected a text; write it in quotes: "7"`,
			`11:25: pools[0].guard.max_freeze: "-1s": expected a duration from 0s to 43800h`,
			`12:32: pools[0].allocation.forget_after: "7d": expected a duration with a unit, such as 8s, 5m or 168h`,
			`13:32: pools[0].eligibility.banned_file: 9: expected a text; write it in quotes: "9"`,
			`13:61: pools[0].eligibility.max_latency.first_byte: 1: a duration needs a unit; write 1s or 1m`,
		}},
		{"key-without-value", []string{`11:7: pools[0].probe.schedule: has no value; write one or remove the key`}},
		{"latency-keys", []string{
			`11:30: pools[0].eligibility.max_latency.connect: "6m": expected a duration from 0s to 5m`,
			`11:41: pools[0].eligibility.max_latency.total: 3: a duration needs a unit; write 3s or 3m`,
			`11:50: pools[0].eligibility.max_latency.over: 21: expected a whole number from 1 to 20`,
			`11:64: pools[0].eligibility.max_latency.quantile: "p99": expected one of p50, p90, p95, max`,
			`11:69: pools[0].eligibility.max_latency.ttfb: unknown key; the keys here are connect, first_byte, total, over, quantile`,
		}},
		{"latency-list", []string{`11:20: pools[0].eligibility.max_latency: expected keys and values`}},
		{"list-expected", []string{`10:14: pools[0].sources: "mylist": expected a list; write it in [ ]`}},
		{"max-age-below-interval", []string{`11:16: pools[0].eligibility.max_age: "5m": is not longer than the schedule's interval of 5m: every member would be retired between two cycles; raise it or probe more often`}},
		{"max-age-too-long", []string{
			`11:16: pools[0].eligibility.max_age: "721h": expected a duration from 0s to 720h`,
			`12:19: pools[0].eligibility.quarantine: "721h": expected a duration from 0s to 720h`,
		}},
		{"merge-key", []string{`11:5: pools[1].<<: merge keys are not read; write the keys out`}},
		{"min-judges-range", []string{`11:19: pools[0].eligibility.min_judges: 0: expected a whole number from 1 to 10`}},
		{"min-judges-too-many", []string{`11:19: pools[0].eligibility.min_judges: 2: the pool has no more than 1; it would never admit anything`}},
		{"name-form", []string{`9:11: pools[0].name: "Web": is not a name; write 1 to 32 of a-z, 0-9, _ and -, the first a letter or digit`}},
		{"name-missing", []string{`9:5: pools[0].name: is missing; write one for workers to ask for`}},
		{"name-too-long", []string{`9:11: pools[0].name: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": is not a name; write 1 to 32 of a-z, 0-9, _ and -, the first a letter or digit`}},
		{"name-twice", []string{
			`5:11: judges[1].name: "mine": is the name of judges[0] already; choose another`,
			`11:11: sources[1].name: "mylist": is the name of sources[0] already; choose another`,
			`15:11: pools[1].name: "web": is the name of pools[0] already; choose another`,
		}},
		{"networks", []string{
			`11:18: pools[0].eligibility.networks[0]: "1.2.3.4/8": has bits behind the prefix; write 1.0.0.0/8, or 1.2.3.4 for the address alone`,
			`12:22: pools[0].eligibility.not_networks[0]: "everywhere": expected an address or a prefix, such as 127.0.0.1 or 10.0.0.0/8`,
		}},
		{"not-utf8", []string{`5:8: is not UTF-8; write it anew as UTF-8`}},
		{"not-yaml", []string{`8:8: is not YAML: sequence end token ']' not found`}},
		{"path-control-characters", []string{`2:18: redis.password_file: "/etc/\x00": has control characters; write a path`}},
		{"percent-too-large", []string{
			`11:20: pools[0].guard.max_retired: "101%": expected a whole percentage from 0% to 100%, such as 20%`,
			`12:20: pools[0].guard.panic_above: "1.5%": expected a whole percentage from 0% to 100%, such as 20%`,
		}},
		{"percent-without-sign", []string{`11:20: pools[0].guard.max_retired: 20: a percentage needs its sign; write 20%`}},
		{"ports", []string{
			`11:15: pools[0].eligibility.ports[0]: 0: expected a port or a range of them, such as 8080 or 8000-8999`,
			`11:18: pools[0].eligibility.ports[1]: "8999-8000": expected a port or a range of them, such as 8080 or 8000-8999`,
			`11:29: pools[0].eligibility.ports[2]: 65536: expected a port or a range of them, such as 8080 or 8000-8999`,
			`11:36: pools[0].eligibility.ports[3]: "http": expected a port or a range of them, such as 8080 or 8000-8999`,
		}},
		{"redis-password", []string{`2:3: redis.password: does not belong into this file; put it in a file of its own and name that in password_file`}},
		{"redis-url-database", []string{`2:8: redis.url: "redis://127.0.0.1:6379/zero": names no database; its number is a whole number`}},
		{"redis-url-host", []string{`2:8: redis.url: "redis:///0": has no sound host and port; write redis://HOST:PORT/DB`}},
		{"redis-url-parameters", []string{`2:8: redis.url: "redis://127.0.0.1:6379/0?max_retries=3": has parameters that are not known; leave out what follows the ? or #`}},
		{"redis-url-password-broken", []string{`2:8: redis.url: "redis://***@127.0.0.1:6379/0": expected redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB`}},
		{"redis-url-password-parameter", []string{`2:8: redis.url: "unix:///run/redis.sock?password=***": has a password; put it in a file and name that in redis.password_file`}},
		{"redis-url-password", []string{`2:8: redis.url: "redis://***@127.0.0.1:6379/0": has a password; put it in a file and name that in redis.password_file`}},
		{"redis-url-scheme", []string{`2:8: redis.url: "http://127.0.0.1:6379/0": expected redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB`}},
		{"redis-url-socket-slashes", []string{`2:8: redis.url: "unix://run/redis.sock": a Unix socket's address has three slashes: unix:///PATH`}},
		{"redis-url-user", []string{`2:8: redis.url: "redis://***@127.0.0.1:6379/0": has a user; put it in redis.username`}},
		{"reference-twice", []string{`10:20: pools[0].judges[1]: "mine": is in the list already; remove it`}},
		{"require-default-without-judge", []string{`8:5: pools[0].eligibility.require: none of the pool's judges shows tls; give one of them https, or write require without tls`}},
		{"require-empty", []string{`11:7: pools[0].eligibility.require: is empty; leave the key out for the default, or name at least one`}},
		{"require-judge-of-another-pool", []string{`14:17: pools[0].eligibility.require[0]: "tls": none of the pool's judges shows tls; give one of them https, or write require without tls`}},
		{"require-unknown", []string{`11:23: pools[0].eligibility.require[1]: "ftp": expected one of http, tls`}},
		{"require-without-judge", []string{`10:23: pools[0].eligibility.require[1]: "tls": none of the pool's judges shows tls; give one of them https, or write require without tls`}},
		{"restore-word", []string{`11:16: pools[0].allocation.restore: "kept": expected one of floor, keep, min, median, max, zero, or a whole number from 0 to 2^52 (4503599627370496)`}},
		{"root-is-a-list", []string{`1:1: expected keys and values`}},
		{"schedule-comma", []string{`11:17: pools[0].probe.schedule: ", * * * *": has no run within 5 years; is the day in the month?`}},
		{"schedule-cron-zone", []string{`11:17: pools[0].probe.schedule: "CRON_TZ=UTC": schedules are in UTC and take no time zone; leave TZ= out and write the hours in UTC`}},
		{"schedule-descriptor", []string{`11:17: pools[0].probe.schedule: "@often": expected @hourly, @daily, @weekly, @monthly, @yearly, @every 90s, or 5 fields (minute hour day month weekday)`}},
		{"schedule-empty", []string{`11:17: pools[0].probe.schedule: "": is empty; write 5 fields (minute hour day month weekday)`}},
		{"schedule-every-fraction", []string{`11:17: pools[0].probe.schedule: "@every 10.5s": expected whole seconds`}},
		{"schedule-every-negative", []string{`11:17: pools[0].probe.schedule: "@every -5m": runs too often; write @every 10s or longer`}},
		{"schedule-every-too-often", []string{`11:17: pools[0].probe.schedule: "@every 9s": runs too often; write @every 10s or longer`}},
		{"schedule-every-too-rare", []string{`11:17: pools[0].probe.schedule: "@every 50000h": has no run within 5 years; write a shorter duration`}},
		{"schedule-every-without-unit", []string{`11:17: pools[0].probe.schedule: "@every 10": expected @every and a duration with a unit, such as @every 90s`}},
		{"schedule-fields", []string{`11:17: pools[0].probe.schedule: "*/5 * *": expected 5 fields (minute hour day month weekday)`}},
		{"schedule-letters", []string{`11:17: pools[0].probe.schedule: "x * * * *": cron does not take it: not a number: x`}},
		{"schedule-never", []string{`11:17: pools[0].probe.schedule: "0 0 31 2 *": has no run within 5 years; is the day in the month?`}},
		{"schedule-range", []string{`11:17: pools[0].probe.schedule: "60 * * * *": cron does not take it: end of range (60) above maximum (59): 60`}},
		{"schedule-seconds", []string{`11:17: pools[0].probe.schedule: "0 */5 * * * *": expected 5 fields (minute hour day month weekday)`}},
		{"schedule-without-quotes", []string{`11:21: is not YAML: value is not allowed in this context. map key-value is pre-defined; write a text that begins with * or @ in quotes`}},
		{"schedule-zone", []string{`11:17: pools[0].probe.schedule: "TZ=Europe/Berlin 0 6 * * *": schedules are in UTC and take no time zone; leave TZ= out and write the hours in UTC`}},
		{"scheme-unknown", []string{`8:13: sources[0].scheme: "socks6": expected one of http, https, socks4, socks4a, socks5, any`}},
		{"schemes-empty", []string{`11:7: pools[0].eligibility.schemes: is empty; leave the key out for the default, or name at least one`}},
		{"schemes-twice", []string{`11:25: pools[0].eligibility.schemes[1]: "SOCKS5h": is in the list already; remove it`}},
		{"second-document", []string{`10:1: a second document begins; write one document in a file`}},
		{"section-expected", []string{`10:12: pools[0].probe: expected keys and values`}},
		{"sections-empty", []string{
			`1:1: judges: is empty; write at least one`,
			`2:1: sources: is empty; write at least one`,
			`3:1: pools: is empty; write at least one`,
		}},
		{"sections-missing", []string{
			`1:1: judges: is missing; write who is asked through the proxies`,
			`1:1: pools: is missing; write at least one, with a name`,
			`1:1: sources: is missing; write where candidates come from`,
		}},
		{"single-value-expected", []string{`11:7: pools[0].probe.timeout: expected a single value`}},
		{"socket-mode-form", []string{`2:9: socket.mode: "rw-rw----": expected permission bits such as 0660`}},
		{"socket-mode", []string{`2:9: socket.mode: 0: expected permission bits such as 0660`}},
		{"socket-path-empty", []string{`2:9: socket.path: "": is empty; write a path`}},
		{"socket-path-too-long", []string{`2:9: socket.path: "/run/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...": is 110 bytes long; write a path of at most 107`}},
		{"source-limits", []string{
			`8:14: sources[0].timeout: "500ms": expected a duration from 1s to 10m`,
			`9:16: sources[0].max_bytes: 268435457: expected a whole number from 1024 to 268435456`,
			`10:21: sources[0].max_candidates: 0: expected a whole number from 1 to 1000000`,
			`13:21: pools[0].max_candidates: 2000001: expected a whole number from 1 to 2000000`,
		}},
		{"source-proxy-path", []string{`8:12: sources[0].proxy: "http://***@proxy.example.org:3128/path": has something behind host and port, which a proxy has no use for; remove it`}},
		{"source-proxy-port", []string{`8:12: sources[0].proxy: "http://***@proxy.example.org": has no sound host and port; write http://HOST:PORT`}},
		{"source-proxy-scheme", []string{`8:12: sources[0].proxy: "socks4://***@proxy.example.org:1080": expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT`}},
		{"source-proxy-without-scheme", []string{`8:12: sources[0].proxy: "***@proxy.example.org:1080": expected http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT`}},
		{"source-schedule", []string{`8:15: sources[0].schedule: "hourly": expected 5 fields (minute hour day month weekday)`}},
		{"source-url-file-slashes", []string{`7:10: sources[0].url: "file://etc/evenpool/extra.txt": a file's address has three slashes: file:///PATH`}},
		{"source-url-host", []string{`7:10: sources[0].url: "https:///http.txt": has no sound host and port; write https://HOST/PATH`}},
		{"source-url-missing", []string{`6:5: sources[0].url: is missing; write where the list is`}},
		{"source-url-password-without-scheme", []string{`7:10: sources[0].url: "***@example.org/http.txt": expected http://, https:// or file:///PATH`}},
		{"source-url-port", []string{`7:10: sources[0].url: "https://***@example.org:99999/http.txt": has no sound host and port; write https://HOST/PATH`}},
		{"source-url-scheme", []string{`7:10: sources[0].url: "ftp://example.org/http.txt": expected http://, https:// or file:///PATH`}},
		{"sources-empty", []string{`10:5: pools[0].sources: is empty; leave the key out for all sources, or name at least one`}},
		{"start-negative", []string{`11:14: pools[0].allocation.start: -1: expected one of min, median, max, zero, or a whole number from 0 to 2^52 (4503599627370496)`}},
		{"start-too-large", []string{`11:14: pools[0].allocation.start: 4503599627370497: expected one of min, median, max, zero, or a whole number from 0 to 2^52 (4503599627370496)`}},
		{"start-word", []string{`11:14: pools[0].allocation.start: "floor": expected one of min, median, max, zero, or a whole number from 0 to 2^52 (4503599627370496)`}},
		{"state-dir-empty", []string{`1:12: state_dir: "": is empty; write a path`}},
		{"success-form", []string{`11:20: pools[0].eligibility.min_success: 80: a percentage needs its sign; write 80%`}},
		{"success-keys", []string{
			`11:30: pools[0].eligibility.min_success.percent: "101%": expected a whole percentage from 0% to 100%, such as 20%`,
			`11:42: pools[0].eligibility.min_success.over: 0: expected a whole number from 1 to 20`,
		}},
		{"tag", []string{`11:7: pools[0].eligibility.rise: expected a single value; tags are not read, remove it`}},
		{"target-ca-file-without-https", []string{`8:14: targets[0].ca_file: "/etc/ca.pem": has no use for a url that is not https; remove it`}},
		{"target-keys", []string{
			`7:10: targets[0].url: "ftp://www.example.org/": expected http://HOST/PATH or https://HOST/PATH`,
			`8:13: targets[0].status: 99: expected 0 for any of 2xx, or a whole number from 200 to 599`,
			"9:11: targets[0].body: \"(unclosed\": is no regular expression (RE2): error parsing regexp: missing closing ): `(unclosed`",
			"10:15: targets[0].headers.X-A: is no regular expression (RE2): error parsing regexp: invalid character class range: `z-a`",
			`10:29: targets[0].headers.a b: is not a header's name; write letters, digits and -`,
			`11:19: targets[0].min_interval: "50ms": expected a duration from 100ms to 24h`,
			`12:5: targets[1].name: is missing; write one that pools can refer to`,
			`12:10: targets[1].url: "http://***@www.example.org/": has a user, which every proxy would see; leave it out`,
		}},
		{"target-none", []string{`11:7: pools[0].eligibility.require_targets: names targets, and there are none; write them under targets`}},
		{"target-twice", []string{`8:11: targets[1].name: "shop": is the name of targets[0] already; choose another`}},
		{"target-unknown", []string{`14:25: pools[0].eligibility.require_targets[0]: "shp": is not one of the targets; did you mean shop?`}},
		{"target-url-missing", []string{`6:5: targets[0].url: is missing; write the page that is asked for`}},
		{"text-expected", []string{`9:11: pools[0].name: 5: expected a text; write it in quotes: "5"`}},
		{"texts-expected", []string{
			`2:13: redis.username: 5: expected a text; write it in quotes: "5"`,
			`4:3: geoip.asn: expected a single value`,
		}},
		{"timeout-not-below-interval", []string{`12:16: pools[0].probe.timeout: "60s": is not shorter than the schedule's interval of 1m; shorten it or probe less often`}},
		{"unknown-judge", []string{`10:14: pools[0].judges[0]: "yours": is not one of the judges: mine`}},
		{"unknown-key-far", []string{`1:1: nonsense: unknown key; the keys here are redis, socket, state_dir, max_dials_per_second, geoip, judges, targets, sources, pools`}},
		{"unknown-key", []string{`11:7: pools[0].probe.shedule: unknown key; did you mean schedule?`}},
		{"unknown-source", []string{
			`10:23: pools[0].sources[1]: "mylst": is not one of the sources; did you mean mylist?`,
			`10:30: pools[0].sources[2]: "other": is not one of the sources: mylist`,
		}},
		{"user-agent-lines", []string{`8:17: sources[0].user_agent: "me\x0aX-Other: hunter2": has control characters; write it on one line`}},
		{"whole-number-expected", []string{`11:20: pools[0].probe.concurrency: 1.5: expected a whole number from 1 to 10000`}},
		{"whole-number-in-quotes", []string{`11:20: pools[0].probe.concurrency: "512": expected a number; write it without quotes`}},
		{"whole-number-too-large", []string{`11:13: pools[0].eligibility.rise: 101: expected a whole number from 1 to 100`}},
	}
}
