package lab

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"time"

	"evenpool/sources/proxyurl"
)

// issuer is a certificate authority.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(name string) (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("key of the %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().AddDate(-2, 0, 0), // it signs expired ones too
		NotAfter:              time.Now().Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate of the %s: %w", name, err)
	}
	return &issuer{cert, key}, nil
}

// certify makes a certificate for a name or an address.
func (i *issuer) certify(host string) (*tls.Certificate, error) {
	return i.certifyFor(host, time.Now().Add(-time.Hour), i.cert.NotAfter)
}

func (i *issuer) certifyFor(host string, from, until time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: proxyurl.Escape(host, 60)},
		NotBefore:    from,
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, &i.key.PublicKey, i.key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der, i.cert.Raw}, PrivateKey: i.key}, nil
}

// intercept answers a CONNECT, ends the client's TLS with a certificate of its
// own, and reads along between the two.
func intercept(ctx context.Context, s *session, hostport string) {
	to, err := s.dial(ctx, hostport)
	if err != nil {
		s.refuse(err)
		return
	}
	defer s.lab.untrack(to)
	if _, err := io.WriteString(s, established); err != nil {
		return
	}
	host, _, _ := net.SplitHostPort(hostport)
	client := tls.Server(s, &tls.Config{
		// For whatever host the client believes it talks to.
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.lab.issuer.certify(cmp.Or(hello.ServerName, host))
		},
	})
	if err := client.HandshakeContext(ctx); err != nil {
		return // as it should be: a client that verifies goes here
	}
	// An interceptor does not care whom it talks to behind the client's back,
	// and this one reaches loopback only.
	server := tls.Client(to, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err := server.HandshakeContext(ctx); err != nil {
		return
	}
	relay(client, server)
}
