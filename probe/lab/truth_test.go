package lab_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"evenpool/probe"
	"evenpool/probe/judge"
	"evenpool/probe/lab"
	"evenpool/sources/proxyurl"
)

// loopback is opened for judges and proxies; ::1 for the few with IPv6.
var loopback = proxyurl.Allow{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// TestTruthP6 asks the prober: what it finds is what the lab says, proxy by proxy;
// and none of its questions goes around a proxy.
func TestTruthP6(t *testing.T) {
	key := judge.Key(judge.NewKeyText())
	handler := judge.Handler{Key: key, Direct: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	// The second one is at another address, and not known to proxies that work
	// for one judge only.
	judges := []probe.Judge{
		serveJudge(t, &handler, "localhost", "127.0.0.1", "[::1]"),
		serveJudge(t, &handler, "127.0.0.2", "127.0.0.2"),
	}
	rules := probe.Rules{Schemes: probe.Schemes(), Require: []probe.Capability{probe.HTTP, probe.TLS}}
	population, err := lab.Mix("each", 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Start(t.Context(), lab.Options{Population: population})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(l.CA())
	prober := probe.New(probe.Options{Timeout: 2 * time.Second, ProxyRootCAs: authority, Resolver: twofold{}})
	var seen probe.Seen
	for i := range judges {
		judges[i].Key = key
		check, saw := prober.Control(t.Context(), judges[i], probe.HTTP)
		if check.Outcome != probe.OK {
			t.Fatalf("control: %+v", check)
		}
		seen.Add(saw)
	}
	controls := handler.DirectHits()
	options := probe.PlanOptions{Judges: judges, Require: rules.Require, Seen: seen}
	both, missing, err := probe.NewPlan(options)
	if err != nil || len(missing) > 0 {
		t.Fatal(err, missing)
	}
	options.Judges = judges[:1] // the other one has an address for a name
	byName, _, err := probe.NewPlan(options)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range l.Left() {
		t.Logf("not tried: %s", left)
	}
	try := func(p lab.Proxy) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			order := rules.TryOrder(probe.Record{Schemes: []proxyurl.Scheme{p.Claimed}})
			plan := both
			if slices.Contains(p.Truth.Needs, lab.NeedName) {
				plan = byName
			}
			round := prober.Round(t.Context(), plan, probe.Job{Endpoint: p.URL.Endpoint, Schemes: order, Allow: loopback})
			wrong := differences(p, round, rules.Judge(probe.Record{}, probe.Round{Results: round}, nil))
			for _, w := range wrong {
				t.Error(w)
			}
		}
	}
	t.Run("of", func(t *testing.T) {
		for _, p := range l.Proxies() {
			t.Run(p.Name, try(p))
		}
	})
	// P6: no probe went around its proxy. Proxies have exits of their own.
	if n := handler.DirectHits() - controls; n > 0 {
		t.Errorf("%d of %d questions came without a proxy", n, handler.Hits())
	}
	control, _ := prober.Control(t.Context(), judges[1], probe.HTTP)
	if control.Outcome != probe.OK || handler.DirectHits() != controls+1 {
		t.Errorf("a question without a proxy: %s, and %d are counted", control.Outcome, handler.DirectHits())
	}
}

// twofold is a resolver whose every name has the addresses of this host.
type twofold struct{}

func (twofold) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, nil
}

// differences compares a round with the truth.
func differences(p lab.Proxy, round []probe.Result, verdict probe.RoundVerdict) (wrong []string) {
	differs := func(what string, got, want any) {
		if got != want {
			wrong = append(wrong, fmt.Sprintf("%s %v, want %v", what, got, want))
		}
	}
	if len(round) == 0 {
		return []string{"nothing was tried"}
	}
	result := round[len(round)-1]
	for _, r := range round {
		if r.Outcome == probe.OK { // one scheme that passes is enough
			result = r
		}
	}
	last := result.Last()
	differs("outcome", string(result.Outcome), p.Truth.Outcome)
	differs("class", string(result.Outcome.Class()), p.Truth.Class)
	differs("stage", string(last.Stage), p.Truth.Stage)
	rule := ""
	for _, reason := range verdict.Reasons {
		if reason.State == probe.Fail {
			rule = reason.Rule
		}
	}
	if p.Truth.Eligible {
		differs("verdict", verdict.State, probe.Pass)
		differs("member", verdict.URL, p.URL)
	} else {
		differs("verdict", verdict.State, probe.Fail)
		differs("rule", rule, p.Truth.Rule)
	}
	differs("anonymity", string(result.Anonymity), p.Truth.Anonymity)
	differs("verified", result.Verified, p.Truth.Anonymity != "")
	differs("capabilities", result.Found.String(), strings.Join(p.Truth.Capabilities, " "))
	if result.Exit.IsValid() && !slices.Contains(p.Exits, result.Exit) {
		wrong = append(wrong, fmt.Sprintf("exit %v, want one of %v", result.Exit, p.Exits))
	}
	if len(wrong) > 0 {
		wrong = append(wrong, fmt.Sprintf("(%s)", last.Detail))
	}
	return wrong
}

// serveJudge serves a judge under a name, on http and https, at each of the
// addresses; one that this machine has not is left out, but for the first.
func serveJudge(t *testing.T, h *judge.Handler, name string, at ...string) probe.Judge {
	t.Helper()
	cert, pem, err := judge.SelfSigned(name)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	j := probe.Judge{Name: name, Allow: loopback, RootCAs: roots}
	for _, scheme := range []string{"http", "https"} {
		port := "0"
		for i, addr := range at {
			ln, err := net.Listen("tcp", addr+":"+port)
			if err != nil && i > 0 {
				t.Logf("no judge on %s: %v", addr, err)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			_, port, _ = net.SplitHostPort(ln.Addr().String())
			if scheme == "https" {
				ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			server := judge.NewServer(h)
			go server.Serve(ln) // ends with Close
			t.Cleanup(func() { server.Close() })
		}
		u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: "/"}
		if scheme == "http" {
			j.HTTP = u
		} else {
			j.HTTPS = u
		}
	}
	return j
}
