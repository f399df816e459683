package lab

import (
	"cmp"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"evenpool/sources/proxyurl"
)

// Bounds that no option changes.
const (
	// connLife ends every connection, also of those behaviours that never end.
	connLife = time.Minute
	// floodBytes is how much an endless answer sends to a client that reads on:
	// more than any client should take, little enough to end.
	floodBytes = 32 << 20
	// maxHead bounds a request's head.
	maxHead = 16 << 10
	// maxAnswer bounds an answer that a behaviour keeps in memory to spoil it.
	maxAnswer = 1 << 20
)

// Options say what to start. The zero value starts one of each behaviour on
// 127.0.0.1.
type Options struct {
	// Addr is the address to listen on, within 127.0.0.0/8; default 127.0.0.1.
	// Behaviours that are wanted more than once get addresses of their own.
	Addr string
	// BasePort is the port of the first behaviour; those behind it get the ports
	// behind it, so that a lab started again has the same URLs. 0, the default,
	// lets the kernel choose.
	BasePort int
	// Population is what to start, in order; empty means one of each behaviour.
	Population []Spec
	// Slow is how long slow proxies wait before they answer; default 10 s. It is
	// more than the timeout of 2 s that the truth speaks of.
	Slow time.Duration
	// MaxConns bounds the connections that are open at once, both sides counted;
	// default 16,384. What comes beyond is reset.
	MaxConns int
	// Logger is told what is unusual; default: nobody.
	Logger *slog.Logger
}

// Spec asks for a number of proxies of one behaviour.
type Spec struct {
	Behaviour Behaviour
	Count     int // at least 1
}

// Proxy is one proxy of a lab.
type Proxy struct {
	Name      string // unique in the lab: the behaviour, with "-N" where there are several
	Behaviour Behaviour
	URL       proxyurl.URL    // as it is spoken in truth, password included: the member it ought to become
	Claimed   proxyurl.Scheme // what the list says
	Exits     []netip.Addr    // where its connections come from: never where the client's do, ::1 aside
	Truth     Truth
	Failing   bool // it was told to fail, and resets every connection
}

// Lab is a set of running proxies. Its methods are safe for concurrent use.
type Lab struct {
	log      *slog.Logger
	slow     time.Duration
	maxConns int
	issuer   *issuer       // of the interceptor: nobody trusts it
	ca       *issuer       // of proxies that speak TLS: those who try them trust it
	bomb     func() []byte // packBomb, once
	certs    sync.Map      // *entry to *tls.Certificate, of proxies with TLS of their own
	cancel   context.CancelFunc
	running  sync.WaitGroup // acceptors and connections
	sockets  []interface{ Close() error }
	silences []*silence
	proxies  []*entry // in the order of the population
	byName   map[string]*entry
	left     []string // of the population, and why

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]*entry // both sides of every connection
	quiet  atomic.Int64        // connections of silences, which are not among them
}

// entry is a proxy and whether it is failing now.
type entry struct {
	Proxy
	how     how
	failing atomic.Bool
	served  atomic.Int64           // connections that count, for behaviours that do
	kept    atomic.Pointer[[]byte] // what a behaviour keeps from one connection to the next
}

// Start listens and serves; it returns when every proxy accepts connections.
// The end of ctx ends only the start: a lab runs until Close.
func Start(ctx context.Context, o Options) (*Lab, error) {
	addr, err := netip.ParseAddr(cmp.Or(o.Addr, "127.0.0.1"))
	if err != nil || !loopback.Contains(addr) {
		return nil, fmt.Errorf("lab address %q: want an address within %s", proxyurl.Escape(o.Addr, 64), loopback)
	}
	groups, err := plan(o.Population, addr, o.BasePort)
	if err != nil {
		return nil, err
	}
	l := &Lab{
		log:      cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		slow:     cmp.Or(o.Slow, 10*time.Second),
		maxConns: cmp.Or(o.MaxConns, 16384),
		bomb:     sync.OnceValue(packBomb),
		byName:   make(map[string]*entry),
		conns:    make(map[net.Conn]*entry),
	}
	if l.issuer, err = newIssuer("lab interceptor"); err != nil {
		return nil, err
	}
	if l.ca, err = newIssuer("lab authority"); err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	for _, g := range groups {
		err := l.startGroup(ctx, serving, g)
		if g.how.ipv6 && isWithoutIPv6(err) {
			l.left = append(l.left, fmt.Sprintf("%s: this machine has no ::1: %v", g.Behaviour, err))
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lab proxy %s: %w", g.Behaviour, err), l.Close())
		}
	}
	return l, nil
}

// Close stops all proxies, ends their connections and waits until all is over.
func (l *Lab) Close() error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()

	var errs []error
	if first {
		l.cancel()
		for _, s := range l.sockets {
			errs = append(errs, s.Close())
		}
		l.endConns(func(*entry) bool { return true })
		for _, s := range l.silences {
			s.nudge()
		}
	}
	l.running.Wait()
	if first {
		for _, s := range l.silences {
			s.closeWake()
		}
	}
	return errors.Join(errs...)
}

// Proxies returns all proxies in the order of the population.
func (l *Lab) Proxies() []Proxy {
	all := make([]Proxy, len(l.proxies))
	for i, e := range l.proxies {
		all[i] = e.Proxy
		all[i].Failing = e.failing.Load()
	}
	return all
}

// Left returns what of the population was not started, since this machine has no
// IPv6: the behaviour and the reason, for people.
func (l *Lab) Left() []string { return slices.Clone(l.left) }

// ListText returns the lab as a list that a source can read: a line of
// "scheme://[user:pass@]host:port" for each, with the scheme that is claimed.
func (l *Lab) ListText() string {
	var b strings.Builder
	for _, e := range l.proxies {
		fmt.Fprintln(&b, proxyurl.URL{Scheme: e.Claimed, Endpoint: e.URL.Endpoint})
	}
	return b.String()
}

// CA returns the certificate, in PEM, of the authority that the lab's proxies
// with TLS of their own have theirs from: who tries them trusts it for proxies.
func (l *Lab) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.ca.cert.Raw})
}

// ErrUnknown says that no proxy of the lab has this name.
var ErrUnknown = errors.New("no such proxy in the lab")

// SetFailing tells a proxy to fail, or to be itself again. A failing proxy
// resets the connections that it has and every new one.
func (l *Lab) SetFailing(name string, failing bool) error {
	e, ok := l.byName[name]
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknown, proxyurl.Escape(name, 64))
	}
	e.failing.Store(failing)
	if failing {
		l.endConns(func(of *entry) bool { return of == e })
	}
	return nil
}
