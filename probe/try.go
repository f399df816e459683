package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// overloadTries is how often a question is put again whose time limit passed while
// this host had no time for it. A target is not asked again: it may have heard it.
const overloadTries = 2

// ask puts a question, and again after an overload of this host. heard is told what a
// content judge said; nil: nobody wants to know. Each probe in flight has the frames of
// what it is within on its stack: what is large is kept out of them.
func (p *Prober) ask(ctx context.Context, w *way, a *ask, heard func(witness)) Check {
	for n := 0; ; n++ {
		c := p.check(ctx, w, a, heard)
		if c.Outcome != LocalOverload || a.target != nil || n == overloadTries || !p.observer.calm(ctx, calmTime) {
			return c
		}
	}
}

// check puts a question once.
func (p *Prober) check(ctx context.Context, w *way, a *ask, heard func(witness)) (c Check) {
	c = Check{Judge: a.judge.Name, Capability: a.capability}
	if a.target != nil {
		c.Target = a.target.Name
	}
	dear := a.tls != nil || protocols[w.proxy.Scheme].secured
	if err := p.observer.begin(ctx, dear); err != nil {
		c.Outcome, c.Detail = Cancelled, proxyurl.Escape(err.Error(), maxDetail)
		return c
	}
	defer p.observer.end(dear)
	t := try{p: p, way: *w, question: a.question(), absent: p.observer.absence(), began: time.Now(), check: &c, heard: heard}
	t.deadline = t.began.Add(p.options.Timeout)
	if w.trace != nil {
		t.said = w.trace(w.proxy.Scheme, c)
	}
	err := t.run(ctx)
	c.Total = t.since()
	if err == nil {
		c.Outcome = OK
		return c
	}
	c.Stage = t.stage
	c.Outcome = classify(err, t.stage, t.layer)
	switch {
	case ctx.Err() != nil:
		c.Outcome, err = Cancelled, context.Cause(ctx)
	case (c.Outcome == Timeout || c.Outcome == DialTimeout) && t.away() >= p.options.Timeout/4:
		c.Outcome = LocalOverload
	}
	var known *fault
	c.names = errors.As(err, &known) && known.names
	c.Detail = proxyurl.Escape(t.hide(detail(err)), maxDetail)
	return c
}

// layer is whose TLS an error may belong to.
type layer int

const (
	noTLS layer = iota
	proxyTLS
	judgeTLS
)

// try is the state of one check.
type try struct {
	p *Prober
	way
	question
	began    time.Time
	deadline time.Time
	waited   time.Duration // for this host
	absent   time.Duration // this host, when it began
	moved    time.Duration // by what the time limit was, for its having been away since
	stage    Stage
	layer    layer
	check    *Check
	raw      net.Conn                     // to the proxy
	heard    func(witness)                // nil: nobody wants to know
	said     func(sent bool, data []byte) // nil: nobody is told
}

// wait moves the time limit on by what was waited for this host, up to as much
// again as the limit is, and says by how much.
func (t *try) wait(waited time.Duration) time.Duration {
	waited = min(waited, t.p.options.Timeout-t.waited)
	if waited <= 0 {
		return 0
	}
	t.waited += waited
	t.deadline = t.deadline.Add(waited)
	if t.raw != nil {
		_ = t.raw.SetDeadline(t.deadline) // a closed connection says so when it is used
	}
	return waited
}

// away is for how long this host had no time for its probes since the question began.
func (t *try) away() time.Duration { return t.p.observer.absence() - t.absent }

// longer moves a time limit that has passed on by twice what this host was away, if
// that was a tenth of it, and says whether the peer has time again.
func (t *try) longer() bool {
	away := t.away()
	if away < t.p.options.Timeout/10 || t.wait(2*away-t.moved) == 0 {
		return false
	}
	t.moved = 2 * away
	return true
}

// since is the time that counts.
func (t *try) since() time.Duration { return time.Since(t.began) - t.waited }

// run goes through the stages. Its error belongs to t.stage.
func (t *try) run(ctx context.Context) error {
	to := t.to
	var spoken protocol
	if !t.proxy.IsZero() {
		var ok bool
		if spoken, ok = protocols[t.proxy.Scheme]; !ok {
			return fmt.Errorf("scheme %s cannot be spoken", t.proxy.Scheme)
		}
	}
	if spoken.needsIPv4 || t.byAddress {
		t.stage = StageResolve
		limited, cancel := context.WithDeadline(ctx, t.deadline)
		var err error
		to, err = t.question.byAddress(limited, t.p.options.Resolver, spoken.needsIPv4)
		cancel()
		if err != nil {
			return err
		}
	}
	t.stage = StageDial
	raw, err := t.dial(ctx)
	if err != nil {
		return err
	}
	t.raw, t.check.Connect = raw, t.since()
	defer raw.Close()
	stop := context.AfterFunc(ctx, func() { raw.Close() })
	defer stop()
	if err := raw.SetDeadline(t.deadline); err != nil {
		return err
	}
	conn := t.p.stream(raw, t.said, t)
	defer t.p.release(conn)
	return t.talk(conn, spoken, to)
}

