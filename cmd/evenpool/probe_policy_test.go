package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"

	"evenpool/daemon/api"
	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
)

// probeRig is a lab, two judges that sign, a target and a configuration.
type probeRig struct {
	lab    *lab.Lab
	dir    string
	config string
	hits   atomic.Int64 // of the target
	flags  []string     // for the first judge in place of the configuration
}

func newProbeRig(t *testing.T, behaviours ...lab.Behaviour) *probeRig {
	t.Helper()
	r := &probeRig{dir: t.TempDir()}
	var population []lab.Spec
	for _, b := range behaviours {
		population = append(population, lab.Spec{Behaviour: b, Count: 1})
	}
	var err error
	if r.lab, err = lab.Start(t.Context(), lab.Options{Population: population}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.lab.Close() })
	key := judge.NewKeyText()
	r.write(t, "judge.key", key)
	r.write(t, "lab.pem", string(r.lab.CA()))
	r.write(t, "banned.txt", "127.0.0.77\n")
	r.write(t, "country.mmdb", country(t, "127.64.0.0/10", "DE"))
	var servers serverSet
	t.Cleanup(servers.close)
	judges, err := servers.listenJudges(t.Context(), judgePlace{addrs: []string{"127.0.0.1", "127.0.0.2"}, caFile: r.file("judge.pem"), key: judge.Key(key)})
	if err != nil {
		t.Fatal(err)
	}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.hits.Add(1)
		fmt.Fprint(w, "welcome")
	}))
	t.Cleanup(target.Close)
	text := fmt.Sprintf(`
judges:
  - {name: mine, http: %q, https: %q, key_file: DIR/judge.key, ca_file: DIR/judge.pem, allow_addresses: [127.0.0.0/8]}
  - {name: second, http: %q, https: %q, key_file: DIR/judge.key, ca_file: DIR/judge.pem, allow_addresses: [127.0.0.0/8]}
targets:
  - {name: shop, url: %q, body: welcome, min_interval: 24h, allow_addresses: [127.0.0.0/8]}
geoip: {country: DIR/country.mmdb}
sources:
  - {name: lab, url: "file://DIR/list.txt", allow_addresses: [127.0.0.0/8]}
pools:
  - name: web
    probe: {timeout: 4s, proxy_ca_file: DIR/lab.pem}
    eligibility: {schemes: [http, https, socks5], banned_file: DIR/banned.txt, anonymity: anonymous, exit_countries: [DE], require_targets: [shop], rise: 1}
  - name: plain
    eligibility: {schemes: [http], require: [http]}
`, judges[0].HTTP, judges[0].HTTPS, judges[1].HTTP, judges[1].HTTPS, target.URL)
	r.config = r.write(t, "evenpool.yaml", strings.ReplaceAll(text, "DIR", r.dir))
	r.flags = []string{"--judge-http", judges[0].HTTP, "--judge-https", judges[0].HTTPS, "--ca-file", r.file("judge.pem"),
		"--judge-key-file", r.file("judge.key"), "--proxy-ca-file", r.file("lab.pem"), "--allow-address", "127.0.0.0/8"}
	return r
}

