package proxyurl

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
		why  Reason
	}{
		{text: "http://1.2.3.4:80", want: "http://1.2.3.4:80"},
		{text: "HTTP://1.2.3.4:80", want: "http://1.2.3.4:80"},
		{text: "https://1.2.3.4:443", want: "https://1.2.3.4:443"},
		{text: "socks4://1.2.3.4:1080", want: "socks4://1.2.3.4:1080"},
		{text: "socks4a://1.2.3.4:1080", want: "socks4a://1.2.3.4:1080"},
		{text: "socks5://joe:x@[2606:4700::1]:1080/", want: "socks5://joe:x@[2606:4700::1]:1080"},
		{text: "socks5h://1.2.3.4:1080", want: "socks5://1.2.3.4:1080"},
		{text: "soc\u212as5://1.2.3.4:1080", why: ReasonScheme}, // KELVIN SIGN
		{text: "socks://1.2.3.4:1080", why: ReasonScheme},
		{text: "vmess://abc", why: ReasonScheme},
		{text: "://1.2.3.4:80", why: ReasonScheme},
		{text: " http://1.2.3.4:80", why: ReasonScheme},
		{text: "1.2.3.4:80", why: ReasonUnparseable},
		{text: "http:1.2.3.4:80", why: ReasonUnparseable},
		{text: "http://1.2.3.4", why: ReasonUnparseable},
		{text: "http://1.2.3.4:80//", why: ReasonPort},
		{text: "http://1.2.3.4:80/path", why: ReasonPort},
		{text: "http://1.2.3.4:80?q", why: ReasonPort},
		{text: "http://1.2.3.4:80#f", why: ReasonPort},
		{text: "http://http://1.2.3.4:80", why: ReasonUnparseable},
		{text: "http://1.1.1.1/@1.2.3.4:80", why: ReasonUser},
	} {
		got, err := ParseURL(c.text)
		var refused *ParseError
		switch {
		case c.why == "" && (err != nil || got.String() != c.want):
			t.Errorf("ParseURL(%q) = %q, %v, want %q", c.text, got, err, c.want)
		case c.why != "" && (!errors.As(err, &refused) || refused.Reason != c.why || !got.IsZero()):
			t.Errorf("ParseURL(%q) = %q, %v, want %q", c.text, got, err, c.why)
		}
	}
}

func TestURLRedacted(t *testing.T) {
	u, err := ParseURL("socks5://joe:hunter2@1.2.3.4:1080")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := u.Redacted(), "socks5://joe:***@1.2.3.4:1080"; got != want {
		t.Errorf("Redacted() = %q, want %q", got, want)
	}
	if (URL{}).String() != "" || (URL{}).Redacted() != "" {
		t.Errorf("the zero URL's texts: %q, %q, want them empty", URL{}, (URL{}).Redacted())
	}
}

func TestTextOfURLsAndEndpointsGoesThroughJSON(t *testing.T) {
	type both struct {
		U    URL
		E    Endpoint
		None URL
		Nil  Endpoint
	}
	u, err := ParseURL("socks5://joe:p%40ss@1.2.3.4:1080")
	if err != nil {
		t.Fatal(err)
	}
	in := both{U: u, E: u.Endpoint}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"U":"socks5://joe:p%40ss@1.2.3.4:1080","E":"joe:p%40ss@1.2.3.4:1080","None":"","Nil":""}`
	if string(data) != want {
		t.Errorf("got %s, want %s", data, want)
	}
	var out both
	if err := json.Unmarshal(data, &out); err != nil || out != in {
		t.Errorf("read back %+v, %v, want %+v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"U":"1.2.3.4:1080"}`), &out); err == nil {
		t.Error("a URL without a scheme was read")
	}
}

func TestSchemesParseToThemselves(t *testing.T) {
	for _, s := range Schemes() {
		if got, err := ParseScheme(string(s)); err != nil || got != s {
			t.Errorf("ParseScheme(%q) = %q, %v", s, got, err)
		}
	}
}
