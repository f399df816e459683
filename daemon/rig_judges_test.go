package daemon

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"evenpool/probe/judge"
)

// mood is what a judge does.
type mood int32

const (
	tellsTruth mood = iota
	isDead          // to everybody
	tellsLies       // to proxies; controls hear the truth
	forges          // to proxies: signs with another key
)

// rigJudge is a judge that signs. It counts who comes without a proxy: the lab's
// proxies come from addresses of their own.
type rigJudge struct {
	judge.Handler
	mood   atomic.Int32
	turns  atomic.Pointer[func()] // called with each question that comes through a proxy, before it is answered
	direct atomic.Int64           // questions that came without a proxy, whatever the mood
}

var fromHere = netip.MustParsePrefix("127.0.0.1/32")

func (j *rigJudge) set(m mood) { j.mood.Store(int32(m)) }

func (j *rigJudge) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	at, _ := netip.ParseAddrPort(req.RemoteAddr)
	direct := fromHere.Contains(at.Addr())
	if direct {
		j.direct.Add(1)
	} else if turn := j.turns.Load(); turn != nil {
		(*turn)()
	}
	if m := mood(j.mood.Load()); m == isDead || m == tellsLies && !direct {
		http.Error(w, "not today", http.StatusInternalServerError)
		return
	}
	if mood(j.mood.Load()) == forges && !direct {
		other := judge.Handler{Key: judge.Key(judge.NewKeyText())}
		other.ServeHTTP(w, req)
		return
	}
	j.Handler.ServeHTTP(w, req)
}

// signingJudges serves a judge at each of the hosts, and returns their lines in the
// configuration. They are called by their numbers, from 0: "judge0".
func (r *rig) signingJudges(hosts []string) string {
	r.t.Helper()
	key := judge.NewKeyText()
	r.write("judge.key", key+"\n")
	var lines strings.Builder
	for i, host := range hosts {
		j := &rigJudge{Handler: judge.Handler{Key: judge.Key(key), Direct: []netip.Prefix{fromHere}}}
		r.judges = append(r.judges, j)
		cert, pem, err := judge.SelfSigned(host)
		if err != nil {
			r.t.Fatal(err)
		}
		r.write(fmt.Sprintf("judge%d.pem", i), string(pem))
		serve := func(secure bool) string {
			ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
			if err != nil {
				r.t.Fatal(err)
			}
			_, port, _ := net.SplitHostPort(ln.Addr().String())
			if secure {
				ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}})
			}
			server := judge.NewServer(j)
			go server.Serve(ln) // ends with Close
			r.t.Cleanup(func() { server.Close() })
			return net.JoinHostPort(host, port)
		}
		fmt.Fprintf(&lines, "  - {name: judge%d, http: \"http://%s/\", https: \"https://%s/\", ca_file: DIR/judge%d.pem, key_file: DIR/judge.key, allow_addresses: [127.0.0.0/8]}\n",
			i, serve(false), serve(true), i)
	}
	return lines.String()
}
