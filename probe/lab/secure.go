package lab

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// certificate makes what a proxy with TLS of its own shows at an address.
type certificate func(l *Lab, at netip.Addr) (*tls.Certificate, error)

func rightCertificate(l *Lab, at netip.Addr) (*tls.Certificate, error) {
	return l.ca.certify(at.String())
}

// foreignCertificate is of an authority that nobody trusts.
func foreignCertificate(l *Lab, at netip.Addr) (*tls.Certificate, error) {
	return l.issuer.certify(at.String())
}

func otherNameCertificate(l *Lab, _ netip.Addr) (*tls.Certificate, error) {
	return l.ca.certify("proxy.example.org")
}

func expiredCertificate(l *Lab, at netip.Addr) (*tls.Certificate, error) {
	end := time.Now().Add(-24 * time.Hour)
	return l.ca.certifyFor(at.String(), end.AddDate(-1, 0, 0), end)
}

// tlsAlert is what servers of TLS say to those who do not speak it: fatal,
// protocol_version (RFC 8446 section 6).
const tlsAlert = "\x15\x03\x01\x00\x02\x02\x46"

// secure is a proxy that is spoken to within TLS.
func secure(show certificate, inside behaviour) behaviour {
	return func(ctx context.Context, s *session) {
		const handshake = 0x16 // the first byte of TLS (RFC 8446 section 5.1)
		if first, err := s.reader().Peek(1); err != nil || first[0] != handshake {
			if err == nil {
				s.drain()
				io.WriteString(s, tlsAlert)
			}
			return
		}
		cert, err := s.lab.shown(s.proxy, show, localAddr(s.Conn))
		if err != nil {
			s.lab.log.Warn("lab has no certificate", "behaviour", s.proxy.Behaviour, "error", err)
			return
		}
		// Over the session, whose buffer has the beginning.
		within := tls.Server(s, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: []string{"http/1.1"}})
		if within.HandshakeContext(ctx) != nil {
			return
		}
		inside(ctx, &session{Conn: within, lab: s.lab, proxy: s.proxy})
		within.CloseWrite()
	}
}

// shown makes a proxy's certificate once.
func (l *Lab) shown(e *entry, show certificate, at netip.Addr) (*tls.Certificate, error) {
	if cert, ok := l.certs.Load(e); ok {
		return cert.(*tls.Certificate), nil
	}
	cert, err := show(l, at)
	if err != nil {
		return nil, err
	}
	kept, _ := l.certs.LoadOrStore(e, cert)
	return kept.(*tls.Certificate), nil
}

// honeypot goes nowhere: whatever it is asked for it has itself, with TLS of an
// authority of its own where TLS is wanted.
func honeypot(ctx context.Context, s *session) {
	req, err := s.readRequest()
	if err != nil {
		return
	}
	const page = "<html><body><h1>It works!</h1></body></html>\n"
	if req.Method != http.MethodConnect {
		s.sendBody("text/html", []byte(page))
		return
	}
	if _, err := io.WriteString(s, established); err != nil {
		return
	}
	host, _, _ := net.SplitHostPort(req.Host)
	within := tls.Server(s, &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return s.lab.issuer.certify(cmp.Or(hello.ServerName, host))
	}})
	if within.HandshakeContext(ctx) != nil {
		return
	}
	inside := &session{Conn: within, lab: s.lab, proxy: s.proxy}
	if _, err := inside.readRequest(); err == nil {
		inside.sendBody("text/html", []byte(page))
	}
	within.CloseWrite()
}
