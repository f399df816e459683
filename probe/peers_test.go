package probe

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"evenpool/probe/judge"
	"evenpool/sources/proxyurl"
)

// peer is a real proxy server in one set-up, and what a probe is to find out about
// it from its address alone.
type peer struct {
	name     string
	program  string
	config   string            // with the words of peerAt in it; "" for none
	args     []string          // likewise
	schemes  []proxyurl.Scheme // claimed; nil: any
	password bool              // it wants peerUser and peerPassword
	behind   *peer             // the server that it sends everything on to
	own      bool              // it goes out by the address that we ask from ourselves
	scheme   proxyurl.Scheme   // found
	found    []Capability      // found
	level    Anonymity         // found
}

// Peers with passwords let in this user alone. Tinyproxy takes no other characters.
const (
	peerUser     = "ada"
	peerPassword = "s3cret-20._x"
	peerExit     = "127.0.0.5" // where peers go out, so that they can be told from us
)

// peerPackages are the Debian packages of the programs, which .ci/proxies.sh installs.
var peerPackages = map[string]string{"squid": "squid", "tinyproxy": "tinyproxy", "privoxy": "privoxy", "microsocks": "microsocks", "danted": "dante-server"}

const (
	squidConfig = `http_port 127.0.0.1:PORT
` + squidRest
	squidRest = `tcp_outgoing_address EXIT
pid_filename none
access_log none
cache_log stdio:/dev/stderr
cache deny all
netdb_filename none
pinger_enable off
coredump_dir DIR
visible_hostname peer.example.org
`
	squidOpen = `http_access allow all
`
	squidPassword = `auth_param basic program HELPER DIR/users
auth_param basic children 2 startup=1
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
`
	squidTLS = `https_port 127.0.0.1:PORT tls-cert=DIR/cert.pem tls-key=DIR/key.pem
` + squidRest + squidOpen

	tinyproxyConfig = `Listen 127.0.0.1
Port PORT
Bind EXIT
Timeout 60
`
	privoxyConfig = `listen-address 127.0.0.1:PORT
confdir DIR
logdir DIR
`
	dantedConfig = `logoutput: stderr
internal: 127.0.0.1 port = PORT
external: EXIT
clientmethod: none
socksmethod: METHOD
client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 protocol: tcp }
`
)

