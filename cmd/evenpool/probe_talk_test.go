package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"unicode"

	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// probeList runs the command on a list; it returns what it printed.
func probeList(t *testing.T, list string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	args = slices.Concat([]string{"evenpool", "probe", "--list", "-"}, args)
	if code := run(t.Context(), args, strings.NewReader(list), &out, &errs); code != exitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	return out.String()
}

// -v shows what was said, and no password, in whichever form it was sent.
func TestProbeConversation(t *testing.T) {
	r := newProbeRig(t, "http-password", "https-password", "socks5-password", "socks4-user")
	for _, format := range []string{"text", "json"} {
		said := probeList(t, r.lab.ListText(), append(r.flags, "-v", "-o", format)...)
		for _, p := range r.lab.Proxies() {
			e := p.URL.Endpoint
			for _, secret := range []string{e.Password(), base64.StdEncoding.EncodeToString([]byte(e.User() + ":" + e.Password()))} {
				if secret != "" && strings.Contains(said, secret) {
					t.Errorf("%s: %s: %q is in\n%s", format, p.Name, secret, said)
				}
			}
		}
		for _, want := range []string{
			"> CONNECT 127.0.0.1:", "> Proxy-Authorization: Basic ***", "< HTTP/1.1 200 Connection established",
			"> GET http://127.0.0.1:", "&form=page HTTP/1.1", "> GET /?nonce=", "evenpool_judge",
			`> \x05\x02\x00\x02`, `> \x01\x03lab\x09***`,
		} {
			if format == "json" {
				want = strings.ReplaceAll(want, `\`, `\\`)
			}
			if !strings.Contains(said, want) {
				t.Errorf("no %q in\n%s", want, said)
			}
		}
	}
	var report probeReport
	if err := json.Unmarshal([]byte(probeList(t, r.lab.ListText(), append(r.flags, "-v", "-o", "json")...)), &report); err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Proxies {
		checks := 0
		for _, result := range p.Results {
			checks += len(result.Checks)
		}
		if len(p.Said) < checks || p.Said[0].Judge != "flags" || p.Said[0].Capability != "http" || p.Said[0].Scheme != p.Results[0].Scheme {
			t.Errorf("%s: %d questions of %d, %+v", p.Endpoint, len(p.Said), checks, p.Said)
		}
	}
	// Without -v nothing is kept.
	if said := probeList(t, r.lab.ListText(), append(r.flags, "-o", "json")...); strings.Contains(said, "nonce=") || strings.Contains(said, `"said"`) {
		t.Errorf("without -v:\n%s", said)
	}
}

// What hostile proxies say does not reach the terminal as it is, and is bounded.
func TestP7_ProbeConversationIsSafeToShow(t *testing.T) {
	r := newProbeRig(t, "garbage", "header-flood", "endless-1xx", "endless-body", "gzip-bomb", "injects-script", "replays", "honeypot")
	for _, format := range []string{"text", "json"} {
		said := probeList(t, r.lab.ListText(), append(r.flags, "-v", "-o", format)...)
		if i := strings.IndexFunc(said, func(c rune) bool { return c != '\n' && !unicode.IsPrint(c) || c == unicode.ReplacementChar }); i >= 0 {
			t.Errorf("%s has %q", format, said[i:min(len(said), i+20)])
		}
		if len(said) > 8*64<<10 {
			t.Errorf("%s has %d bytes", format, len(said))
		}
		if format == "text" && (!strings.Contains(said, `< \x00\xff\xfeSSH-2.0-\x1b]0;lab\x07\x1b[31m\u202e\x9b2J`) || !strings.Contains(said, " bytes more\n")) {
			t.Errorf("not shown:\n%s", said)
		}
	}
}

// A proxy that repeats what it was told, again and again, to where it is cut.
func TestProbeMasksWhatAProxyRepeats(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				head := make([]byte, 4096)
				n, _ := conn.Read(head)
				line, _, _ := strings.Cut(string(head[:n][bytes.Index(head[:n], []byte("Basic ")):]), "\r\n")
				io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"+strings.Repeat(line+"swordfish ", 500))
			}()
		}
	}()
	said := probeList(t, fmt.Sprintf("http://joe:swordfish@%s\n", ln.Addr()), append(startJudge(t), "-v")...)
	encoded := base64.StdEncoding.EncodeToString([]byte("joe:swordfish"))
	for _, piece := range []string{"sword", encoded[:8]} {
		if strings.Contains(said, piece) || !strings.Contains(said, "< Basic ******") || !strings.Contains(said, `in place of "Basic ******`) && !strings.Contains(said, `"Basic ******`) {
			t.Errorf("%q in\n%s", piece, said)
		}
	}
}

// Lines end as they ended, and what is too much is counted.
func TestTalkLines(t *testing.T) {
	var talk talk
	talk.add(true, []byte("GET / HT"))
	talk.add(true, []byte("TP/1.1\r\n\r\n"))
	talk.add(false, []byte("a\nb\r\nc"))
	talk.add(true, []byte(strings.Repeat("x\n", maxLines+5)))
	talk.add(false, bytes.Repeat([]byte("y"), maxTurn-1))
	talk.add(false, []byte("yz"))
	got := talk.lines(proxyurl.Endpoint{})
	want := []string{"> GET / HTTP/1.1", "> ", `< a\x0a`, "< b", "< c"}
	for range maxLines {
		want = append(want, `> x\x0a`)
	}
	want = append(want, "> ... and 10 bytes more", "< "+strings.Repeat("y", maxLine)+"...", "< ... and 1 bytes more")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Conversations are kept of so many proxies only.
func TestProbeConversationsOfTooMany(t *testing.T) {
	code, stdout, stderr := runCLI(t, append([]string{"probe", "-v", "--list", newProbeRig(t, lab.Behaviour("http")).write(t, "many.txt", manyDead(maxVerbose+1))}, startJudge(t)...)...)
	if code != exitUsage || stdout != "" || stderr != "evenpool: -v is for at most 100 proxies, and there are 101\n" {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
}
