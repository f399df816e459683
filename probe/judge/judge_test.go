package judge

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

const nonce = "00112233445566778899aabbccddeeff"

func TestAnswer(t *testing.T) {
	var h Handler
	r := httptest.NewRequest(http.MethodGet, "/any/path?x=y&nonce="+nonce, nil)
	r.RemoteAddr = "[::ffff:203.0.113.9]:4711"
	r.Header = http.Header{"Via": {"1.1 a", "1.1 <b>"}, "Accept": {"*/*"}}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got Answer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := Answer{1, nonce, "203.0.113.9", map[string][]string{"Via": {"1.1 a", "1.1 <b>"}, "Accept": {"*/*"}}}
	if w.Code != 200 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d %+v", w.Code, got)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if h.Hits() != 1 {
		t.Errorf("%d hits", h.Hits())
	}
}

// TestRefusals: nothing that is refused is repeated to the asker, and all of it
// counts as a hit.
func TestRefusals(t *testing.T) {
	const good = "/?nonce=" + nonce
	big := httptest.NewRequest(http.MethodGet, good, nil)
	big.Header.Set("X-Big", strings.Repeat("b", MaxHeaderBytes))
	tests := []struct {
		name string
		r    *http.Request
		want int
	}{
		{"no nonce", httptest.NewRequest(http.MethodGet, "/", nil), http.StatusBadRequest},
		{"short nonce", httptest.NewRequest(http.MethodGet, "/?nonce=0011", nil), http.StatusBadRequest},
		{"long nonce", httptest.NewRequest(http.MethodGet, good+nonce+"0", nil), http.StatusBadRequest},
		{"no hexadecimal", httptest.NewRequest(http.MethodGet, "/?nonce=%3Cscript%3E0123456789", nil), http.StatusBadRequest},
		{"method", httptest.NewRequest(http.MethodPost, good, nil), http.StatusMethodNotAllowed},
		{"body", httptest.NewRequest(http.MethodGet, good, strings.NewReader("x")), http.StatusRequestEntityTooLarge},
		{"headers", big, http.StatusRequestHeaderFieldsTooLarge},
	}
	var h Handler
	for _, test := range tests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, test.r)
		if w.Code != test.want || !strings.HasPrefix(w.Body.String(), "this is an evenpool judge: ") || w.Body.Len() > 120 {
			t.Errorf("%s: got %d %q", test.name, w.Code, w.Body)
		}
	}
	if h.Hits() != int64(len(tests)) {
		t.Errorf("%d hits of %d", h.Hits(), len(tests))
	}
}

// TestSelfSigned: it verifies for its names and for no other, with itself as the
// authority.
func TestSelfSigned(t *testing.T) {
	cert, text, err := SelfSigned("judge.example.org", "203.0.113.9", "2001:db8::1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) || strings.Contains(string(text), "KEY") {
		t.Fatalf("PEM: %s", text)
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for host, good := range map[string]bool{"judge.example.org": true, "203.0.113.9": true, "[2001:db8::1]": true, "other.example.org": false, "203.0.113.10": false} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); (err == nil) != good {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, _, err := SelfSigned(); err == nil {
		t.Error("a certificate for nobody")
	}
}
