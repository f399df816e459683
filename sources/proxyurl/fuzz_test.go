package proxyurl

import (
	"net/netip"
	"strings"
	"testing"
)

// Whatever is accepted has one canonical text, and reading that text changes
// nothing: two members for one proxy would double its share.
func FuzzL2_CanonicalTextIsAFixedPoint(f *testing.F) {
	for _, s := range []string{
		"http://1.2.3.4:80", "socks5h://joe:p%40ss@[::ffff:1.2.3.4]:1080/", "1.2.3.4:80", "[2606:4700::1]:80",
		"Proxy.EXAMPLE.org.:3128", "joe:a:b@c@1.2.3.4:80", "joe:%C3%BC%ff@proxy.example.org:80", "01.2.3.4:80",
		"x:y@z:w@1.2.3.4:5", "\u212ax.org:1", "[fe80::1%25x]:80",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := ParseEndpoint(text); err == nil {
			checkEndpoint(t, e)
		} else if _, ok := err.(*ParseError); !ok {
			t.Errorf("ParseEndpoint(%q): %T, want a *ParseError", text, err)
		}
		u, err := ParseURL(text)
		if err != nil {
			if _, ok := err.(*ParseError); !ok {
				t.Errorf("ParseURL(%q): %T, want a *ParseError", text, err)
			}
			return
		}
		checkEndpoint(t, u.Endpoint)
		again, err := ParseURL(u.String())
		if err != nil || again != u || again.String() != u.String() {
			t.Errorf("ParseURL(%q) = %v, %v, want %v", u.String(), again, err, u)
		}
	})
}

func checkEndpoint(t *testing.T, e Endpoint) {
	t.Helper()
	text := e.String()
	again, err := ParseEndpoint(text)
	if err != nil || again != e || again.String() != text {
		t.Errorf("ParseEndpoint(%q) = %v, %v, want the same", text, again, err)
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			t.Errorf("%q holds a byte outside printable ASCII", text)
			break
		}
	}
	built, err := NewEndpoint(e.Host(), e.Port(), e.User(), e.Password())
	if err != nil || built != e {
		t.Errorf("NewEndpoint of the parts of %q = %v, %v", text, built, err)
	}
	if addr, ok := e.Addr(); ok && (addr.Zone() != "" || addr.Is4In6()) {
		t.Errorf("%q has the address %v", text, addr)
	}
	if _, err := netip.ParseAddr(e.Host()); (err == nil) != func() bool { _, ok := e.Addr(); return ok }() {
		t.Errorf("%q: a name that is an address", text)
	}
	if e.HasUser() && len(e.Password()) > 3 && strings.Contains(strings.TrimSuffix(e.Redacted(), e.HostPort()), ":"+encode(e.Password())+"@") {
		t.Errorf("Redacted() = %q", e.Redacted())
	}
}

// The quick way of reading the usual form says what the way for every form says,
// and nothing where that says anything else.
func FuzzL2_DottedIsAsTheLongWay(f *testing.F) {
	for _, s := range []string{
		"1.2.3.4:80", "255.255.255.255:65535", "0.0.0.0:1", "1.2.3.4:65536", "1.2.3.4:0", "1.2.3.4:080", "1.2.3.4:", "1.2.3.4",
		"01.2.3.4:80", "1.2.3.00:80", "256.2.3.4:80", "1.2.3:80", "1.2.3.4.5:80", "1.2.3.4:80:90", "1:2.3.4.5", "1..3.4:80", ".1.2.3.4:80",
		"1.2.3.4294967300:80", "1.2.3.4:4294967376", "1.2.3.4:99999", " 1.2.3.4:80", "1.2.3.4:80\n", "joe:x@1.2.3.4:80", "[1.2.3.4]:80",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		long, err := parseEndpoint(text)
		longAddr, _ := long.Addr()
		dotted := err == nil && longAddr.Is4() && long.String() == text && !long.HasUser()
		addr, port, ok := DottedPort(text)
		if _, _, bytes := DottedPort([]byte(text)); ok != dotted || bytes != ok {
			t.Fatalf("%q: %t, %t as bytes; the long way says %v, %v", text, ok, bytes, long, err)
		}
		if quick := DottedEndpoint(addr, port); ok && quick != long {
			t.Errorf("%q: %v, the long way says %v", text, quick, long)
		}
		if quick, quickErr := ParseEndpoint(text); quick != long || (quickErr == nil) != (err == nil) {
			t.Errorf("ParseEndpoint(%q): %v, %v; the long way says %v, %v", text, quick, quickErr, long, err)
		}
	})
}