// dial connects to the proxy or, in a control, to the judge.
func (t *try) dial(ctx context.Context) (net.Conn, error) {
	addr, port := t.way.addr, t.to.port
	if !t.proxy.IsZero() {
		addr, _ = t.proxy.Endpoint.Addr()
		port = t.proxy.Endpoint.Port()
	} else if !addr.IsValid() {
		addr = t.to.addr
	}
	if addr.IsValid() && t.p.options.Dial == nil {
		var s socket
		var err error
		quick := t.tls != nil || protocols[t.proxy.Scheme].secured // behind TLS's last word comes the question at once
		t.wait(t.p.observer.open(func() { s, err = openTo(t.allow, netip.AddrPortFrom(addr, port), quick) }))
		if err == nil {
			err = s.connected(ctx, t.dialLimit, t.longer)
		}
		return s, err
	}
	host := t.to.host
	if addr.IsValid() {
		host = addr.String()
	} else if !t.proxy.IsZero() {
		host = t.proxy.Endpoint.Host()
	}
	limited, cancel := context.WithDeadline(ctx, t.dialLimit())
	defer cancel()
	hostport := destination{host: host, port: port}.hostport()
	if t.p.options.Dial != nil {
		return t.p.options.Dial(limited, t.allow, hostport)
	}
	d := proxyurl.Dialer{Allow: t.allow, Resolver: t.p.options.Resolver}
	if admit := t.p.options.Admit; admit != nil {
		d.Admit = func(addr netip.Addr) error { return admit(ctx, addr) }
	}
	return d.DialContext(limited, "tcp", hostport)
}

// dialLimit is when the dial is to be over.
func (t *try) dialLimit() time.Time {
	limit := t.began.Add(t.waited + t.p.options.ConnectTimeout)
	if t.deadline.Before(limit) {
		return t.deadline
	}
	return limit
}

// talk asks the question on a connection to the proxy or, in a control, to the
// judge.
func (t *try) talk(conn *stream, spoken protocol, to destination) error {
	remote := remoteAddr(conn.Conn)
	if spoken.secured {
		t.stage, t.layer = StageHandshake, proxyTLS
		inner, err := t.secure(conn, tlsConfig(t.proxy.Endpoint.Host(), t.p.options.ProxyRootCAs))
		if err != nil {
			return err
		}
		conn = inner
		defer t.p.release(conn)
	}
	absolute := spoken.forwards && t.tls == nil
	if spoken.tunnel != nil && !absolute {
		t.stage = StageHandshake
		if err := spoken.tunnel(conn, t.proxy.Endpoint, to); err != nil {
			return err
		}
	}
	if spoken.secured || spoken.tunnel != nil && !absolute {
		t.check.Handshake = t.since()
	}
	if t.tls != nil {
		t.stage, t.layer = StageTLS, judgeTLS
		inner, err := t.secure(conn, t.tls)
		if err != nil {
			return err
		}
		conn = inner
		defer t.p.release(conn)
		t.check.Secured = t.since()
	}
	t.stage = StageRequest
	if _, err := conn.Write(t.question.append(make([]byte, 0, 384), absolute, t.proxy.Endpoint)); err != nil {
		return err
	}
	t.stage = StageResponse
	if _, err := conn.r.Peek(1); err != nil {
		return err
	}
	t.check.FirstByte = t.since()
	answer, err := readResponse(conn.r, t.target != nil)
	if err != nil {
		return err
	}
	t.stage = StageAnswer
	if absolute && t.denied(answer.status) {
		return faultf(AuthRequired, "status %d", answer.status)
	}
	said, err := t.question.answered(answer)
	if err != nil {
		return err
	}
	t.shown(said, spoken, to, absolute, remote)
	if t.heard != nil {
		t.heard(said)
	}
	return nil
}

// denied says whether a status is the proxy's about user and password. Of wrong ones
// Tinyproxy says 401, as if it were the judge: ours never does.
func (t *try) denied(status int) bool {
	return status == 407 || status == 401 && t.proxy.Endpoint.HasUser() && t.judge.own() && t.target == nil
}

// shown takes down what a good answer proves.
func (t *try) shown(said witness, spoken protocol, to destination, absolute bool, remote netip.Addr) {
	list := []Capability{t.capability}
	if spoken.forwards && !absolute {
		list = append(list, Connect)
	}
	if !t.proxy.IsZero() && !to.addr.IsValid() {
		list = append(list, RemoteDNS)
	}
	if said.exit.Is6() {
		list = append(list, IPv6Exit)
	}
	t.check.Found = NewCapabilitySet(list...)
	t.check.Exit = said.exit
	t.check.Verified = t.judge.own() && t.target == nil && (len(t.judge.Key) > 0 || t.tls != nil)
	if t.seen == nil {
		return
	}
	if t.tls != nil {
		said.headers = nil // within TLS it could add none
	}
	t.check.Anonymity = said.anonymity(t.seen.Own, t.seen.Headers[t.judge.Name], remote)
}

// remoteAddr is the proxy's address, as far as it is known.
func remoteAddr(conn net.Conn) netip.Addr {
	if s, ok := conn.(socket); ok {
		return s.remote.Addr().Unmap()
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// hide takes the proxy's password out of a text, which a proxy may have repeated. What
// is quoted at its end may be cut.
func (t *try) hide(text string) string {
	if !t.proxy.Endpoint.HasUser() {
		return text
	}
	text, quoted := strings.CutSuffix(text, `"`)
	text = t.proxy.Endpoint.Hide(text, quoted)
	if quoted {
		text += `"`
	}
	return text
}

// detail is an error's text without what a check says already: the operation and
// the addresses.
func detail(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	var file *os.PathError // what a socket is to package os
	if errors.As(err, &file) {
		return file.Err.Error()
	}
	return strings.TrimPrefix(err.Error(), "tls: ")
}