func (r *probeRig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *probeRig) write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(r.file(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r.file(name)
}

// url is that of the lab's proxy.
func (r *probeRig) url(b lab.Behaviour) string {
	for _, p := range r.lab.Proxies() {
		if p.Behaviour == b {
			return p.URL.String()
		}
	}
	return "no such proxy: " + string(b)
}

func (r *probeRig) byPool(pool string, args ...string) []string {
	return append([]string{"probe", "--policy", r.config, "--pool", pool}, args...)
}

// country is a database that has a network in a country.
func country(t *testing.T, prefix, code string) string {
	t.Helper()
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: "Example-Country", IncludeReservedNetworks: true})
	if err != nil {
		t.Fatal(err)
	}
	_, network, err := net.ParseCIDR(prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Insert(network, mmdbtype.Map{"country": mmdbtype.Map{"iso_code": mmdbtype.String(code)}}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := tree.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// report runs the command for its JSON.
func (r *probeRig) report(t *testing.T, args ...string) (report probeReport) {
	t.Helper()
	code, stdout, stderr := runCLI(t, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v, %s\n%s", code, err, stderr, stdout)
	}
	return report
}

// rulesThat returns the names of rules by how they stand.
func (t triedReport) rulesThat(result string) (names []string) {
	for _, r := range t.Rules {
		if r.Result == result {
			names = append(names, r.Rule)
		}
	}
	return names
}

// A pool's rules, judges, targets and files give the verdict.
func TestProbeByAPolicy(t *testing.T) {
	r := newProbeRig(t, "http", "https", "transparent", "mitm", "refuses")
	report := r.report(t, r.byPool("web", r.url("http"), r.url("https"), r.url("transparent"), r.url("mitm"), r.url("refuses"), "http://127.0.0.77:8080", "socks4://127.0.0.1:9")...)
	if report.Pool != "web" || report.Passed != 2 || len(report.Proxies) != 7 || len(report.Judges) != 4 || len(report.Targets) != 1 || !report.Targets[0].Well {
		t.Fatalf("%+v", report)
	}
	// Before, after, and by each proxy that passed all else but rules on what it is like.
	if got := r.hits.Load(); got != 2+3 {
		t.Errorf("the target was asked %d times", got)
	}

	good := report.Proxies[0]
	result := good.Results[0]
	if good.Proxy != r.url("http") || good.Verdict != probe.Pass || len(good.Reasons) != 0 {
		t.Errorf("a good one: %+v", good)
	}
	if want := []string{"schemes", "banned", "quarantine", "safety", "require http", "require tls", "min_judges", "anonymity", "exit_countries", "require_targets", "rise"}; !slices.Equal(good.rulesThat(api.RulePass), want) || len(good.Rules) != len(want) {
		t.Errorf("rules of a good one: %+v", good.Rules)
	}
	if !slices.Equal(result.Found, []probe.Capability{"http", "connect", "tls"}) || result.Anonymity != probe.Elite || !result.Verified {
		t.Errorf("found of a good one: %+v", result)
	}
	if result.Exit == nil || !strings.HasPrefix(result.Exit.Address, "127.64.") || result.Exit.Country != "DE" {
		t.Errorf("the exit of a good one: %+v", result.Exit)
	}
	var judges []string
	for _, c := range result.Checks {
		judges = append(judges, c.Judge)
		if c.ConnectMS == nil || c.FirstByteMS == nil || (c.TLSMS != nil) != (c.Capability == probe.TLS) || (c.HandshakeMS != nil) != (c.Capability == probe.TLS) || c.TotalMS < *c.FirstByteMS {
			t.Errorf("stages: %+v", c)
		}
	}
	if want := []string{"mine", "mine", "second", "second"}; !slices.Equal(judges, want) || len(result.Targets) != 1 || result.Targets[0].Target != "shop" || result.Targets[0].Outcome != probe.OK {
		t.Errorf("asked %q, targets %+v", judges, result.Targets)
	}

	if secure := report.Proxies[1]; secure.Proxy != r.url("https") {
		t.Errorf("an https proxy whose authority the pool trusts: %+v", secure)
	}
	if see := report.Proxies[2]; see.Verdict != probe.Fail || !slices.Equal(see.rulesThat(api.RuleFail), []string{"anonymity", "rise"}) {
		t.Errorf("a transparent one: %+v", see)
	}
	if hostile := report.Proxies[3]; hostile.Verdict != probe.Fail || !slices.Contains(hostile.rulesThat(api.RuleFail), "safety") || !slices.Contains(hostile.rulesThat(api.RuleNotKnown), "anonymity") {
		t.Errorf("one that intercepts: %+v", hostile)
	}
	if dead := report.Proxies[4]; dead.Verdict != probe.Fail || dead.Results[0].Outcome != probe.Refused || dead.Results[0].Checks[0].ConnectMS != nil {
		t.Errorf("a dead one: %+v", dead)
	}
	for i, rule := range map[int]string{5: "banned: fail: 127.0.0.77 is banned", 6: "schemes: fail: claimed: socks4; wanted: http, https, socks5"} {
		if barred := report.Proxies[i]; !barred.Barred || len(barred.Results) != 0 || barred.Verdict != probe.Fail || !slices.Contains(barred.Reasons, rule) {
			t.Errorf("one that is barred: %+v", barred)
		}
	}
}

// What a person sees, of the same.
func TestProbeDetails(t *testing.T) {
	r := newProbeRig(t, "http", "mitm")
	code, stdout, stderr := runCLI(t, r.byPool("web", r.url("http"), r.url("mitm"), "http://127.0.0.77:8080")...)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, want := range []string{
		r.url("http") + ": pass\n",
		"  http         ok\n    found      http, connect, tls\n    exit       127.64.0.1, DE (verified)\n    anonymity  elite (verified)\n",
		"   ASKED                CONNECT  HANDSHAKE  TLS ",
		"   judge mine (tls)     0.", "   judge second (tls)   0.", "   target shop (http)   0.",
		"  rules        pass schemes: http is among http, https, socks5\n               pass banned: not among the banned\n",
		"               FAIL safety: http: tls_intercepted at tls\n",
		"               ?    anonymity: not known\n",
		"127.0.0.77:8080: fail\n  not tried    banned: 127.0.0.77 is banned\n",
		"\n1 of 3 pass by the rules of pool web\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	// A pool that requires less asks for less.
	one := r.report(t, r.byPool("plain", r.url("mitm"))...).Proxies[0]
	if one.Verdict != probe.Pass || len(one.Results[0].Checks) != 2 || !slices.Equal(one.rulesThat(api.RuleNotKnown), []string{"rise"}) {
		t.Errorf("%+v", one)
	}
	// Of many there is a line each, and targets are left alone.
	r.hits.Store(0)
	list := r.write(t, "many.txt", manyDead(9))
	code, stdout, stderr = runCLI(t, r.byPool("web", "--list", list, "--allow-address", "127.0.0.0/8")...)
	if code != exitDone || !strings.HasPrefix(stdout, "PROXY ") || strings.Count(stdout, "\n") != 1+9+2 || r.hits.Load() != 0 ||
		stderr != "targets are not asked for more than 8 proxies at once\n" {
		t.Errorf("exit %d, %q, %s", code, stderr, stdout)
	}
}

func manyDead(n int) (list string) {
	for i := range n {
		list += fmt.Sprintf("http://127.0.0.1:%d\n", 1000+i)
	}
	return list
}

// A target that is not well is no proxy's fault, and one that no proxy reaches is.
func TestProbeOfSickTargets(t *testing.T) {
	r := newProbeRig(t, "http")
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.write(t, "evenpool.yaml", strings.Replace(string(text), "body: welcome", "body: farewell", 1))
	report := r.report(t, r.byPool("web", r.url("http"))...)
	one := report.Proxies[0]
	if report.Targets[0].Well || one.Verdict != probe.Inconclusive || !slices.Equal(one.rulesThat(api.RuleNotKnown), []string{"schemes", "require_targets", "rise"}) || len(one.Results[0].Targets) != 0 {
		t.Errorf("%+v", report)
	}
}

func TestProbePolicyRefuses(t *testing.T) {
	r := newProbeRig(t, "http")
	broken := func(name, old, new string) string {
		text, err := os.ReadFile(r.config)
		if err != nil {
			t.Fatal(err)
		}
		return r.write(t, name, strings.ReplaceAll(string(text), old, new))
	}
	const proxy = "http://203.0.113.7:8080"
	noFiles := broken("files.yaml", r.dir+"/", r.dir+"/gone/")
	for _, tc := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"--policy", r.config, proxy}, exitUsage, "which pool? give --pool; configured: web, plain\n"},
		{[]string{"-c", r.config, "--pool", "x", proxy}, exitUsage, "no pool x; configured: web, plain\n"},
		{[]string{"-c", r.config, "--policy", r.config, proxy}, exitUsage, "--policy and --config both name the configuration: give one of them\n"},
		{[]string{"--policy", r.config, "--judge-http", "http://judge.example.org/", proxy}, exitUsage, "a pool has its own judges: give --policy and --pool, or --judge-http and --judge-https\n"},
		{[]string{"--policy", broken("key.yaml", "rise: 1", "rose: 1"), "--pool", "web", proxy}, exitConfig, `pools[0].eligibility.rose: unknown key`},
		{[]string{"--policy", noFiles, "--pool", "web", proxy}, exitConfig, `pools[0].eligibility.banned_file: "` + r.dir + "/gone/banned.txt\": no such file or directory\n"},
		{[]string{"--policy", noFiles, "--pool", "web", proxy}, exitConfig, "evenpool: " + noFiles + ":3:"},
		{[]string{"--policy", noFiles, "--pool", "web", proxy}, exitConfig, `geoip.country: "` + r.dir + "/gone/country.mmdb\": no such file or directory\n"},
	} {
		code, stdout, stderr := runCLI(t, append([]string{"probe"}, tc.args...)...)
		if code != tc.code || stdout != "" || !strings.Contains(stderr, tc.stderr) {
			t.Errorf("%q: exit %d, %q, %q", tc.args, code, stdout, stderr)
		}
	}
}

