package judge

import (
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

const nonce = "00112233445566778899aabbccddeeff"

// ask asks a judge and returns its answer.
func ask(t *testing.T, h *Handler, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = "[::ffff:203.0.113.9]:4711"
	r.Header = header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAnswer(t *testing.T) {
	var h Handler
	before := time.Now().UnixMilli()
	w := ask(t, &h, "http://judge.example.org:81/any/path?x=y&nonce="+nonce, http.Header{"Via": {"1.1 a", "1.1 <b>"}, "Accept": {"*/*"}})
	var got Answer
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if now := time.Now().UnixMilli(); got.TimeMS < before || got.TimeMS > now {
		t.Errorf("time %d, want between %d and %d", got.TimeMS, before, now)
	}
	want := Answer{2, nonce, "203.0.113.9", "judge.example.org:81", map[string][]string{"Via": {"1.1 a", "1.1 <b>"}, "Accept": {"*/*"}}, got.TimeMS, ""}
	if w.Code != 200 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %d %+v", w.Code, got)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if h.Hits() != 1 || h.DirectHits() != 0 {
		t.Errorf("%d hits, %d of them direct", h.Hits(), h.DirectHits())
	}
}

// TestPaths: what is asked for with a path, below any prefix.
func TestPaths(t *testing.T) {
	const html = "text/html; charset=utf-8"
	for _, test := range []struct {
		target, contentType, body string
		code                      int
	}{
		{"/page", html, KnownPage, 200},
		{"/some/prefix/page?nonce=" + nonce, html, KnownPage, 200},
		{"/204", "", "", 204},
		{"/some/prefix/204", "", "", 204},
		{"/prefix/?nonce=" + nonce + "&form=page", html, PageBefore + `{"evenpool_judge":2,"nonce":"` + nonce, 200},
		{"/prefix?nonce=" + nonce, "application/json", `{"evenpool_judge":2,"nonce":"` + nonce, 200},
	} {
		w := ask(t, new(Handler), test.target, nil)
		if w.Code != test.code || w.Header().Get("Content-Type") != test.contentType || !strings.HasPrefix(w.Body.String(), test.body) {
			t.Errorf("%s: %d %q %q", test.target, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}

// TestP6_DirectHitsAreCountedApart: a probe that goes around its proxy shows.
func TestP6_DirectHitsAreCountedApart(t *testing.T) {
	h := Handler{Direct: []netip.Prefix{netip.MustParsePrefix("203.0.113.9/32"), netip.MustParsePrefix("2001:db8::/64")}}
	for _, from := range []string{"203.0.113.9:1", "203.0.113.10:1", "[::ffff:203.0.113.9]:1", "[2001:db8::7]:1", "[2001:db8:1::7]:1", "@"} {
		r := httptest.NewRequest(http.MethodGet, "/elsewhere", nil)
		r.RemoteAddr = from
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if h.Hits() != 6 || h.DirectHits() != 3 {
		t.Errorf("%d hits, %d of them direct; want 6 and 3", h.Hits(), h.DirectHits())
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
		{"no nonce, below a prefix", httptest.NewRequest(http.MethodGet, "/prefix/", nil), http.StatusBadRequest},
		{"empty nonce", httptest.NewRequest(http.MethodGet, "/x?nonce=", nil), http.StatusBadRequest},
		{"another path", httptest.NewRequest(http.MethodGet, "/robots.txt", nil), http.StatusNotFound},
		{"another form", httptest.NewRequest(http.MethodGet, good+"&form=xml", nil), http.StatusBadRequest},
		{"a method for the page", httptest.NewRequest(http.MethodDelete, "/page", nil), http.StatusMethodNotAllowed},
		{"host", httptest.NewRequest(http.MethodGet, "http://"+strings.Repeat("h", MaxHeaderBytes+1)+good, nil), http.StatusRequestHeaderFieldsTooLarge},
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