// peers is the table. An http proxy resolves names itself, and so do those of SOCKS
// but for version 4.
func peers() []peer {
	var (
		web   = []Capability{HTTP, Connect, TLS, RemoteDNS}
		socks = []Capability{HTTP, TLS, RemoteDNS}

		squid     = []string{"-N", "-f", "DIR/config"}
		tinyproxy = []string{"-d", "-c", "DIR/config"}
		privoxy   = []string{"--no-daemon", "DIR/config"}
		danted    = []string{"-f", "DIR/config", "-p", "DIR/pid"}
		micro     = []string{"-i", "127.0.0.1", "-p", "PORT", "-b", "EXIT"}
		one       = func(s proxyurl.Scheme) []proxyurl.Scheme { return []proxyurl.Scheme{s} }
		dante     = strings.Replace(dantedConfig, "METHOD", "none", 1)
	)
	return []peer{
		{name: "squid as it comes", program: "squid", args: squid, config: squidConfig + squidOpen,
			scheme: proxyurl.HTTP, found: web, level: Transparent},
		{name: "squid, forwarded_for off", program: "squid", args: squid, config: squidConfig + squidOpen + "forwarded_for off\n",
			scheme: proxyurl.HTTP, found: web, level: Anonymous},
		{name: "squid, forwarded_for delete", program: "squid", args: squid, config: squidConfig + squidOpen + "forwarded_for delete\n",
			scheme: proxyurl.HTTP, found: web, level: Anonymous},
		{name: "squid, forwarded_for delete, via off", program: "squid", args: squid, config: squidConfig + squidOpen + "forwarded_for delete\nvia off\n",
			scheme: proxyurl.HTTP, found: web, level: Elite},
		{name: "squid with passwords", program: "squid", args: squid, config: squidConfig + squidPassword, password: true,
			scheme: proxyurl.HTTP, found: web, level: Transparent},
		{name: "squid over TLS", program: "squid", args: squid, config: squidTLS, schemes: one(proxyurl.HTTPS),
			scheme: proxyurl.HTTPS, found: web, level: Transparent},

		{name: "tinyproxy as it comes", program: "tinyproxy", args: tinyproxy, config: tinyproxyConfig,
			scheme: proxyurl.HTTP, found: web, level: Anonymous},
		{name: "tinyproxy, DisableViaHeader", program: "tinyproxy", args: tinyproxy, config: tinyproxyConfig + "DisableViaHeader Yes\n",
			scheme: proxyurl.HTTP, found: web, level: Elite},
		{name: "tinyproxy, XTinyproxy", program: "tinyproxy", args: tinyproxy, config: tinyproxyConfig + "XTinyproxy Yes\n",
			scheme: proxyurl.HTTP, found: web, level: Transparent},
		{name: "tinyproxy with passwords", program: "tinyproxy", args: tinyproxy, config: tinyproxyConfig + "BasicAuth USER PASSWORD\n", password: true,
			scheme: proxyurl.HTTP, found: web, level: Anonymous},

		{name: "privoxy on our own host", program: "privoxy", args: privoxy, config: privoxyConfig, own: true,
			scheme: proxyurl.HTTP, found: web, level: Transparent},
		{name: "privoxy before microsocks", program: "privoxy", args: privoxy, config: privoxyConfig + "forward-socks5 / BEHIND .\n",
			behind: &peer{program: "microsocks", args: micro},
			scheme: proxyurl.HTTP, found: web, level: Elite},

		{name: "microsocks", program: "microsocks", args: micro,
			scheme: proxyurl.SOCKS5, found: socks, level: Elite},
		{name: "microsocks with passwords", program: "microsocks", args: append(slices.Clone(micro), "-u", "USER", "-P", "PASSWORD"), password: true,
			scheme: proxyurl.SOCKS5, found: socks, level: Elite},

		{name: "dante", program: "danted", args: danted, config: dante,
			scheme: proxyurl.SOCKS4, found: []Capability{HTTP, TLS}, level: Elite},
		{name: "dante that a list calls socks4a, which 1.4.2 is not", program: "danted", args: danted, config: dante, schemes: one(proxyurl.SOCKS4A),
			scheme: proxyurl.SOCKS4, found: []Capability{HTTP, TLS}, level: Elite},
		{name: "dante by SOCKS 5", program: "danted", args: danted, config: dante, schemes: one(proxyurl.SOCKS5),
			scheme: proxyurl.SOCKS5, found: socks, level: Elite},
	}
}

// TestRealPeers: a probe finds out about real servers what their operators set up,
// and with a wrong password or none, that it is the password. Dante takes those of
// the host's users alone: it is only shown to refuse.
func TestRealPeers(t *testing.T) {
	w := newPeerWorld(t)
	for _, p := range peers() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			port := w.start(t, p)
			w.wantFound(t, p, w.probe(t, p, port))
			if p.password {
				w.wantDenied(t, p, port)
			}
		})
	}
	t.Run("dante with passwords", func(t *testing.T) {
		t.Parallel()
		p := peer{program: "danted", args: []string{"-f", "DIR/config", "-p", "DIR/pid"}, config: strings.Replace(dantedConfig, "METHOD", "username", 1), scheme: proxyurl.SOCKS5}
		w.wantDenied(t, p, w.start(t, p))
	})
}

// peerWorld is two judges that sign, each over http and https, and a Prober that
// has asked them directly.
type peerWorld struct {
	plan   Plan
	judge  Judge // the first
	prober *Prober
	files  map[string][]byte // for peers: a certificate and its key, and the list of users
}

