package sources

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// source is a source at url that may reach the test's own servers.
func source(url string) Source {
	return Source{Name: "web", URL: url, Scheme: proxyurl.HTTP, Allow: allow("127.0.0.0/8")}
}

// serve runs a web server for the length of the test.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// serveTLS runs one that trusted clients verify as example.com.
func serveTLS(t *testing.T, h http.Handler) (port string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port, roots
}

// loopback resolves every name to the test's own servers.
type loopback struct{}

func (loopback) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// failing is a resolver that is out of order.
type failing struct{}

func (failing) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
}

// silent is a resolver that never answers.
type silent struct{}

func (silent) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func good(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, listOf(3)) }

func TestTheRequest(t *testing.T) {
	var got *http.Request
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		good(w, r)
	}))
	src := source("http://list.example.org" + url[strings.LastIndexByte(url, ':'):] + "/all.txt?key=1")
	if _, err := NewFetcher(Options{Resolver: loopback{}}).Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	if got.Method != "GET" || got.RequestURI != "/all.txt?key=1" || !strings.HasPrefix(got.Host, "list.example.org:") {
		t.Errorf("%s %s of %s", got.Method, got.RequestURI, got.Host)
	}
	want := http.Header{"User-Agent": {"evenpool"}, "Accept-Encoding": {"gzip, br, zstd"}, "Connection": {"close"}}
	for name, values := range got.Header {
		if len(values) != 1 || len(want[name]) != 1 || values[0] != want[name][0] {
			t.Errorf("header %s: %q, want %q", name, values, want[name])
		}
	}
	if len(got.Header) != len(want) {
		t.Errorf("headers %v, want %v", got.Header, want)
	}
}

// net/http reads the environment once in a process, so it takes a process of its
// own to show that it is not asked.
func TestTheEnvironmentsProxyIsNotAsked(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheRequest$", "-test.v")
	command.Env = append(os.Environ(), "HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1", "NO_PROXY=", "no_proxy=")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestTheRequest") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestL1_AListsURLIsDialledLikeAnyOtherAddress(t *testing.T) {
	reached := func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }
	url := serve(t, http.HandlerFunc(reached))
	for _, c := range []struct {
		name, url string
		allow     proxyurl.Allow
		addr      string
	}{
		{"loopback", url, nil, "127.0.0.1"},
		{"another prefix", url, allow("127.0.0.2/32"), "127.0.0.1"},
		{"a name", "http://list.example.org" + url[strings.LastIndexByte(url, ':'):], nil, "127.0.0.1"},
		{"a mapped address", strings.Replace(url, "127.0.0.1", "[::ffff:127.0.0.1]", 1), nil, "::ffff:127.0.0.1"},
	} {
		src := source(c.url)
		src.Allow = c.allow
		start := time.Now()
		_, err := NewFetcher(Options{Resolver: loopback{}, RetryWait: time.Minute}).Fetch(t.Context(), src)
		if err == nil || err.Error() != "fetch web: address "+c.addr+" may not be dialled: loopback" {
			t.Errorf("%s: %v", c.name, err)
		}
		if time.Since(start) > 5*time.Second {
			t.Errorf("%s: tried again", c.name)
		}
	}
}

func TestL1_ARedirectIsDialledLikeAnyOtherAddress(t *testing.T) {
	inside := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the inside was reached") }))
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{inside, "http://169.254.169.254/latest/meta-data/", "http://[::1]/", "http://10.0.0.1/"} {
		outside := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.RedirectHandler(target, http.StatusFound)}}
		outside.Start()
		src := source(outside.URL)
		src.Allow = allow("127.0.0.2/32")
		_, err := NewFetcher(Options{}).Fetch(t.Context(), src)
		var forbidden *proxyurl.ForbiddenError
		if !errors.As(err, &forbidden) {
			t.Errorf("a redirect to %s: %v, want a ForbiddenError", target, err)
		}
		outside.Close()
		if l, err = net.Listen("tcp", "127.0.0.2:0"); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
}

