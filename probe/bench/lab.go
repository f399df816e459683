package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"

	"evenpool/probe/judge"
	"evenpool/probe/lab"
)

// serveLab runs a lab and a judge until standard input ends.
func serveLab(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("lab: want a population and its number")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	population := []lab.Spec{{Behaviour: lab.Behaviour(args[0]), Count: n}}
	if slices.Contains(lab.Mixes(), args[0]) {
		if population, err = lab.Mix(args[0], n); err != nil {
			return err
		}
	}
	l, err := lab.Start(context.Background(), lab.Options{Population: population})
	if err != nil {
		return err
	}
	defer l.Close()
	w := world{Proxies: l.Proxies(), Key: make([]byte, 32)}
	rand.Read(w.Key)
	end, err := w.serveJudge()
	defer end()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(w); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// serveJudge serves a judge that signs, over http and https.
func (w *world) serveJudge() (end func(), err error) {
	server := judge.NewServer(&judge.Handler{Key: w.Key})
	end = func() { server.Close() }
	cert, certPEM, err := judge.SelfSigned("localhost")
	if err != nil {
		return end, err
	}
	w.JudgePEM = certPEM
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return end, err
	}
	go server.Serve(plain) // ends with Close
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return end, err
	}
	go server.Serve(tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{cert}}))
	at := func(ln net.Listener) string { return fmt.Sprintf("localhost:%d/", ln.Addr().(*net.TCPAddr).Port) }
	w.JudgeHTTP, w.JudgeHTTPS = "http://"+at(plain), "https://"+at(secure)
	return end, nil
}
