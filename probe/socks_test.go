package probe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"

	"evenpool/sources/proxyurl"
)

// scripted is a peer that has said all it will say before it is asked.
type scripted struct {
	net.Conn
	said *bytes.Reader
	sent bytes.Buffer
}

func (s *scripted) Read(b []byte) (int, error)  { return s.said.Read(b) }
func (s *scripted) Write(b []byte) (int, error) { return s.sent.Write(b) }

// shake runs a handshake against a peer that says reply. It returns what was sent
// and what of the reply is left for the judge.
func shake(t testing.TB, scheme proxyurl.Scheme, endpoint string, to destination, reply string) (sent, left string, err error) {
	t.Helper()
	e, err := proxyurl.ParseEndpoint(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	peer := &scripted{said: bytes.NewReader([]byte(reply))}
	conn := &stream{peer, bufio.NewReader(peer), nil, nil}
	err = protocols[scheme].tunnel(conn, e, to)
	rest, _ := io.ReadAll(conn)
	return peer.sent.String(), string(rest), err
}

func byName() destination { return destination{host: "judge.example.org", port: 80} }

func byAddr(text string) destination {
	return destination{host: text, port: 443, addr: netip.MustParseAddr(text)}
}

const free, locked = "198.51.100.1:1080", "us:p%3Aw@198.51.100.1:1080"

func TestHandshake(t *testing.T) {
	const ok5 = "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	name5 := "\x05\x01\x00\x03\x11judge.example.org\x00\x50"
	tests := []struct {
		name     string
		scheme   proxyurl.Scheme
		endpoint string
		to       destination
		reply    string
		sent     string
	}{
		{"connect", proxyurl.HTTP, free, byName(), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
			"CONNECT judge.example.org:80 HTTP/1.1\r\nHost: judge.example.org:80\r\nUser-Agent: evenpool-probe/1\r\n\r\n"},
		{"connect with password", proxyurl.HTTP, locked, byAddr("2001:db8::1"), "HTTP/1.0 299\r\n\r\n",
			"CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\nProxy-Authorization: Basic dXM6cDp3\r\nUser-Agent: evenpool-probe/1\r\n\r\n"},
		{"socks4", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x04\x01\x01\xbb\xc0\x00\x02\x01\x00"},
		{"socks4 with user", proxyurl.SOCKS4, locked, byAddr("192.0.2.1"), "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x04\x01\x01\xbb\xc0\x00\x02\x01us\x00"},
		{"socks4a", proxyurl.SOCKS4A, free, byName(), "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x04\x01\x00\x50\x00\x00\x00\x01\x00judge.example.org\x00"},
		{"socks4a to an address", proxyurl.SOCKS4A, free, byAddr("192.0.2.1"), "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x04\x01\x01\xbb\xc0\x00\x02\x01\x00"},
		{"socks5", proxyurl.SOCKS5, free, byName(), "\x05\x00" + ok5, "\x05\x01\x00" + name5},
		{"socks5 to IPv4", proxyurl.SOCKS5, free, byAddr("192.0.2.1"), "\x05\x00" + ok5, "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbb"},
		{"socks5 to IPv6", proxyurl.SOCKS5, free, byAddr("2001:db8::1"), "\x05\x00" + ok5,
			"\x05\x01\x00\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbb"},
		{"socks5 bound to IPv6", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x00\x00\x04" + string(make([]byte, 18)), "\x05\x01\x00" + name5},
		{"socks5 bound to a name", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x00\x00\x03\x02ab\x00\x50", "\x05\x01\x00" + name5},
		{"socks5 with password", proxyurl.SOCKS5, locked, byName(), "\x05\x02\x01\x00" + ok5, "\x05\x02\x00\x02\x01\x02us\x03p:w" + name5},
		{"socks5 that wants no password", proxyurl.SOCKS5, locked, byName(), "\x05\x00" + ok5, "\x05\x02\x00\x02" + name5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// What follows the reply is the judge's, to the byte.
			sent, left, err := shake(t, test.scheme, test.endpoint, test.to, test.reply+"JUDGE")
			if err != nil || sent != test.sent || left != "JUDGE" {
				t.Errorf("sent %q, left %q, %v\nwant %q", sent, left, err, test.sent)
			}
		})
	}
}

func TestHandshakeRefused(t *testing.T) {
	tests := []struct {
		name     string
		scheme   proxyurl.Scheme
		endpoint string
		to       destination
		reply    string
		want     Outcome
		detail   string
	}{
		{"connect 407", proxyurl.HTTP, free, byName(), "HTTP/1.1 407 x\r\n\r\n", AuthRequired, "CONNECT: status 407"},
		{"connect 502", proxyurl.HTTP, free, byName(), "HTTP/1.1 502 x\r\n\r\n", ConnectRefused, "CONNECT: status 502"},
		{"connect 302", proxyurl.HTTP, free, byName(), "HTTP/1.1 302 x\r\nLocation: /\r\n\r\n", ConnectRefused, "CONNECT: status 302"},
		{"connect to SOCKS", proxyurl.HTTP, free, byName(), "\x05\xff", Garbage, `not an answer of HTTP/1: "\x05\xff"`},
		{"socks4 91", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x00\x5b\x00\x00\x00\x00\x00\x00", SOCKSRefused, "SOCKS 4 reply 91: rejected or failed"},
		{"socks4 93", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x00\x5d\x00\x00\x00\x00\x00\x00", AuthRequired, "SOCKS 4 reply 93: the user is not confirmed by identd"},
		{"socks4 0", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x00\x00\x00\x00\x00\x00\x00\x00", Garbage, "SOCKS 4 reply 0"},
		{"socks4 to SOCKS 5", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x05\xff", Garbage, "SOCKS 4 reply begins with byte 0x05 in place of 0x00"},
		{"socks4 cut", proxyurl.SOCKS4, free, byAddr("192.0.2.1"), "\x00\x5a\x00", Closed, "unexpected EOF"},
		{"socks4a to IPv6", proxyurl.SOCKS4A, free, byAddr("2001:db8::1"), "", JudgeAddress, "the judge has an IPv6 address, which SOCKS 4A cannot ask for"},
		{"socks5 no method", proxyurl.SOCKS5, free, byName(), "\x05\xff", AuthRequired, "SOCKS 5 method 0xff"},
		{"socks5 wants what was not offered", proxyurl.SOCKS5, free, byName(), "\x05\x02", AuthRequired, "SOCKS 5 method 0x02"},
		{"socks5 odd method", proxyurl.SOCKS5, locked, byName(), "\x05\x01", Garbage, "SOCKS 5 method 0x01, which was not offered"},
		{"socks5 wrong password", proxyurl.SOCKS5, locked, byName(), "\x05\x02\x01\x01", AuthRequired, "SOCKS 5: user and password refused"},
		{"socks5 odd authentication", proxyurl.SOCKS5, locked, byName(), "\x05\x02\x05\x00", Garbage, "SOCKS 5 authentication version 0x05 in place of 0x01"},
		{"socks5 to SOCKS 4", proxyurl.SOCKS5, free, byName(), "\x00\x5b", Garbage, "SOCKS 5 version 0x00 in place of 0x05"},
		{"socks5 to HTTP", proxyurl.SOCKS5, free, byName(), "HTTP/1.1 400 x\r\n\r\n", Garbage, "SOCKS 5 version 0x48 in place of 0x05"},
		{"socks5 refused", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x05", SOCKSRefused, "SOCKS 5 reply 5: connection refused"},
		{"socks5 odd refusal", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x77", SOCKSRefused, "SOCKS 5 reply 119"},
		{"socks5 odd address", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x00\x00\x02", Garbage, "SOCKS 5 reply with an address of kind 0x02"},
		{"socks5 odd reply", proxyurl.SOCKS5, free, byName(), "\x05\x00\x04\x00", Garbage, "SOCKS 5 reply version 0x04 in place of 0x05"},
		{"socks5 cut", proxyurl.SOCKS5, free, byName(), "\x05\x00\x05\x00\x00\x01\x7f", Closed, "EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := shake(t, test.scheme, test.endpoint, test.to, test.reply)
			if err == nil || proxyurl.Escape(err.Error(), maxDetail) != test.detail || classify(err, StageHandshake, noTLS) != test.want {
				t.Errorf("got %v, want %s %q", err, test.want, test.detail)
			}
		})
	}
}

// FuzzHandshake: whatever a proxy replies, the handshake ends in an outcome that
// is the proxy's, and takes no more than its reply.
func FuzzHandshake(f *testing.F) {
	schemes := Schemes()
	for i, reply := range []string{"HTTP/1.1 200 OK\r\n\r\n", "\x00\x5a\x00\x00\x00\x00\x00\x00", "\x05\x02\x01\x00\x05\x00\x00\x03\x02ab\x00\x50"} {
		f.Add(byte(i), true, []byte(reply))
		f.Add(byte(i+1), false, []byte(reply))
	}
	f.Fuzz(func(t *testing.T, which byte, withUser bool, reply []byte) {
		scheme := schemes[int(which)%len(schemes)]
		endpoint := free
		if withUser {
			endpoint = locked
		}
		to := byName()
		if protocols[scheme].needsIPv4 {
			to = byAddr("192.0.2.1")
		}
		_, left, err := shake(t, scheme, endpoint, to, string(reply))
		if err == nil && !protocols[scheme].forwards && len(reply)-len(left) > 2+2+4+1+255+2 {
			t.Fatalf("took %d bytes for a handshake", len(reply)-len(left))
		}
		if err == nil {
			// The same reply and nothing else must do as well: nothing behind it was needed.
			if _, _, err := shake(t, scheme, endpoint, to, string(reply[:len(reply)-len(left)])); err != nil {
				t.Fatalf("needs more than it takes: %v", err)
			}
			return
		}
		if o := classify(err, StageHandshake, noTLS); o.Class() != ClassProxy || errors.Is(err, io.ErrNoProgress) {
			t.Fatalf("%v: outcome %s", err, o)
		}
	})
}
