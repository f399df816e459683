package sources

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What a source sends for its own list is for the list's host alone.
func TestR13_HeadersStayWithTheirHost(t *testing.T) {
	type hit struct{ where, key, auth, agent, host string }
	var hits []hit
	record := func(where string, then http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if referer := r.Header.Get("Referer"); referer != "" {
				t.Errorf("%s: Referer: %s", where, referer)
			}
			hits = append(hits, hit{where, r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("User-Agent"), r.Host})
			then.ServeHTTP(w, r)
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	at := func(host, path string) string { return "http://" + host + ":" + port + path }
	mux := http.NewServeMux()
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: mux}}
	server.Start()
	t.Cleanup(server.Close)
	elsewhere := serve(t, record("another port", http.HandlerFunc(good)))
	for path, to := range map[string]string{
		"/same":      "/list",
		"/case":      at("LIST.example.org", "/list"),
		"/sub":       at("sub.list.example.org", "/list"), // net/http would send them along
		"/other":     at("other.example.net", "/list"),
		"/port":      strings.Replace(elsewhere, "127.0.0.1", "list.example.org", 1),
		"/there":     at("other.example.net", "/back"),
		"/back":      at("list.example.org", "/list"),
		"/withuser":  at("joe:pw@other.example.net", "/list"),
		"/samequery": "/list?key=2",
	} {
		mux.Handle(path, record("", http.RedirectHandler(to, http.StatusFound)))
	}
	mux.Handle("/list", record("", http.HandlerFunc(good)))

	for _, c := range []struct {
		path string
		sent []bool // whether the key came along to each request
	}{
		{"/list", []bool{true}},
		{"/same", []bool{true, true}},
		{"/samequery", []bool{true, true}},
		{"/case", []bool{true, true}},
		{"/sub", []bool{true, false}},
		{"/other", []bool{true, false}},
		{"/port", []bool{true, false}},
		{"/there", []bool{true, false, false}}, // there and back again
	} {
		hits = nil
		src := source(at("list.example.org", c.path))
		src.Headers = map[string]string{"x-api-key": "hunter2", "Authorization": "Bearer hunter3"}
		src.UserAgent = "evenpool for me"
		if _, err := NewFetcher(Options{Resolver: loopback{}}).Fetch(t.Context(), src); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		if len(hits) != len(c.sent) {
			t.Errorf("%s: %d requests, want %d", c.path, len(hits), len(c.sent))
			continue
		}
		for i, h := range hits {
			if got := h.key == "hunter2" && h.auth == "Bearer hunter3"; got != c.sent[i] || !got && h.key+h.auth != "" {
				t.Errorf("%s: request %d has the key %q and %q, want them sent: %t", c.path, i, h.key, h.auth, c.sent[i])
			}
			if h.agent != "evenpool for me" {
				t.Errorf("%s: request %d is of %s", c.path, i, h.agent)
			}
		}
	}

	// A header may take the place of one of ours, and the host's.
	hits = nil
	src := source(at("list.example.org", "/list"))
	src.Headers = map[string]string{"Host": "virtual.example.org", "User-Agent": "mine"}
	if _, err := NewFetcher(Options{Resolver: loopback{}}).Fetch(t.Context(), src); err != nil || hits[0].host != "virtual.example.org" || hits[0].agent != "mine" {
		t.Errorf("%v, %v", hits, err)
	}
	// One that is none is an error that does not show it.
	src.Headers = map[string]string{"X-Key": "hunter2\r\nX: y"}
	if _, err := NewFetcher(Options{Resolver: loopback{}}).Fetch(t.Context(), src); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
	// A URL's own user is its host's, too.
	hits = nil
	src = source(at("joe:pw@list.example.org", "/other"))
	if _, err := NewFetcher(Options{Resolver: loopback{}}).Fetch(t.Context(), src); err != nil || hits[0].auth == "" || hits[1].auth != "" {
		t.Errorf("%v, %v", hits, err)
	}
}

// From http to https is the same host: sites do so.
func TestHeadersGoAlongToTheSameHostsTLS(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"http://list.example.org/", "https://list.example.org/", true},
		{"http://list.example.org:80/", "https://list.example.org/x", true},
		{"http://list.example.org/", "https://list.example.org:443/x", true},
		{"http://list.example.org/", "https://LIST.example.org/x", true},
		{"http://list.example.org/", "http://list.example.org:443/", false},
		{"https://list.example.org:80/", "https://list.example.org/", false},
		{"http://list.example.org:8080/", "https://list.example.org:8080/", true},
		{"http://list.example.org:8080/", "https://list.example.org/", false},
		{"http://list.example.org/", "http://list.example.org.evil.net/", false},
		{"http://[2001:4860::1]/", "https://[2001:4860::1]:443/", true},
	} {
		if got := sameHost(mustURL(t, c.a), mustURL(t, c.b)); got != c.want {
			t.Errorf("%s and %s: %t, want %t", c.a, c.b, got, c.want)
		}
	}
}
