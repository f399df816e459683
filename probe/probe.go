// Package probe tries proxies: one try of one proxy by one scheme asks one or
// more judges through it and ends in one outcome of a closed list. Rules turn
// outcomes into verdicts; records keep what is known between rounds. Rules and
// records are pure; only Prober touches the network.
package probe

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"evenpool/sources/proxyurl"
)

// Limits on what a peer may send in one check.
const (
	maxHead   = 16 << 10 // status line and headers, 1xx answers and trailers included
	maxBody   = 64 << 10
	maxInform = 5 // 1xx answers before the real one
)

// DefaultTimeout is the time limit of a check when Options give none.
const DefaultTimeout = 8 * time.Second

// DialFunc connects to "host:port" over TCP and refuses what allow does not let
// through with a *proxyurl.ForbiddenError.
type DialFunc func(ctx context.Context, allow proxyurl.Allow, hostport string) (net.Conn, error)

// Options of a Prober; the zero value is usable.
type Options struct {
	Timeout time.Duration // of each check, from dial to last byte; 0: DefaultTimeout
	// ConnectTimeout is for the dial alone, the proxy's name included; 0, or more
	// than Timeout: Timeout. Whoever answers at all mostly does at once: less lets go
	// of dead ones sooner.
	ConnectTimeout time.Duration
	Resolver       proxyurl.Resolver // nil: the system's
	Dial           DialFunc          // nil: TCP. Tests give their own
	// Admit is asked about each address that a proxy's name leads to, with the context
	// of the probe; one that it gives an error for is left out. nil: all are admitted.
	Admit        func(context.Context, netip.Addr) error
	ProxyRootCAs *x509.CertPool // who may sign the certificates of https proxies; nil: the system's authorities
	Observer     *Observer      // shared by all Probers of a process; nil: one of its own, which does not measure
}

// Prober tries proxies. It keeps nothing between probes but empty buffers and is
// safe for concurrent use.
type Prober struct {
	options  Options
	observer *Observer
	buffers  sync.Pool // *bufio.Reader
}

// New returns a Prober.
func New(options Options) *Prober {
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.ConnectTimeout <= 0 {
		options.ConnectTimeout = options.Timeout
	}
	if options.Observer == nil {
		options.Observer = NewObserver(ObserverOptions{})
	}
	return &Prober{options: options, observer: options.Observer,
		buffers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 2048) }}}
}

// Check is how one question went.
type Check struct {
	Judge      string // whom it was put to; "" for a target
	Target     string // the name of the target that was asked in place of a judge; "" for a judge
	Capability Capability
	Outcome    Outcome
	Stage      Stage  // where it ended; "" when ok
	Detail     string // more words, escaped, at most some 200 bytes; "" when ok
	// When each was done, since the check began: the connection, what the proxy was
	// asked for before the question, TLS with the judge, the first byte of the
	// answer, all. 0 for what it did not come to. Waiting for this host is left out.
	Connect, Handshake, Secured, FirstByte, Total time.Duration

	Exit      netip.Addr    // the asker's address as the judge saw it; invalid where it does not tell
	Anonymity Anonymity     // "": unknown
	Verified  bool          // Anonymity and Exit are proven: signed by the judge, or told within its TLS
	Found     CapabilitySet // what this check showed, whether asked for or not

	names bool // SOCKSRefused: perhaps because of the judge's name
}

// Result is what one probe saw.
type Result struct {
	Proxy   proxyurl.URL
	At      time.Time     // when it began
	Checks  []Check       // in the order asked; it ends with the first that is not ok, or the one that confirms or disputes that
	Outcome Outcome       // OK only if all were asked and ok; else that of the check that decided, Disputed or TooFewJudges
	Latency time.Duration // the longest Total of its checks

	Found     CapabilitySet // of all checks, and what else was found
	Exit      netip.Addr    // the address that the judges saw; invalid: unknown
	Anonymity Anonymity     // the lowest that was seen, of verified ones if there are any; "": unknown
	Verified  bool          // Anonymity and Exit are proven
	Targets   []Check       // of the targets whose turn it was, if all else was ok; they change nothing above
}

// Last returns the check that decided: the first that is not ok, else the last;
// the zero Check when nothing was asked.
func (r Result) Last() Check {
	for _, c := range r.Checks {
		if c.Outcome != OK {
			return c
		}
	}
	if len(r.Checks) == 0 {
		return Check{}
	}
	return r.Checks[len(r.Checks)-1]
}

// stream is a connection with a buffer for reading. It is a net.Conn itself, so
// that TLS can go over what a handshake left in the buffer.
type stream struct {
	net.Conn
	r     *bufio.Reader
	trace func(sent bool, data []byte) // nil: nobody is told
	try   *try                         // whose time limit reading has; nil: the stream below sees to that
}

func (s *stream) Read(b []byte) (int, error) { return s.r.Read(b) }

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if s.trace != nil {
		s.trace(true, b[:n])
	}
	return n, err
}

// supply is what a stream's buffer is filled from.
type supply struct{ s *stream }

func (in supply) Read(b []byte) (int, error) {
	n, err := in.s.Conn.Read(b)
	for in.s.try != nil && errors.Is(err, os.ErrDeadlineExceeded) && in.s.try.longer() {
		n, err = in.s.Conn.Read(b)
	}
	if in.s.trace != nil {
		in.s.trace(false, b[:n])
	}
	return n, err
}

func (p *Prober) stream(conn net.Conn, trace func(sent bool, data []byte), of *try) *stream {
	s := &stream{conn, p.buffers.Get().(*bufio.Reader), trace, of}
	s.r.Reset(supply{s})
	return s
}

func (p *Prober) release(s *stream) {
	s.r.Reset(nil)
	p.buffers.Put(s.r)
}