// A judge given by flags may sign, or be somebody else's.
func TestProbeByFlags(t *testing.T) {
	r := newProbeRig(t, "http", "forges-unsigned")
	signed := r.report(t, append([]string{"probe", r.url("http"), r.url("forges-unsigned")}, r.flags...)...)
	if one := signed.Proxies[0].Results[0]; one.Anonymity != probe.Elite || !one.Verified || len(signed.Proxies[0].Rules) != 0 {
		t.Errorf("by a judge that signs: %+v", one)
	}
	if two := signed.Proxies[1]; two.Verdict != probe.Fail || two.Results[0].Outcome != probe.Forged {
		t.Errorf("a forged answer: %+v", two)
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host, _, _ := net.SplitHostPort(req.RemoteAddr)
		json.NewEncoder(w).Encode(map[string]any{"seen": map[string]any{"by": host, "headers": req.Header}, "url": req.URL.String()})
	}))
	defer echo.Close()
	told := r.report(t, "probe", r.url("http"), "--judge-http", echo.URL+"/get", "--echo", "json,seen.by,seen.headers", "--allow-address", "127.0.0.0/8")
	if one := told.Proxies[0].Results[0]; one.Anonymity != probe.Elite || one.Verified || one.Exit == nil || one.Exit.Address != "127.64.0.1" || told.Passed != 1 {
		t.Errorf("by a judge of others: %+v", told)
	}
	told = r.report(t, "probe", r.url("http"), "--judge-http", echo.URL+"/get", "--echo", "json,seen.by", "--allow-address", "127.0.0.0/8")
	if one := told.Proxies[0].Results[0]; one.Anonymity != "" || one.Exit == nil || told.Passed != 1 {
		t.Errorf("by one that tells no headers: %+v", told)
	}
	code, stdout, stderr := runCLI(t, "probe", r.url("http"), "--judge-http", echo.URL, "--judge-key-file", r.file("gone"), "--allow-address", "127.0.0.0/8")
	if code != exitFailed || stdout != "" || !strings.HasPrefix(stderr, "evenpool: --judge-key-file: "+r.file("gone")+": there is none; ") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
