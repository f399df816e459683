package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inNamespace says that the rest of the test is told to go on in a namespace.
const inNamespace = "EVENPOOL_TEST_IN_NAMESPACE"

// namespaced runs the test that calls it again, in a process with a network of
// its own and mounts of its own, and returns true there. Outside it returns
// false, when that process has ended: the test is over then. It skips where such
// a process cannot be had.
//
// The network has lo alone, and every address there is, of either family, is
// this host's: a connection to any of them really sends its SYN, which nothing
// answers but what the test itself listens with. Nothing leaves the machine.
func namespaced(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%v: install it (Debian: apt-get install iproute2 nftables)", err)
		}
	}
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	try := exec.Command("nft", "add table inet try")
	try.SysProcAttr = attr
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("a network namespace with a packet filter cannot be made here: %v: %s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v=true")
	cmd.Env = append(os.Environ(), inNamespace+"=1", "EVENPOOL_TEST_STORE=server")
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("in the namespace:\n%s", out)
	}
	if err != nil {
		t.Errorf("in the namespace: %v", err)
	}
	return false
}

// watch makes the namespace's network and counts every SYN that it sends.
func watch(t *testing.T) {
	t.Helper()
	command(t, "", "ip", "link", "set", "lo", "up")
	command(t, "", "ip", "route", "add", "local", "0.0.0.0/0", "dev", "lo")
	command(t, "", "ip", "-6", "route", "add", "local", "::/0", "dev", "lo")
	// A set misses a few in a thousand, as its table grows. These are not let
	// through, so that the kernel sends them again, and counted.
	command(t, `
table inet watch {
	counter syns { }
	counter missed { }
	set v4 { typeof ip daddr . tcp dport; flags dynamic; size 1000000; }
	set v6 { typeof ip6 daddr . tcp dport; flags dynamic; size 1000000; }
	chain out {
		type filter hook output priority 0; policy accept;
		tcp flags & (fin|syn|rst|ack) == syn counter name syns
		tcp flags & (fin|syn|rst|ack) == syn add @v4 { ip daddr . tcp dport counter }
		tcp flags & (fin|syn|rst|ack) == syn add @v6 { ip6 daddr . tcp dport counter }
		tcp flags & (fin|syn|rst|ack) == syn ip daddr . tcp dport != @v4 counter name missed drop
		tcp flags & (fin|syn|rst|ack) == syn ip6 daddr . tcp dport != @v6 counter name missed drop
	}
}
`, "nft", "-f", "-")
}

// syns returns how many SYNs went to each address and port since the last call,
// those of the test's own processes included.
func syns(t *testing.T) map[netip.AddrPort]int {
	t.Helper()
	var listing struct {
		Nftables []struct {
			Counter *struct {
				Name    string
				Packets int
			}
			Set *struct {
				Elem []struct {
					Elem struct {
						Val     struct{ Concat [2]any }
						Counter struct{ Packets int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(command(t, "", "nft", "-j", "list", "table", "inet", "watch"), &listing); err != nil {
		t.Fatal(err)
	}
	sent, recorded, counters := map[netip.AddrPort]int{}, 0, map[string]int{}
	for _, object := range listing.Nftables {
		if object.Counter != nil {
			counters[object.Counter.Name] = object.Counter.Packets
		}
		if object.Set == nil {
			continue
		}
		for _, e := range object.Set.Elem {
			to := netip.AddrPortFrom(netip.MustParseAddr(e.Elem.Val.Concat[0].(string)), uint16(e.Elem.Val.Concat[1].(float64)))
			sent[to] = e.Elem.Counter.Packets
			recorded += e.Elem.Counter.Packets
		}
	}
	if all := counters["syns"] - counters["missed"]; all != recorded {
		t.Fatalf("%d SYNs were sent and %d recorded", all, recorded)
	}
	command(t, "", "nft", "flush set inet watch v4; flush set inet watch v6; reset counters table inet watch")
	return sent
}

// resolveHere has all processes of the namespace ask a resolver on 127.0.0.1 and
// know no other names.
func resolveHere(t *testing.T) {
	t.Helper()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("mounts of the test's own: %v", err)
	}
	for path, text := range map[string]string{
		"/etc/resolv.conf": "nameserver 127.0.0.1\noptions attempts:1 timeout:2\n",
		"/etc/hosts":       "127.0.0.1 localhost\n",
	} {
		mine := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(mine, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Skipf("%s: %v", path, err)
		}
		if err := syscall.Mount(mine, real, "", syscall.MS_BIND, ""); err != nil {
			t.Fatalf("mount over %s: %v", real, err)
		}
		t.Cleanup(func() { syscall.Unmount(real, 0) }) // or the file could not be removed
	}
}

func command(t *testing.T, stdin, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, fmt.Errorf("%w: %s", err, problem.String()))
	}
	return out
}
