package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"evenpool/sources/proxyurl"
)

// maxDetail bounds what a check keeps of a peer's own words, in bytes.
const maxDetail = 200

// fault is an error whose outcome is known where it arises: the peer broke the
// protocol, a limit, or the judge's expectation.
type fault struct {
	outcome Outcome
	detail  string // escaped by whoever shows it, once
	names   bool   // perhaps because the proxy was given a name in place of an address
}

func (f *fault) Error() string { return f.detail }

func faultf(o Outcome, format string, args ...any) error {
	return &fault{outcome: o, detail: fmt.Sprintf(format, args...)}
}

// errnos classifies what connect, read and write can return.
//
// EHOSTUNREACH is counted as the proxy's fault. Linux gives it for an ICMP "host
// unreachable" or "filtered" from the far end (icmp_err_convert in
// net/ipv4/icmp.c), and also when a neighbour does not answer ARP
// (arp_error_report in net/ipv4/arp.c). If that neighbour is our own gateway,
// the control fails in the same way and voids the slice; if it is the proxy
// itself, on our own network, it is down. ENETUNREACH may come from a far router
// too, but is mostly "no route" here: local.
var errnos = map[syscall.Errno]Outcome{
	syscall.ECONNREFUSED: Refused,
	syscall.ECONNRESET:   Reset,
	syscall.ECONNABORTED: Reset,
	syscall.EPIPE:        Closed,
	syscall.EHOSTUNREACH: Unreachable,
	syscall.EHOSTDOWN:    Unreachable, // ICMP "host unknown"
	syscall.ENOPROTOOPT:  Unreachable, // ICMP "protocol unreachable"

	syscall.EMFILE:        LocalDescriptors,
	syscall.ENFILE:        LocalDescriptors,
	syscall.ENOBUFS:       LocalMemory,
	syscall.ENOMEM:        LocalMemory,
	syscall.ENETUNREACH:   LocalNetwork,
	syscall.ENETDOWN:      LocalNetwork,
	syscall.EADDRNOTAVAIL: LocalAddress,
	syscall.EPERM:         LocalPermission,
	syscall.EACCES:        LocalPermission,
}

// classify turns an error at a stage of a check into its outcome. What it does
// not know is Unknown, a local fault; but within TLS what is left is the peer's
// bytes not being TLS, for which crypto/tls mostly has no type.
func classify(err error, stage Stage, within layer) Outcome {
	var (
		known     *fault
		forbidden *proxyurl.ForbiddenError
		excluded  *ExcludedError
		dns       *net.DNSError
		cert      *tls.CertificateVerificationError
		noRoots   x509.SystemRootsError
		errno     syscall.Errno
	)
	switch {
	case errors.As(err, &known):
		return known.outcome
	case errors.As(err, &forbidden):
		if stage == StageResolve {
			return JudgeForbidden
		}
		return ForbiddenAddress
	case errors.As(err, &excluded):
		return Excluded
	case errors.As(err, &dns):
		return classifyDNS(dns, stage)
	case errors.As(err, &errno) && errno != syscall.ETIMEDOUT:
		// Before the time limits: for package net some of these count as timeouts.
		if o, ok := errnos[errno]; ok {
			return o
		}
		return Unknown
	case isTimeout(err):
		switch {
		case stage == StageResolve:
			return LocalResolver
		case stage != StageDial:
			return Timeout
		case isOp(err):
			return DialTimeout
		}
		return LocalResolver // nothing was dialled: the time went into the proxy's name
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
		return Closed
	case errors.As(err, &noRoots):
		return Unknown
	case errors.As(err, &cert) && within == proxyTLS:
		return ProxyCertificate
	case errors.As(err, &cert):
		return TLSIntercepted
	case within == proxyTLS:
		return ProxyTLS
	case within == judgeTLS:
		return TLSFailed
	}
	return Unknown
}

// classifyDNS: a name that does not exist is its owner's fault, a resolver that
// fails or is silent is ours (RFC 8499: NXDOMAIN and NODATA against SERVFAIL).
func classifyDNS(err *net.DNSError, stage Stage) Outcome {
	switch {
	case !err.IsNotFound || err.IsTimeout || err.IsTemporary:
		return LocalResolver
	case stage == StageResolve:
		return JudgeAddress
	}
	return Unresolved
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.As(err, &timeout) && timeout.Timeout()
}

func isOp(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// asJudge turns the outcome of a question asked without a proxy into that of a
// control: there is no proxy, so what would have been its fault is the judge's.
func asJudge(o Outcome) Outcome {
	switch o {
	case Refused, DialTimeout, Unreachable, Reset, Closed, Timeout:
		return JudgeUnreachable
	case Unresolved:
		return JudgeAddress
	case ForbiddenAddress:
		return JudgeForbidden
	case TLSIntercepted, TLSFailed:
		return JudgeCertificate
	}
	if c := o.Class(); c == ClassProxy || c == ClassSecurity {
		return JudgeAnswer
	}
	return o
}
