package lab

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestControl(t *testing.T) {
	l := start(t, Options{Population: []Spec{{"flaky", 1}, {"socks5-password", 1}, {"refuses", 1}}})
	do := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		l.Handler().ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	rows := func() (rows []Row) {
		code, body := do("GET", "/")
		if err := json.Unmarshal([]byte(body), &rows); code != 200 || err != nil {
			t.Fatalf("GET /: %d, %v", code, err)
		}
		return rows
	}

	if code, body := do("GET", "/list"); code != 200 || body != l.ListText() {
		t.Errorf("GET /list: %d %q", code, body)
	}
	if _, body := do("GET", "/"); strings.Contains(body, "s3cret") || strings.Contains(body, "null") {
		t.Errorf("GET / shows a password, or null for no capabilities:\n%s", body)
	}
	if r := rows(); len(r) != 3 || r[0].Name != "flaky" || !r[0].Eligible || r[0].Failing || r[2].Outcome != "refused" || r[2].Eligible {
		t.Errorf("rows %+v", r)
	}
	for _, test := range []struct {
		method, path string
		code         int
		failing      bool
	}{
		{"POST", "/proxies/flaky/fail", 204, true},
		{"POST", "/proxies/flaky/fail", 204, true},
		{"GET", "/proxies/flaky/recover", http.StatusMethodNotAllowed, true},
		{"POST", "/proxies/nobody/recover", 404, true},
		{"POST", "/proxies/flaky/recover", 204, false},
		{"GET", "/elsewhere", 404, false},
	} {
		if code, body := do(test.method, test.path); code != test.code {
			t.Errorf("%s %s: %d %q, want %d", test.method, test.path, code, body, test.code)
		}
		if got := rows()[0].Failing; got != test.failing {
			t.Errorf("after %s %s: failing %v, want %v", test.method, test.path, got, test.failing)
		}
	}
}
