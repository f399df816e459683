package proxyurl

import (
	"strings"
	"testing"
)

// Wherever a text is cut, no part of a secret longer than a byte is left of it.
func TestHide(t *testing.T) {
	e, err := NewEndpoint("203.0.113.7", 80, "joe", "swordfish")
	if err != nil {
		t.Fatal(err)
	}
	secrets := e.secrets()
	text := "begin " + secrets[0] + " and " + secrets[1] + " end"
	for cut := range len(text) {
		got := e.Hide(text[:cut], true)
		for _, secret := range secrets {
			if strings.Contains(got, secret[:2]) {
				t.Errorf("%q is hidden as %q", text[:cut], got)
			}
		}
	}
	for text, want := range map[string]string{
		`{"Proxy-Authorization":["Basic am9l\/x=="],"Accept":["*/*"]}`: `{"Proxy-Authorization":["Basic ***"],"Accept":["*/*"]}`,
		"HTTP_PROXY_AUTHORIZATION = Basic am9lOng=\nHTTP_ACCEPT = a":   "HTTP_PROXY_AUTHORIZATION = Basic ***\nHTTP_ACCEPT = a",
		"proxy-authorization: Digest username=joe\r\nAccept: a":        "proxy-authorization: Digest ***\r\nAccept: a",
		"swordfish, swordfis": "***, swordfis",
	} {
		if got := e.Hide(text, false); got != want {
			t.Errorf("%q is hidden as %q, want %q", text, got, want)
		}
	}
}
