// Package probe tries proxies: one try of one proxy by one scheme asks one or
// more judges through it and ends in one outcome of a closed list. Rules turn
// outcomes into verdicts; records keep what is known between rounds. Rules and
// records are pure; only Prober touches the network.
package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
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
	Timeout  time.Duration     // of each check, from dial to last byte; 0: DefaultTimeout
	Resolver proxyurl.Resolver // nil: the system's
	Dial     DialFunc          // nil: proxyurl.Dialer with Resolver. Tests give their own
}

// Prober tries proxies. It keeps nothing between probes but empty buffers and is
// safe for concurrent use.
type Prober struct {
	options Options
	buffers sync.Pool // *bufio.Reader
}

// New returns a Prober.
func New(options Options) *Prober {
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.Dial == nil {
		options.Dial = func(ctx context.Context, allow proxyurl.Allow, hostport string) (net.Conn, error) {
			d := proxyurl.Dialer{Allow: allow, Resolver: options.Resolver}
			return d.DialContext(ctx, "tcp", hostport)
		}
	}
	return &Prober{options: options, buffers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 2048) }}}
}

// Check is how one question went.
type Check struct {
	Judge      string
	Capability Capability
	Outcome    Outcome
	Stage      Stage  // where it ended; "" when ok
	Detail     string // more words, escaped, at most some 200 bytes; "" when ok
	// Since the check began; 0 when it did not come so far.
	Connect, Handshake, Secured, FirstByte, Total time.Duration

	SeenAddress netip.Addr    // the asker's address as our own judge saw it; else invalid
	Exit        netip.Addr    // the same, where the answer tells it; else invalid
	Anonymity   Anonymity     // "": unknown
	Verified    bool          // Anonymity and Exit rest on a signed answer
	Found       CapabilitySet // what this check showed, whether asked for or not
	Target      string        // the name of the target that was asked in place of a judge; "" for a judge
}

// Result is what one probe saw.
type Result struct {
	Proxy   proxyurl.URL
	At      time.Time     // when it began
	Checks  []Check       // in the order asked; it ends with the first that is not ok
	Outcome Outcome       // OK only if all were asked and ok; else that of the last check
	Latency time.Duration // the longest Total of its checks

	Found     CapabilitySet // of all checks
	Exit      netip.Addr    // the address that the judges saw; invalid: unknown
	Anonymity Anonymity     // the lowest that was seen; "": unknown
	Verified  bool          // Anonymity and Exit rest on signed answers
}

// Last returns the check that decided, the zero Check when nothing was asked.
func (r Result) Last() Check {
	if len(r.Checks) == 0 {
		return Check{}
	}
	return r.Checks[len(r.Checks)-1]
}

// Control asks a judge directly. What a proxy would be blamed for is the judge's
// fault here. It blocks for at most the time limit.
func (p *Prober) Control(ctx context.Context, j Judge, c Capability) Check {
	check := p.check(ctx, proxyurl.URL{}, j.Allow, Ask{j, c})
	check.Outcome = asJudge(check.Outcome)
	return check
}

// Probe asks the questions in order through the proxy, each over a connection of
// its own, and stops at the first that is not ok. It blocks for at most the time
// limit for each. Whatever the proxy does, it is a Result; a cancelled context
// gives Cancelled.
func (p *Prober) Probe(ctx context.Context, proxy proxyurl.URL, allow proxyurl.Allow, asks []Ask) Result {
	r := Result{Proxy: proxy, At: time.Now(), Outcome: Unknown, Checks: make([]Check, 0, len(asks))}
	for _, ask := range asks {
		check := p.check(ctx, proxy, allow, ask)
		r.Checks = append(r.Checks, check)
		r.Outcome = check.Outcome
		r.Latency = max(r.Latency, check.Total)
		if check.Outcome != OK {
			break
		}
	}
	return r
}

// Round probes an endpoint by each scheme in turn until one is ok or no other can
// do better: the endpoint cannot be dialled, is hostile, or the fault is ours. The
// results are one slice's round for Rules.Judge and Record.After.
func (p *Prober) Round(ctx context.Context, e proxyurl.Endpoint, schemes []proxyurl.Scheme, allow proxyurl.Allow, asks []Ask) []Result {
	var round []Result
	for _, s := range schemes {
		r := p.Probe(ctx, proxyurl.URL{Scheme: s, Endpoint: e}, allow, asks)
		round = append(round, r)
		switch r.Outcome.Class() {
		case ClassOK, ClassLocal, ClassSecurity:
			return round
		}
		if r.Last().Stage == StageDial {
			return round
		}
	}
	return round
}