func TestL5_Redirects(t *testing.T) {
	mux := http.NewServeMux()
	for path, to := range map[string]string{"/3": "/2", "/2": "/1", "/1": "/0", "/4": "/3", "/loop": "/loop",
		"/file": "file:///etc/passwd", "/ftp": "ftp://127.0.0.1/"} {
		mux.Handle(path, http.RedirectHandler(to, http.StatusFound))
	}
	mux.HandleFunc("/0", func(w http.ResponseWriter, r *http.Request) {
		if referer := r.Header.Get("Referer"); referer != "" {
			t.Errorf("Referer: %s", referer)
		}
		good(w, r)
	})
	url := serve(t, mux)
	for path, want := range map[string]string{
		"/3":    "",
		"/4":    "fetch web: more than 3 redirects",
		"/loop": "fetch web: more than 3 redirects",
		"/file": "fetch web: a redirect to what is neither http nor https",
		"/ftp":  "fetch web: a redirect to what is neither http nor https",
	} {
		l, err := NewFetcher(Options{}).Fetch(t.Context(), source(url+path))
		switch {
		case want == "" && (err != nil || len(l.Candidates) != 3):
			t.Errorf("%s: %d candidates, %v", path, len(l.Candidates), err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestL5_NoRedirectFromHTTPSToHTTP(t *testing.T) {
	plain := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			good(w, r)
			return
		}
		t.Error("the plain server was reached")
	}))
	var port string
	port, roots := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, plain, http.StatusFound)
			return
		}
		good(w, r)
	}))
	f := NewFetcher(Options{RootCAs: roots, Resolver: loopback{}})
	_, err := f.Fetch(t.Context(), source("https://example.com:"+port+"/down"))
	if err == nil || err.Error() != "fetch web: a redirect from https to http" {
		t.Errorf("%v", err)
	}
	// Upwards is fine.
	up := serve(t, http.RedirectHandler("https://example.com:"+port+"/list", http.StatusFound))
	if l, err := f.Fetch(t.Context(), source(up)); err != nil || len(l.Candidates) != 3 {
		t.Errorf("upwards: %d candidates, %v", len(l.Candidates), err)
	}
}

func TestTLSIsVerified(t *testing.T) {
	port, roots := serveTLS(t, http.HandlerFunc(good))
	for _, c := range []struct {
		name, host string
		roots      *x509.CertPool
		want       string
	}{
		{"trusted", "example.com", roots, ""},
		{"an unknown root", "example.com", x509.NewCertPool(), "certificate signed by unknown authority"},
		{"another name", "other.example.org", roots, "certificate is valid for"},
	} {
		l, err := NewFetcher(Options{RootCAs: c.roots, Resolver: loopback{}, RetryWait: time.Hour}).
			Fetch(t.Context(), source("https://"+c.host+":"+port+"/"))
		switch {
		case c.want == "" && (err != nil || len(l.Candidates) != 3):
			t.Errorf("%s: %d candidates, %v", c.name, len(l.Candidates), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestL5_BodiesAreBounded(t *testing.T) {
	limits := Limits{MaxBytes: 10_000}
	for name, h := range map[string]http.HandlerFunc{
		"announced": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "10001") },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, "1.2.3.4:80\n"); err != nil {
					return
				}
			}
		},
		"one endless line": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, "xxxxxxxxxx"); err != nil {
					return
				}
			}
		},
	} {
		_, err := NewFetcher(Options{Limits: limits}).Fetch(t.Context(), source(serve(t, h)))
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v, want ErrTooLarge", name, err)
		}
	}
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X", strings.Repeat("x", 1<<20))
	}))
	if _, err := NewFetcher(Options{}).Fetch(t.Context(), source(url)); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("a megabyte of headers: %v", err)
	}
}

// Errors of net/http repeat the URL, and a list's URL may hold a key.
func TestR13_ErrorsDoNotRepeatTheURL(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody answers there now
	src := source("http://joe:hunter2@" + l.Addr().String() + "/?key=hunter3")
	_, err = NewFetcher(Options{RetryWait: time.Millisecond}).Fetch(t.Context(), src)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v", err)
	}
}

func TestASilentServerCostsTheTimeout(t *testing.T) {
	release := make(chan struct{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "1.2.3.4:80\n")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	start := time.Now()
	_, err := NewFetcher(Options{Timeout: 50 * time.Millisecond}).Fetch(t.Context(), source(url))
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 10*time.Second {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

func TestWhatMayPass(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&net.DNSError{Err: "no such host", IsNotFound: true}, false},
		{&net.DNSError{Err: "server misbehaving", IsTemporary: true}, true},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		{&net.OpError{Op: "dial", Err: &proxyurl.ForbiddenError{}}, false},
		{io.ErrUnexpectedEOF, true},
		{ErrMarkup, false},
		{ErrTooLarge, false},
		{errors.New("something new"), false},
	} {
		if got := mayPass(c.err); got != c.want {
			t.Errorf("mayPass(%v) = %t", c.err, got)
		}
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
