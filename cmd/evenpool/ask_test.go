package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"evenpool/daemon/api"
)

// answering is a daemon's socket that gives one answer to everything.
func answering(t *testing.T, status int, answer any) (socket string, asked *string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "e.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked = new(string)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		query.Del("timeout_ms")
		*asked = strings.TrimSuffix(r.Method+" "+r.URL.Path+"?"+query.Encode(), "?")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return socket, asked
}

func two() api.AllocateMany {
	return api.AllocateMany{Proxies: []api.Allocation{{Proxy: "http://203.0.113.7:8080", Count: 18}, {Proxy: "socks5://u:p@203.0.113.9:1080", Count: 18}}}
}

func TestAlloc(t *testing.T) {
	socket, asked := answering(t, 200, two())
	for _, tc := range []struct {
		args          []string
		asked, stdout string
	}{
		{[]string{"alloc"}, "POST /v1/allocate?n=1", "http://203.0.113.7:8080\nsocks5://u:p@203.0.113.9:1080\n"},
		{[]string{"alloc", "-n", "2", "--pool", "web"}, "POST /v1/pools/web/allocate?n=2", "http://203.0.113.7:8080\nsocks5://u:p@203.0.113.9:1080\n"},
		{[]string{"alloc", "-o", "json"}, "POST /v1/allocate?n=1", `{
  "proxies": [
    {
      "proxy": "http://203.0.113.7:8080",
      "count": 18
    },
    {
      "proxy": "socks5://u:p@203.0.113.9:1080",
      "count": 18
    }
  ]
}
`},
	} {
		code, stdout, stderr := runCLI(t, append(tc.args, "--socket", socket)...)
		if code != exitDone || stdout != tc.stdout || stderr != "" || *asked != tc.asked {
			t.Errorf("%q: exit %d, asked %q, stderr %q, stdout\n%s", tc.args, code, *asked, stderr, stdout)
		}
	}
}

func TestAllocFailures(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name   string
		status int
		answer any
		args   []string
		code   int
		stderr string
	}{
		{"empty pool", 200, api.AllocateMany{RetryAfterMS: 30000}, nil, exitEmpty,
			"the pool is empty; ask again in 30s; 'evenpool status' says what its last cycle found"},
		{"empty pool, JSON", 200, api.AllocateMany{}, []string{"--pool", "web", "-o", "json"}, exitEmpty,
			"the pool web is empty; 'evenpool status' says what its last cycle found"},
		{"store away", 503, &api.Error{Code: api.CodeUnavailable, Message: "the store is away", RetryAfter: time.Second}, nil, exitUnavailable,
			"the store is away; try again in 1s"},
		{"pool lost", 503, &api.Error{Code: api.CodePoolLost, Message: "it is built again", RetryAfter: 5 * time.Second}, nil, exitUnavailable,
			"it is built again; try again in 5s"},
		{"too many", 429, &api.Error{Code: api.CodeTooMany, Message: "later", RetryAfter: time.Second}, nil, exitUnavailable, "later; try again in 1s"},
		{"outcome unknown", 502, &api.Error{Code: api.CodeOutcomeUnknown, Message: "the reply was lost"}, nil, exitUnknown, "the reply was lost"},
		{"unknown pool", 404, &api.Error{Code: api.CodeUnknownPool, Message: "no pool nope; configured: web"}, []string{"--pool", "nope"}, exitUsage,
			"no pool nope; configured: web"},
		{"a bug", 500, &api.Error{Code: api.CodeInternal, Message: "internal"}, nil, exitFailed, "internal"},
		{"a hostile daemon", 500, &api.Error{Code: api.CodeInternal, Message: "\x1b[2J"}, nil, exitFailed, `\x1b[2J`},
		{"no daemon", 0, nil, []string{"--socket", dir + "/none"}, exitUnavailable,
			"no daemon: there is no socket " + dir + "/none; start evenpool, or name its socket with --socket or $EVENPOOL_SOCKET; try again in 1s"},
		{"n of 0", 0, nil, []string{"-n", "0"}, exitUsage, "-n 0: expected a whole number from 1 to 1000"},
		{"n too large", 0, nil, []string{"-n", "1001"}, exitUsage, "-n 1001: expected a whole number from 1 to 1000"},
		{"no time", 0, nil, []string{"--timeout", "0s"}, exitUsage, "--timeout 0s: expected 10ms to 10s"},
		{"an argument", 0, nil, []string{"web"}, exitUsage, "alloc takes no arguments; the pool is named with --pool"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"alloc"}
			if tc.status != 0 {
				socket, _ := answering(t, tc.status, tc.answer)
				args = append(args, "--socket", socket)
			}
			code, stdout, stderr := runCLI(t, append(args, tc.args...)...)
			if code != tc.code || stdout != "" || stderr != "evenpool: "+tc.stderr+"\n" {
				t.Errorf("exit %d, stdout %q, stderr %s\nwant %d %s", code, stdout, stderr, tc.code, tc.stderr)
			}
		})
	}
}

// A daemon that accepts and is silent: what became of the allocation is not
// known, and the command ends in time.
func TestAllocFromASilentDaemon(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "e.sock")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	code, stdout, stderr := runCLI(t, "alloc", "--socket", socket, "--timeout", "100ms")
	if code != exitUnknown || stdout != "" || !strings.Contains(stderr, "no answer in time") {
		t.Errorf("exit %d, %q, %s", code, stdout, stderr)
	}
}

// A script cannot go on without a proxy by mistake.
func TestAllocInAShell(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		answer api.AllocateMany
		code   int
		stdout string
	}{
		{two(), exitDone, "going with http://203.0.113.7:8080\nsocks5://u:p@203.0.113.9:1080\n"},
		{api.AllocateMany{}, exitEmpty, ""},
	} {
		socket, _ := answering(t, 200, tc.answer)
		sh := exec.Command("sh", "-c", `proxy=$("$0" alloc) || exit; echo "going with $proxy"`, self)
		sh.Env = append(os.Environ(), asProgram+"=evenpool", "EVENPOOL_SOCKET="+socket)
		stdout, _ := sh.Output()
		if code := sh.ProcessState.ExitCode(); code != tc.code || string(stdout) != tc.stdout {
			t.Errorf("exit %d, %q; want %d, %q", code, stdout, tc.code, tc.stdout)
		}
	}
}