// check is one question, through proxy or, if that is zero, directly.
func (p *Prober) check(ctx context.Context, proxy proxyurl.URL, allow proxyurl.Allow, ask Ask) (c Check) {
	c = Check{Judge: ask.Judge.Name, Capability: ask.Capability}
	began := time.Now()
	t := try{p: p, proxy: proxy, allow: allow, ask: ask, began: began, deadline: began.Add(p.options.Timeout), check: &c}
	err := t.run(ctx)
	c.Total = time.Since(began)
	if err == nil {
		c.Outcome = OK
		return c
	}
	c.Stage = t.stage
	c.Outcome = classify(err, t.stage, t.secure)
	if ctx.Err() != nil {
		c.Outcome, err = Cancelled, context.Cause(ctx)
	}
	c.Detail = proxyurl.Escape(detail(err), maxDetail)
	return c
}

// try is the state of one check.
type try struct {
	p        *Prober
	proxy    proxyurl.URL
	allow    proxyurl.Allow
	ask      Ask
	began    time.Time
	deadline time.Time
	stage    Stage
	secure   bool // TLS with the judge has begun
	check    *Check
}

// run goes through the stages. Its error belongs to t.stage.
func (t *try) run(ctx context.Context) error {
	q, err := newQuestion(t.ask)
	if err != nil {
		return err
	}
	dialled := q.target.hostport() // control
	var spoken protocol
	if !t.proxy.IsZero() {
		dialled = t.proxy.Endpoint.HostPort()
		var ok bool
		if spoken, ok = protocols[t.proxy.Scheme]; !ok {
			return fmt.Errorf("scheme %s cannot be spoken", t.proxy.Scheme)
		}
	}
	limited, cancel := context.WithDeadline(ctx, t.deadline)
	defer cancel()
	if spoken.needsIPv4 {
		t.stage = StageResolve
		if q.target.addr, err = t.judgeIPv4(limited, q.target); err != nil {
			return err
		}
	}
	t.stage = StageDial
	raw, err := t.p.options.Dial(limited, t.allow, dialled)
	if err != nil {
		return err
	}
	t.check.Connect = time.Since(t.began)
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	defer raw.Close()
	if err := raw.SetDeadline(t.deadline); err != nil {
		return err
	}
	conn := t.p.stream(raw)
	defer t.p.release(conn)
	return t.talk(conn, spoken, q)
}

// talk asks the question on a connection to the proxy or, in a control, to the
// judge.
func (t *try) talk(conn *stream, spoken protocol, q question) error {
	absolute := spoken.forwards && !q.secure
	if spoken.tunnel != nil && !absolute {
		t.stage = StageHandshake
		if err := spoken.tunnel(conn, t.proxy.Endpoint, q.target); err != nil {
			return err
		}
	}
	if q.secure {
		t.stage, t.secure = StageTLS, true
		client := tls.Client(conn, &tls.Config{ServerName: q.target.host, RootCAs: t.ask.Judge.RootCAs, NextProtos: []string{"http/1.1"}})
		if err := client.Handshake(); err != nil {
			return err
		}
		conn = t.p.stream(client)
		defer t.p.release(conn)
	}
	t.stage = StageRequest
	if _, err := conn.Write(q.request(absolute, t.proxy.Endpoint)); err != nil {
		return err
	}
	t.stage = StageResponse
	if _, err := conn.r.Peek(1); err != nil {
		return err
	}
	t.check.FirstByte = time.Since(t.began)
	answer, err := readResponse(conn.r)
	if err != nil {
		return err
	}
	t.stage = StageAnswer
	if absolute && answer.status == 407 {
		return faultf(AuthRequired, "status 407")
	}
	t.check.SeenAddress, err = q.answered(answer)
	return err
}

// judgeIPv4 finds the address that SOCKS 4 needs: it has no other kind.
func (t *try) judgeIPv4(ctx context.Context, to target) (netip.Addr, error) {
	d := proxyurl.Dialer{Allow: t.ask.Judge.Allow, Resolver: t.p.options.Resolver}
	addrs, err := d.Lookup(ctx, to.host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, addr := range addrs {
		if addr.Is4() {
			return addr, nil
		}
	}
	return netip.Addr{}, faultf(JudgeAddress, "the judge has no IPv4 address, and SOCKS 4 knows no other")
}

// stream is a connection with a buffer for reading. It is a net.Conn itself, so
// that TLS can go over what a handshake left in the buffer.
type stream struct {
	net.Conn
	r *bufio.Reader
}

func (s *stream) Read(b []byte) (int, error) { return s.r.Read(b) }

func (p *Prober) stream(conn net.Conn) *stream {
	r := p.buffers.Get().(*bufio.Reader)
	r.Reset(conn)
	return &stream{conn, r}
}

func (p *Prober) release(s *stream) {
	s.r.Reset(nil)
	p.buffers.Put(s.r)
}

// detail is an error's text without what a check says already: the operation and
// the addresses.
func detail(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "tls: ")
}
