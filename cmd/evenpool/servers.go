package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"evenpool/probe/judge"
)

// serverSet is HTTP servers that run together: the first that fails ends all.
type serverSet struct {
	servers []*http.Server
	running sync.WaitGroup
	failed  chan error // made by the first listen
}

// listen serves on an address, over TLS if there is a certificate, and returns
// the address as it came out.
func (s *serverSet) listen(ctx context.Context, address string, server *http.Server, cert *tls.Certificate) (string, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	at := ln.Addr().String()
	if cert != nil {
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{*cert}})
	}
	if s.failed == nil {
		s.failed = make(chan error, 1)
	}
	s.servers = append(s.servers, server)
	s.running.Go(func() {
		if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			select {
			case s.failed <- fmt.Errorf("serve %s: %w", at, err):
			default: // one is enough to end all
			}
		}
	})
	return at, nil
}

// wait blocks until the context ends, which is no error, or a server fails.
func (s *serverSet) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	}
}

// close ends all servers; what they are answering has a moment to end by itself.
func (s *serverSet) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s.servers {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	s.running.Wait()
}

// judgePlace says where and how judges are served.
type judgePlace struct {
	addrs   []string  // one judge on each; the first one's certificate is good for localhost too
	port    int       // of http, and the one behind it of https; 0: whatever is free
	caFile  string    // where the certificate goes; "": a temporary file
	key     judge.Key // nil: answers are not signed
	keyFile string    // it came from
}

// listenJudges serves judges of ours on http and https, with one certificate for
// all.
func (s *serverSet) listenJudges(ctx context.Context, at judgePlace) ([]*labJudge, error) {
	cert, certPEM, err := judge.SelfSigned(append([]string{"localhost"}, at.addrs...)...)
	if err != nil {
		return nil, fmt.Errorf("the judge's certificate: %w", err)
	}
	var judges []*labJudge
	for _, addr := range at.addrs {
		handler := &judge.Handler{Key: at.key}
		j := &labJudge{KeyFile: at.keyFile}
		for i, cert := range []*tls.Certificate{nil, &cert} {
			address := net.JoinHostPort(addr, "0")
			if at.port != 0 {
				address = net.JoinHostPort(addr, strconv.Itoa(at.port+i))
			}
			listened, err := s.listen(ctx, address, judge.NewServer(handler), cert)
			if err != nil {
				return nil, fmt.Errorf("the judge: %w", err)
			}
			if cert == nil {
				j.HTTP = "http://" + listened + "/"
			} else {
				j.HTTPS = "https://" + listened + "/"
			}
		}
		judges = append(judges, j)
	}
	caFile, err := writeCertificate(at.caFile, certPEM)
	if err != nil {
		return nil, fmt.Errorf("the judge's certificate: %w", err)
	}
	for _, j := range judges {
		j.CAFile = caFile
	}
	return judges, nil
}

// writeCertificate writes to a file, or to a temporary one if it has no name, and
// returns its name.
func writeCertificate(file string, certPEM []byte) (string, error) {
	if file != "" {
		return file, os.WriteFile(file, certPEM, 0o644)
	}
	f, err := os.CreateTemp("", "evenpool-lab-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(certPEM)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}
