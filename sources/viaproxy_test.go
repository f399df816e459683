package sources

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// labProxies runs real proxies, and returns their URLs by name.
func labProxies(t *testing.T, want ...lab.Behaviour) map[lab.Behaviour]string {
	t.Helper()
	var population []lab.Spec
	for _, b := range want {
		population = append(population, lab.Spec{Behaviour: b, Count: 1})
	}
	l, err := lab.Start(t.Context(), lab.Options{Population: population})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	urls := make(map[lab.Behaviour]string)
	for _, p := range l.Proxies() {
		urls[p.Behaviour] = p.URL.String()
	}
	return urls
}

func TestAListThroughAProxy(t *testing.T) {
	const secretUser = "keeper"
	seen := make(map[string]bool)
	list := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user+pass != "" && user+pass != secretUser+"hunter2" {
			t.Errorf("%s:%s is not the list's user", user, pass)
		}
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the proxy's password came along")
		}
		seen[r.Host] = true
		good(w, r)
	})
	plain := strings.TrimPrefix(serve(t, list), "http://127.0.0.1:")
	secure, roots := serveTLS(t, list)
	proxies := labProxies(t, "http", "http-password", "socks5", "socks5-password")
	for name, proxy := range proxies {
		for _, url := range []string{
			"http://127.0.0.1:" + plain,
			"http://localhost:" + plain, // for the proxy to resolve
			"http://keeper:hunter2@localhost:" + plain,
			"https://127.0.0.1:" + secure,
		} {
			src := source(url)
			src.Proxy = proxy
			f := NewFetcher(Options{RootCAs: roots, Resolver: silent{}}) // it is not asked
			l, err := f.Fetch(t.Context(), src)
			if err != nil || len(l.Candidates) != 3 {
				t.Errorf("%s through %s: %d candidates, %v", url, name, len(l.Candidates), err)
			}
		}
	}
	if !seen["localhost:"+plain] || !seen["127.0.0.1:"+secure] {
		t.Errorf("seen %v", seen)
	}
}

// A proxy may be spoken to over TLS, and has a certificate like anybody.
func TestAListThroughAProxyOverTLS(t *testing.T) {
	url := serve(t, http.HandlerFunc(good))
	port, roots := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic am9lOnB3" { // joe:pw
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		io.Copy(w, resp.Body)
	}))
	for user, want := range map[string]string{"joe:pw@": "", "": "fetch web: status 407 (Proxy Authentication Required)"} {
		src := source(url)
		src.Proxy = "https://" + user + "example.com:" + port
		l, err := NewFetcher(Options{RootCAs: roots, Resolver: loopback{}}).Fetch(t.Context(), src)
		switch {
		case want == "" && (err != nil || len(l.Candidates) != 3):
			t.Errorf("%d candidates, %v", len(l.Candidates), err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%v, want %s", err, want)
		}
	}
	src := source(url)
	src.Proxy = "https://joe:pw@example.com:" + port
	start := time.Now()
	_, err := NewFetcher(Options{Resolver: loopback{}, RetryWait: time.Minute}).Fetch(t.Context(), src)
	if err == nil || !strings.Contains(err.Error(), "unknown authority") || time.Since(start) > 5*time.Second {
		t.Errorf("a certificate that nobody knows: %v after %s; want it asked for once", err, time.Since(start))
	}
}

// The source's prefixes are for the list: its proxy is the operator's and may be
// anywhere. What the list's host is, is looked at before the proxy is asked.
func TestL1_AForbiddenAddressIsNotFetchedThroughAProxyEither(t *testing.T) {
	var asked atomic.Int32
	proxy := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		good(w, r)
	}))
	for _, c := range []struct{ url, want string }{
		{"http://list.example.org/", ""},
		{"http://1.2.3.4/", ""},
		{"http://127.0.0.2/", ""}, // the source opens it
		{"http://127.0.0.1/", "address 127.0.0.1 may not be dialled: loopback"},
		{"http://[::1]/", "address ::1 may not be dialled: loopback"},
		{"http://[::ffff:10.0.0.1]/", "address ::ffff:10.0.0.1 may not be dialled: private"},
		{"http://169.254.169.254/latest/meta-data/", "address 169.254.169.254 may not be dialled: link-local"},
		{"https://10.0.0.1/", "address 10.0.0.1 may not be dialled: private"},
		{"http://localhost/", "address 127.0.0.1 may not be dialled: loopback"},
		{"http://a.LocalHost./", "address 127.0.0.1 may not be dialled: loopback"},
		{"http://127.1/", "the host is neither an address nor a name"},
		{"http://2130706433/", "the host is neither an address nor a name"},
		{"http://0x7f000001/", "the host is neither an address nor a name"},
		{"http://127.0.0.1./", "the host is neither an address nor a name"},
		{"http://010.0.0.1/", "the host is neither an address nor a name"},
	} {
		for _, url := range []string{c.url, "http://list.example.org/?to=" + c.url} {
			asked.Store(0)
			src := source(url)
			src.Allow, src.Proxy = allow("127.0.0.2/32"), proxy
			l, err := NewFetcher(Options{}).Fetch(t.Context(), src)
			switch {
			case c.want == "" && (err != nil || len(l.Candidates) != 3):
				t.Errorf("%s: %d candidates, %v", url, len(l.Candidates), err)
			case c.want != "" && (err == nil || err.Error() != "fetch web: "+c.want):
				t.Errorf("%s: %v, want %s", url, err, c.want)
			case c.want != "" && url == c.url && asked.Load() != 0:
				t.Errorf("%s: the proxy was asked", url)
			}
		}
	}
}

