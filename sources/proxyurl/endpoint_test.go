package proxyurl

import (
	"errors"
	"strings"
	"testing"
)

// TestL2_OneMeaningPerAddress holds the one right outcome for each way in which
// an address can be written: a canonical text, or the reason of its refusal.
func TestL2_OneMeaningPerAddress(t *testing.T) {
	long := strings.Repeat("a", 255)
	for _, c := range []struct {
		text string
		want string // canonical
		why  Reason
	}{
		// IPv4
		{text: "1.2.3.4:80", want: "1.2.3.4:80"},
		{text: "255.255.255.255:65535", want: "255.255.255.255:65535"},
		{text: "01.2.3.4:80", why: ReasonLeadingZero},
		{text: "1.2.3.04:80", why: ReasonLeadingZero},
		{text: "1.2.3.00:80", why: ReasonLeadingZero},
		{text: "001.002.003.004:80", why: ReasonLeadingZero},
		{text: "0.2.3.4:80", want: "0.2.3.4:80"}, // well-formed; whether it may be dialled is asked elsewhere
		{text: "1.2.3.256:80", why: ReasonHost},
		{text: "1.2.3.999:80", why: ReasonHost},
		{text: "01.2.3.999:80", why: ReasonHost},
		{text: "1.2.3:80", why: ReasonHost},
		{text: "127.1:80", why: ReasonHost},
		{text: "1.2.3.4.5:80", why: ReasonHost},
		{text: "1.2.3.4.:80", why: ReasonHost},
		{text: ".1.2.3.4:80", why: ReasonHost},
		{text: "1..3.4:80", why: ReasonHost},
		{text: "2130706433:80", why: ReasonHost},
		{text: "0x7f.0.0.1:80", why: ReasonHost},
		{text: "0x7f000001:80", why: ReasonHost},
		{text: "0177.0.0.1:80", why: ReasonLeadingZero},
		{text: "1.2.3.0x4:80", why: ReasonHost},
		{text: "+1.2.3.4:80", why: ReasonHost},
		{text: "-1.2.3.4:80", why: ReasonHost},
		{text: " 1.2.3.4:80", why: ReasonHost},
		{text: "1.2.3.4 :80", why: ReasonHost},
		{text: "1.2.3.4\x00:80", why: ReasonHost},
		{text: "1.2.3.4/24:80", why: ReasonHost},
		{text: "１.2.3.4:80", why: ReasonHost}, // full-width 1
		{text: "1。2。3。4:80", why: ReasonHost}, // ideographic full stop
		{text: "[1.2.3.4]:80", why: ReasonUnparseable},
		// IPv6
		{text: "[2606:4700::1]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700:0:0:0:0:0:1]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700:0000::0001]:80", want: "[2606:4700::1]:80"},
		{text: "[2606:4700::ABCD]:80", want: "[2606:4700::abcd]:80"},
		{text: "[::ffff:1.2.3.4]:80", want: "1.2.3.4:80"},
		{text: "[::ffff:102:304]:80", want: "1.2.3.4:80"},
		{text: "[0:0:0:0:0:FFFF:1.2.3.4]:80", want: "1.2.3.4:80"},
		{text: "[::ffff:1.2.3.04]:80", why: ReasonHost},
		{text: "[fe80::1%eth0]:80", why: ReasonHost},
		{text: "[fe80::1%25eth0]:80", why: ReasonHost},
		{text: "[::ffff:1.2.3.4%eth0]:80", why: ReasonHost},
		{text: "[2606:4700::1::2]:80", why: ReasonHost},
		{text: "[2606:4700::12345]:80", why: ReasonHost},
		{text: "2606:4700::1:80", why: ReasonUnparseable},
		{text: "[2606:4700::1]", why: ReasonUnparseable},
		{text: "[2606:4700::1]80", why: ReasonUnparseable},
		{text: "[2606:4700::1:80", why: ReasonUnparseable},
		{text: "2606:4700::1]:80", why: ReasonUnparseable},
		{text: "[]:80", why: ReasonUnparseable},
		// names
		{text: "proxy.example.org:80", want: "proxy.example.org:80"},
		{text: "Proxy.EXAMPLE.org:80", want: "proxy.example.org:80"},
		{text: "proxy.example.org.:80", want: "proxy.example.org:80"},
		{text: "proxy.example.org..:80", why: ReasonHost},
		{text: "xn--bcher-kva.example:80", want: "xn--bcher-kva.example:80"},
		{text: "bücher.example:80", why: ReasonHost},
		{text: "\u212aelvin.example:80", why: ReasonHost}, // KELVIN SIGN, which lower-cases to k
		{text: "１２.example:80", why: ReasonHost},
		{text: "localhost:80", why: ReasonHost},
		{text: "a_b.example.org:80", why: ReasonHost},
		{text: "-a.example.org:80", why: ReasonHost},
		{text: "a-.example.org:80", why: ReasonHost},
		{text: "v1.2.3.4:80", why: ReasonHost},
		{text: "1080202.61.204.51:80", why: ReasonHost},
		{text: "[proxy.example.org]:80", why: ReasonUnparseable},
		{text: strings.Repeat("a", 63) + ".example:80", want: strings.Repeat("a", 63) + ".example:80"},
		{text: strings.Repeat("a", 64) + ".example:80", why: ReasonHost},
		{text: strings.Repeat("a.", 124) + "b.org:80", want: strings.Repeat("a.", 124) + "b.org:80"},
		{text: strings.Repeat("a.", 125) + "b.org:80", why: ReasonHost},
		// ports
		{text: "1.2.3.4:1", want: "1.2.3.4:1"},
		{text: "1.2.3.4:0", why: ReasonPort},
		{text: "1.2.3.4:080", why: ReasonPort},
		{text: "1.2.3.4:65536", why: ReasonPort},
		{text: "1.2.3.4:99999999999999999999", why: ReasonPort},
		{text: "1.2.3.4:+80", why: ReasonPort},
		{text: "1.2.3.4:-80", why: ReasonPort},
		{text: "1.2.3.4:8e1", why: ReasonPort},
		{text: "1.2.3.4:0x50", why: ReasonPort},
		{text: "1.2.3.4:8_0", why: ReasonPort},
		{text: "1.2.3.4:80 ", why: ReasonPort},
		{text: "1.2.3.4: 80", why: ReasonPort},
		{text: "1.2.3.4:８０", why: ReasonPort},
		{text: "1.2.3.4:http", why: ReasonPort},
		{text: "1.2.3.4:", why: ReasonPort},
		{text: "1.2.3.4:80/", why: ReasonPort},
		{text: "1.2.3.4", why: ReasonUnparseable},
		{text: ":80", why: ReasonHost},
		{text: "", why: ReasonUnparseable},
		{text: "1.2.3.4:80:90", why: ReasonUnparseable},
		{text: "http://1.2.3.4:80", why: ReasonUnparseable},
		// users
		{text: "joe:secret@1.2.3.4:80", want: "joe:secret@1.2.3.4:80"},
		{text: "joe@1.2.3.4:80", want: "joe:@1.2.3.4:80"},
		{text: "joe:@1.2.3.4:80", want: "joe:@1.2.3.4:80"},
		{text: "JOE:Secret@1.2.3.4:80", want: "JOE:Secret@1.2.3.4:80"},
		{text: "joe:a:b@1.2.3.4:80", want: "joe:a%3Ab@1.2.3.4:80"},
		{text: "joe:p%40ss@1.2.3.4:80", want: "joe:p%40ss@1.2.3.4:80"},
		{text: "joe:p@ss@1.2.3.4:80", want: "joe:p%40ss@1.2.3.4:80"},
		{text: "joe:%73ecret@1.2.3.4:80", want: "joe:secret@1.2.3.4:80"},
		{text: "joe:p%2fss@1.2.3.4:80", want: "joe:p%2Fss@1.2.3.4:80"},
		{text: "joe:%C3%BC@1.2.3.4:80", want: "joe:%C3%BC@1.2.3.4:80"},
		{text: "joe:ü@1.2.3.4:80", want: "joe:%C3%BC@1.2.3.4:80"},
		{text: "joe:a+b@1.2.3.4:80", want: "joe:a%2Bb@1.2.3.4:80"},
		{text: "joe:%@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%zz@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%00@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%0d%0a@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%7f@1.2.3.4:80", why: ReasonUser},
		{text: "joe:\t@1.2.3.4:80", why: ReasonUser},
		{text: "j%3Aoe:x@1.2.3.4:80", why: ReasonUser},
		{text: ":secret@1.2.3.4:80", why: ReasonUser},
		{text: "@1.2.3.4:80", why: ReasonUser},
		{text: ":@1.2.3.4:80", why: ReasonUser},
		{text: long + ":" + long + "@1.2.3.4:80", want: long + ":" + long + "@1.2.3.4:80"},
		{text: long + "a:x@1.2.3.4:80", why: ReasonUser},
		{text: "joe:" + long + "a@1.2.3.4:80", why: ReasonUser},
		// What other readers of URLs take for a host and the beginning of a path,
		// a query or a fragment.
		{text: "1.1.1.1:80/@1.2.3.4:80", why: ReasonUser},
		{text: "1.1.1.1:80?@1.2.3.4:80", why: ReasonUser},
		{text: "1.1.1.1:80#@1.2.3.4:80", why: ReasonUser},
		{text: `1.1.1.1:80\@1.2.3.4:80`, why: ReasonUser},
		{text: "joe:a b@1.2.3.4:80", why: ReasonUser},
		{text: "joe:%20@1.2.3.4:80", want: "joe:%20@1.2.3.4:80"},
	} {
		got, err := ParseEndpoint(c.text)
		var refused *ParseError
		switch {
		case c.why == "" && err != nil:
			t.Errorf("ParseEndpoint(%q): %v, want %q", c.text, err, c.want)
		case c.why == "" && got.String() != c.want:
			t.Errorf("ParseEndpoint(%q) = %q, want %q", c.text, got, c.want)
		case c.why != "" && (!errors.As(err, &refused) || refused.Reason != c.why || !got.IsZero()):
			t.Errorf("ParseEndpoint(%q) = %q, %v, want %q", c.text, got, err, c.why)
		}
	}
}

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
