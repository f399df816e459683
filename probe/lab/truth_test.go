package lab_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"testing"
	"time"

	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// TestTruth asks the prober: what it finds is what the lab says, proxy by proxy.
func TestTruth(t *testing.T) {
	plain := httptest.NewServer(new(judge.Handler))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(new(judge.Handler))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	loopback := proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8")}
	mine := probe.Judge{Name: "mine", HTTP: parse(t, plain.URL), HTTPS: parse(t, secure.URL), Allow: loopback, RootCAs: roots}
	asks, missing := probe.Asks([]probe.Judge{mine}, []probe.Capability{probe.HTTP, probe.TLS}, nil)
	if len(missing) > 0 {
		t.Fatal(missing)
	}
	rules := probe.Rules{
		Schemes: []proxyurl.Scheme{proxyurl.HTTP, proxyurl.SOCKS4, proxyurl.SOCKS4A, proxyurl.SOCKS5},
		Require: []probe.Capability{probe.HTTP, probe.TLS},
	}
	prober := probe.New(probe.Options{Timeout: 2 * time.Second})

	l, err := lab.Start(t.Context(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for _, p := range l.Proxies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			order := rules.TryOrder(probe.Record{Schemes: []proxyurl.Scheme{p.Claimed}})
			round := prober.Round(t.Context(), p.URL.Endpoint, order, loopback, asks)
			last := round[len(round)-1]
			if string(last.Outcome) != p.Truth.Outcome {
				t.Errorf("outcome %s (%s), want %s", last.Outcome, last.Last().Detail, p.Truth.Outcome)
			}
			verdict := rules.Judge(round, nil)
			if got := verdict.State == probe.Pass; got != p.Truth.Eligible {
				t.Errorf("verdict %s, want eligible %v: %v", verdict.State, p.Truth.Eligible, verdict.Reasons)
			}
			if p.Truth.Eligible && verdict.URL != p.URL {
				t.Errorf("member %s, want %s", verdict.URL, p.URL)
			}
		})
	}
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