func TestR13_AProxysPasswordIsNotShown(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	addr := closed.Addr().String()
	labs := labProxies(t, "http-407", "socks5-wrong-password", "socks5-refuses", "closes", "captive", "garbage", "connect-flood", "mitm")
	target := serve(t, http.HandlerFunc(good))
	secure, roots := serveTLS(t, http.HandlerFunc(good))
	for _, c := range []struct{ name, proxy, want string }{
		{"no URL", "http://joe:hunter2@[::", errProxyURL.Error()},
		{"no scheme", "joe:hunter2@127.0.0.1:80", errProxyURL.Error()},
		{"another scheme", "socks4://joe:hunter2@127.0.0.1:80", errProxyURL.Error()},
		{"no host", "http://joe:hunter2@:80", errProxyURL.Error()},
		{"a path", "http://joe:hunter2@127.0.0.1:80/hunter2", errProxyURL.Error()},
		{"a query", "http://127.0.0.1:80?key=hunter2", errProxyURL.Error()},
		{"nobody there", "http://joe:hunter2@" + addr, "connection refused"},
		{"nobody there, by SOCKS", "socks5://joe:hunter2@" + addr, "connection refused"},
		{"a wrong password", "", "407"},
		{"a wrong password, by SOCKS", strings.Replace(labs["socks5-wrong-password"], "guess", "hunter2", 1), "username/password authentication failed"},
		{"a refusal, by SOCKS", labs["socks5-refuses"], "not allowed"},
		{"hangs up", labs["closes"], ""},
		{"its own page", labs["captive"], ""},
		{"no HTTP", labs["garbage"], ""},
	} {
		if c.proxy == "" {
			c.proxy = strings.Replace(labs["http-407"], "://", "://joe:hunter2@", 1)
		}
		for _, url := range []string{target, "https://example.com:" + secure} {
			src := source(url)
			src.Proxy = c.proxy
			_, err := NewFetcher(Options{RootCAs: roots, RetryWait: time.Millisecond}).Fetch(t.Context(), src)
			if err == nil || strings.Contains(err.Error(), "hunter2") || strings.ContainsAny(err.Error(), "\x1b\r\n") {
				t.Errorf("%s, %s: %v", c.name, url, err)
				continue
			}
			if strings.HasPrefix(url, "https") && c.want == "407" {
				continue // the proxy's own words say it
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v, want %s", c.name, url, err, c.want)
			}
		}
	}
	// A proxy that puts itself between is met by the certificate, one that floods by
	// the bounds on headers.
	for _, name := range []lab.Behaviour{"mitm", "connect-flood"} {
		src := source("https://example.com:" + secure)
		src.Proxy = labs[name]
		start := time.Now()
		_, err := NewFetcher(Options{RootCAs: roots, Timeout: 10 * time.Second, RetryWait: time.Millisecond}).Fetch(t.Context(), src)
		if err == nil || time.Since(start) > 9*time.Second {
			t.Errorf("%s: %v after %s", name, err, time.Since(start))
		}
	}
}

func TestTheProxysDialEndsInTime(t *testing.T) {
	proxy := labProxies(t, "silent")["silent"]
	for _, url := range []string{"http://list.example.org/", "https://list.example.org/"} {
		src := source(url)
		src.Proxy, src.Timeout = proxy, 100*time.Millisecond
		start := time.Now()
		_, err := NewFetcher(Options{}).Fetch(t.Context(), src)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %v after %s", url, err, time.Since(start))
		}
	}
}

func TestL1_AProxyDoesNotOpenAddressesForTheList(t *testing.T) {
	// With a proxy, and without: what is opened for the proxy's dial is not opened
	// for another source's.
	url := serve(t, http.HandlerFunc(good))
	src := source(url)
	src.Proxy = labProxies(t, "http")["http"]
	f := NewFetcher(Options{})
	if _, err := f.Fetch(t.Context(), src); err != nil {
		t.Fatal(err)
	}
	src.Proxy, src.Allow = "", nil
	var forbidden *proxyurl.ForbiddenError
	if _, err := f.Fetch(t.Context(), src); !errors.As(err, &forbidden) {
		t.Errorf("%v", err)
	}
}
