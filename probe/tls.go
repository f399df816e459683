package probe

import (
	"crypto/tls"
	"crypto/x509"
	"net"
)

// tlsConfig is for one server, and verifies it in full. It may be shared. A session
// is never taken up again: each question is to prove all of it. Of the key exchanges
// those are offered that everybody has: one more, with its long greeting, costs more
// than a question is worth, and breaks with some proxies.
func tlsConfig(host string, roots *x509.CertPool) *tls.Config {
	return &tls.Config{ServerName: host, RootCAs: roots, SessionTicketsDisabled: true,
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256}}
}

// secure goes over to TLS. What it computes goes through the observer's gate, and
// the time that it waits there does not count.
func (t *try) secure(conn *stream, config *tls.Config) (*stream, error) {
	conn.trace = nil // from here on it is what is within that is told
	gated := &gated{Conn: conn, t: t}
	client := tls.Client(gated, config)
	gated.enter()
	err := client.Handshake()
	gated.leave()
	gated.t = nil
	if err != nil {
		return nil, err
	}
	return t.p.stream(client, t.said, nil), nil
}

// gated is the connection below TLS: between reading and writing TLS computes.
type gated struct {
	net.Conn
	t *try // nil: the handshake is done
}

func (g *gated) enter() { g.t.wait(g.t.p.observer.compute()) }
func (g *gated) leave() { g.t.p.observer.rest() }

func (g *gated) Read(b []byte) (int, error) {
	if g.t == nil {
		return g.Conn.Read(b)
	}
	g.leave()
	defer g.enter()
	return g.Conn.Read(b)
}

func (g *gated) Write(b []byte) (int, error) {
	if g.t == nil {
		return g.Conn.Write(b)
	}
	g.leave()
	defer g.enter()
	return g.Conn.Write(b)
}
