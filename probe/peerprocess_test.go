package probe

import (
	"bytes"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is whom real servers run as where the test is root: squid refuses to be.
const nobody = 65534

// peerFiles are what configurations of peers name in DIR.
func peerFiles(t *testing.T, cert tls.Certificate, certPEM []byte) map[string][]byte {
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	// basic_ncsa_auth takes a digest without salt, too.
	digest := md5.Sum([]byte(peerPassword))
	return map[string][]byte{
		"cert.pem": certPEM,
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"users":    []byte(peerUser + ":" + hex.EncodeToString(digest[:]) + "\n"),
	}
}

// start runs a peer until the test ends, and returns its port on 127.0.0.1 when it
// accepts connections. The test is skipped where its program is missing.
func (w *peerWorld) start(t *testing.T, p peer) (port uint16) {
	t.Helper()
	program := peerProgram(t, p.program)
	dir, err := os.MkdirTemp("", "evenpool-peer-") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	port = freePort(t)
	words := []string{"PORT", strconv.Itoa(int(port)), "DIR", dir, "EXIT", peerExit, "USER", peerUser, "PASSWORD", peerPassword,
		"HELPER", "/usr/lib/squid/basic_ncsa_auth"}
	if p.behind != nil {
		words = append(words, "BEHIND", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), w.start(t, *p.behind)).String())
	}
	fill := strings.NewReplacer(words...)
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			err = os.Chown(filepath.Join(dir, name), nobody, nobody)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range w.files {
		write(name, text)
	}
	write("config", []byte(fill.Replace(p.config)))
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	args := make([]string, len(p.args))
	for i, a := range p.args {
		args[i] = fill.Replace(a)
	}
	runPeer(t, exec.Command(program, args...), dir, port)
	return port
}

// runPeer runs a server, in a group of its own with what it starts itself, until
// the test ends.
func runPeer(t *testing.T, cmd *exec.Cmd, dir string, port uint16) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	said := func() string {
		text, _ := os.ReadFile(log.Name())
		return string(bytes.TrimSpace(text))
	}
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if conn, err := net.DialTimeout("tcp", at, time.Second); err == nil {
			conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v\n%s", cmd, err, said())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s does not listen at %s\n%s", cmd, at, said())
}

// peerProgram finds a server's program, also where users other than root do not look.
func peerProgram(t *testing.T, name string) string {
	t.Helper()
	for _, at := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(at); err == nil {
			return path
		}
	}
	t.Skipf("SKIPPED: %s is not installed: .ci/proxies.sh installs it (Debian: apt-get install %s)", name, peerPackages[name])
	return ""
}

// freePort returns a port on 127.0.0.1 that nobody listens at.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}