func newPeerWorld(t *testing.T) *peerWorld {
	cert, certPEM, err := judge.SelfSigned("localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	w := &peerWorld{prober: New(Options{ProxyRootCAs: roots}), files: peerFiles(t, cert, certPEM)}
	o := PlanOptions{Require: Capabilities(), MinJudges: 2}
	for _, name := range []string{"one", "two"} {
		h := &judge.Handler{Key: testKey}
		j := Judge{Name: name, Key: testKey, Allow: loopback(), RootCAs: roots}
		plain := httptest.NewServer(h)
		t.Cleanup(plain.Close)
		secure := httptest.NewUnstartedServer(h)
		secure.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		secure.StartTLS()
		t.Cleanup(secure.Close)
		// By name, so that proxies have something to resolve.
		j.HTTP = mustURL(t, "http://localhost:"+mustURL(t, plain.URL).Port()+"/")
		j.HTTPS = mustURL(t, "https://localhost:"+mustURL(t, secure.URL).Port()+"/")
		for _, c := range Capabilities() {
			check, seen := w.prober.Control(t.Context(), j, c)
			if check.Outcome != OK {
				t.Fatalf("control of judge %s: %+v", name, check)
			}
			o.Seen.Add(seen)
		}
		o.Judges = append(o.Judges, j)
	}
	w.judge = o.Judges[0]
	if w.plan, _, err = NewPlan(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// probe asks by each scheme that the claim leaves open, and returns the last result.
func (w *peerWorld) probe(t *testing.T, p peer, port uint16) Result {
	t.Helper()
	user, password := "", ""
	if p.password {
		user, password = peerUser, peerPassword
	}
	e, err := proxyurl.NewEndpoint("127.0.0.1", port, user, password)
	if err != nil {
		t.Fatal(err)
	}
	claimed := p.schemes
	if claimed == nil {
		claimed = []proxyurl.Scheme{proxyurl.Any}
	}
	order := Rules{Schemes: Schemes()}.TryOrder(Record{Schemes: claimed})
	round := w.prober.Round(t.Context(), w.plan, Job{Endpoint: e, Schemes: order, Allow: loopback()})
	return round[len(round)-1]
}

func (w *peerWorld) wantFound(t *testing.T, p peer, r Result) {
	t.Helper()
	exit := netip.MustParseAddr(peerExit)
	if p.own {
		exit = netip.MustParseAddr("127.0.0.1")
	}
	if r.Outcome != OK || len(r.Checks) != 4 {
		t.Fatalf("%s: %s at %s (%s), %d checks", r.Proxy, r.Outcome, r.Last().Stage, r.Last().Detail, len(r.Checks))
	}
	if r.Proxy.Scheme != p.scheme || r.Found != NewCapabilitySet(p.found...) || r.Anonymity != p.level || !r.Verified || r.Exit != exit {
		t.Errorf("%s that can %s, %s (verified %t), exit %s; want %s that can %s, %s, exit %s", r.Proxy.Scheme, r.Found, r.Anonymity,
			r.Verified, r.Exit, p.scheme, NewCapabilitySet(p.found...), p.level, exit)
	}
}

// wantDenied asks without a password, and with wrong ones, with and without CONNECT.
func (w *peerWorld) wantDenied(t *testing.T, p peer, port uint16) {
	t.Helper()
	for name, of := range map[string]struct{ user, password string }{
		"none": {}, "a wrong password": {peerUser, "wrong"}, "a wrong user": {"eve", peerPassword},
	} {
		e, err := proxyurl.NewEndpoint("127.0.0.1", port, of.user, of.password)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range Capabilities() {
			r := one(w.prober, t.Context(), proxyurl.URL{Scheme: p.scheme, Endpoint: e}, loopback(), []put{{w.judge, c}})
			if r.Outcome != AuthRequired {
				t.Errorf("%s with %s: %s at %s (%s), want %s", c, name, r.Outcome, r.Last().Stage, r.Last().Detail, AuthRequired)
			}
		}
	}
}
