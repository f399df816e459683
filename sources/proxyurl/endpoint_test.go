package proxyurl

import (
	"errors"
	"strings"
	"testing"
	"unsafe"
)

func TestL2_TwoTextsOfOneEndpointAreEqual(t *testing.T) {
	for _, pair := range [][2]string{
		{"1.2.3.4:80", "[::ffff:1.2.3.4]:80"},
		{"[2606:4700::1]:80", "[2606:4700:0:0::1]:80"},
		{"proxy.example.org:80", "PROXY.example.org.:80"},
		{"joe:a%41@1.2.3.4:80", "joe:aA@1.2.3.4:80"},
	} {
		a, errA := ParseEndpoint(pair[0])
		b, errB := ParseEndpoint(pair[1])
		if errA != nil || errB != nil || a != b {
			t.Errorf("%q and %q: %v and %v (%v, %v), want them equal", pair[0], pair[1], a, b, errA, errB)
		}
	}
}

func TestL2_NewEndpointAgreesWithParseEndpoint(t *testing.T) {
	for _, host := range []string{"1.2.3.4", "2606:4700::1", "::ffff:1.2.3.4", "Proxy.example.org."} {
		built, err := NewEndpoint(host, 8080, "joe", "a:b@c/d")
		if err != nil {
			t.Fatalf("NewEndpoint(%q): %v", host, err)
		}
		parsed, err := ParseEndpoint(built.String())
		if err != nil || parsed != built {
			t.Errorf("ParseEndpoint(%q) = %v, %v, want %v", built, parsed, err, built)
		}
	}
	for _, c := range []struct {
		host       string
		port       uint16
		user, pass string
		want       Reason
	}{
		{"[2606:4700::1]", 80, "", "", ReasonHost},
		{"1.2.3.4", 0, "", "", ReasonPort},
		{"1.2.3.4", 80, "", "secret", ReasonUser},
		{"", 80, "", "", ReasonHost},
	} {
		_, err := NewEndpoint(c.host, c.port, c.user, c.pass)
		var refused *ParseError
		if !errors.As(err, &refused) || refused.Reason != c.want {
			t.Errorf("NewEndpoint(%q, %d, %q, %q): %v, want %q", c.host, c.port, c.user, c.pass, err, c.want)
		}
	}
}

func TestEndpointParts(t *testing.T) {
	e, err := ParseEndpoint("joe:s%3Aecret@[2606:4700::1]:8080")
	if err != nil {
		t.Fatal(err)
	}
	if addr, ok := e.Addr(); !ok || addr.String() != "2606:4700::1" {
		t.Errorf("Addr() = %v, %t", addr, ok)
	}
	for _, c := range []struct{ name, got, want string }{
		{"Host", e.Host(), "2606:4700::1"},
		{"HostPort", e.HostPort(), "[2606:4700::1]:8080"},
		{"User", e.User(), "joe"},
		{"Password", e.Password(), "s:ecret"},
		{"Redacted", e.Redacted(), "joe:***@[2606:4700::1]:8080"},
		{"zero String", Endpoint{}.String(), ""},
		{"zero Redacted", Endpoint{}.Redacted(), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s = %q, want %q", c.name, c.got, c.want)
		}
	}
	if !e.HasUser() || e.Port() != 8080 || e.IsZero() || !(Endpoint{}).IsZero() {
		t.Errorf("HasUser %t, Port %d, IsZero %t", e.HasUser(), e.Port(), e.IsZero())
	}
	named, _ := ParseEndpoint("proxy.example.org:80")
	if _, ok := named.Addr(); ok || named.Host() != "proxy.example.org" || named.HasUser() {
		t.Errorf("a name: Addr %t, Host %q, HasUser %t", ok, named.Host(), named.HasUser())
	}
}

// What errors say travels to logs and to `sources check`: whole texts, and never
// a password.
func TestR13_ParseErrorsHideThePassword(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct{ text, want string }{
		{"joe:hunter2@1.2.3.4", `unparseable: "joe:***@1.2.3.4"`},
		{"joe:hunter2@1.2.3.4:0", `bad-port: "0"`},
		{"joe:hunter2@1.2.3.999:80", `bad-host: "1.2.3.999"`},
		{"joe:hunter2%@1.2.3.4:80", `bad-user: "joe:***@1.2.3.4:80"`},
		{"joe:hunter2" + long + "%@1.2.3.4:80", `bad-user: "joe:***@1.2.3.4:80"`},
		{"1.2.3.4:80:joe:hunter2", `unparseable: "1.2.3.4:80:***"`},
		{"1.2.3.4:80:\x1b[31m", `unparseable: "1.2.3.4:80:***"`},
		{"\x1b[31m", `unparseable: "\x1b[31m"`},
	} {
		_, err := ParseEndpoint(c.text)
		if err == nil || err.Error() != c.want {
			t.Errorf("ParseEndpoint(%q): %v, want %s", c.text, err, c.want)
		}
	}
}

// Lists and pools hold hundreds of thousands of endpoints.
func TestEndpointIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Endpoint{}); size > 40 {
		t.Errorf("an endpoint takes %d bytes, want at most 40", size)
	}
}
