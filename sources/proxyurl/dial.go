package proxyurl

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Resolver finds a name's addresses; *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Dialer dials only what Allow lets through. It decides at dial time, on the
// address that is really connected to: a name is resolved once, all its answers
// are checked, and one that was checked is dialled. The zero value dials public
// unicast addresses without a time limit of its own. It is safe for concurrent
// use as long as its fields do not change.
type Dialer struct {
	Allow    Allow
	Resolver Resolver      // nil: net.DefaultResolver
	Timeout  time.Duration // for the whole dial, resolving included; 0: the context's alone
	// Admit is asked about each address that Allow lets through, before it is
	// dialled. One that it gives an error for is left out; where all are, the first
	// error is the dial's. nil admits all.
	Admit func(netip.Addr) error
}

// maxAddresses bounds how many of a name's addresses one dial tries.
const maxAddresses = 3

// DialContext connects to "host:port" over TCP. Beside the errors of net it
// returns a *ForbiddenError (find it with errors.As).
func (d *Dialer) DialContext(ctx context.Context, network, hostport string) (net.Conn, error) {
	if network != "tcp" {
		return nil, net.UnknownNetworkError(network)
	}
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("dial %s: not of the form host:port", Escape(hostport, 120))
	}
	addrs, err := d.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	addrs = addrs[:min(len(addrs), maxAddresses)]
	var first error
	for i, addr := range addrs {
		var conn net.Conn
		var err error
		if d.Admit != nil {
			err = d.Admit(addr)
		}
		if err == nil {
			conn, err = d.dialAddr(ctx, net.JoinHostPort(addr.String(), port), len(addrs)-i)
		}
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// dialAddr gives one of left addresses its share of the time that remains.
func (d *Dialer) dialAddr(ctx context.Context, addrport string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	dialer := net.Dialer{KeepAlive: -1, Control: d.control}
	return dialer.DialContext(ctx, "tcp", addrport)
}

// control is the last look, at the address handed to connect(2).
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return d.Allow.Check(ap.Addr())
}

// Lookup returns the addresses of a name, or the address that host already is,
// never empty. One forbidden answer refuses the whole name with a
// *ForbiddenError; else errors are those of the resolver (*net.DNSError).
func (d *Dialer) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	var answers []netip.Addr
	if addr, err := netip.ParseAddr(host); err == nil {
		answers = []netip.Addr{addr}
	} else {
		var resolver Resolver = net.DefaultResolver
		if d.Resolver != nil {
			resolver = d.Resolver
		}
		if answers, err = resolver.LookupNetIP(ctx, "ip", host); err != nil {
			return nil, err
		}
		if len(answers) == 0 {
			return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
		}
	}
	addrs := make([]netip.Addr, len(answers)) // the resolver's slice may be shared
	for i, addr := range answers {
		if err := d.Allow.Check(addr); err != nil {
			return nil, err
		}
		addrs[i] = addr.Unmap()
	}
	return addrs, nil
}
