package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"evenpool/sources/proxyurl"
)

// TestH10_OutcomesAreAClosedList: every constant of type Outcome has a class in
// the table, and the table holds nothing else.
func TestH10_OutcomesAreAClosedList(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "outcome.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []Outcome
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Outcome" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			constants = append(constants, Outcome(text))
		}
		return true
	})
	if !slices.Equal(constants, Outcomes()) {
		t.Errorf("constants: %v\n    table: %v", constants, Outcomes())
	}
	for _, o := range Outcomes() {
		if !slices.Contains([]Class{ClassOK, ClassProxy, ClassJudge, ClassLocal, ClassSecurity}, o.Class()) {
			t.Errorf("%s: class %q", o, o.Class())
		}
	}
	if Outcome("something").Class() != ClassLocal {
		t.Error("what is not understood is held against a proxy")
	}
}

func dialError(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
}

func readError(err error) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
}

func TestH10_Classify(t *testing.T) {
	forbidden := &proxyurl.ForbiddenError{Addr: netip.MustParseAddr("10.0.0.1"), Reason: "private"}
	tests := []struct {
		name  string
		err   error
		stage Stage
		want  Outcome
	}{
		{"refused", dialError(syscall.ECONNREFUSED), StageDial, Refused},
		{"reset while dialling", dialError(syscall.ECONNRESET), StageDial, Reset},
		{"host unreachable", dialError(syscall.EHOSTUNREACH), StageDial, Unreachable},
		{"host unknown", dialError(syscall.EHOSTDOWN), StageDial, Unreachable},
		{"kernel gives up", dialError(syscall.ETIMEDOUT), StageDial, DialTimeout},
		{"our limit while dialling", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, StageDial, DialTimeout},
		{"a name that leads to a banned address", Rules{NotNetworks: []netip.Prefix{netip.MustParsePrefix("1.2.3.0/24")}}.Admit(netip.MustParseAddr("1.2.3.4")), StageDial, Excluded},
		{"no such name", &net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}, StageDial, Unresolved},
		{"resolver is silent", &net.DNSError{Err: "i/o timeout", IsTimeout: true, IsTemporary: true}, StageDial, LocalResolver},
		{"resolver fails", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, StageDial, LocalResolver},
		{"our limit while resolving", context.DeadlineExceeded, StageDial, LocalResolver},
		{"judge has no name", &net.DNSError{Err: "no such host", IsNotFound: true}, StageResolve, JudgeAddress},
		{"judge and resolver", &net.DNSError{Err: "server misbehaving", IsTemporary: true}, StageResolve, LocalResolver},
		{"judge and our limit", context.DeadlineExceeded, StageResolve, LocalResolver},
		{"judge forbidden", forbidden, StageResolve, JudgeForbidden},
		{"forbidden by name", forbidden, StageDial, ForbiddenAddress},
		{"forbidden at connect", &net.OpError{Op: "dial", Err: forbidden}, StageDial, ForbiddenAddress},
		{"reset", readError(syscall.ECONNRESET), StageResponse, Reset},
		{"pipe", readError(syscall.EPIPE), StageRequest, Closed},
		{"end", io.EOF, StageResponse, Closed},
		{"early end", fmt.Errorf("x: %w", io.ErrUnexpectedEOF), StageTLS, Closed},
		{"our limit", &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, StageResponse, Timeout},
		{"our limit in TLS", os.ErrDeadlineExceeded, StageTLS, Timeout},
		{"retransmissions end", readError(syscall.ETIMEDOUT), StageResponse, Timeout},
		{"not TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, StageTLS, TLSFailed},
		{"alert", &net.OpError{Op: "remote error", Err: errors.New("tls: internal error")}, StageTLS, TLSFailed},
		{"certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, StageTLS, TLSIntercepted},
		{"no authorities here", &tls.CertificateVerificationError{Err: x509.SystemRootsError{}}, StageTLS, Unknown},
		{"descriptors", dialError(syscall.EMFILE), StageDial, LocalDescriptors},
		{"an error nobody knows", errors.New("strange"), StageResponse, Unknown},
		{"an errno nobody knows", dialError(syscall.EXDEV), StageDial, Unknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := classify(test.err, test.stage, map[Stage]layer{StageTLS: judgeTLS}[test.stage]); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestH4_LocalFaultsLeaveStreaksAlone dials with each local error in turn.
func TestH4_LocalFaultsLeaveStreaksAlone(t *testing.T) {
	resolver := func(e net.DNSError) error { return &e }
	tests := []struct {
		name string
		err  error
		want Outcome
	}{
		{"EMFILE", dialError(syscall.EMFILE), LocalDescriptors},
		{"ENFILE", dialError(syscall.ENFILE), LocalDescriptors},
		{"ENOBUFS", dialError(syscall.ENOBUFS), LocalMemory},
		{"ENOMEM", dialError(syscall.ENOMEM), LocalMemory},
		{"ENETUNREACH", dialError(syscall.ENETUNREACH), LocalNetwork},
		{"ENETDOWN", dialError(syscall.ENETDOWN), LocalNetwork},
		{"EADDRNOTAVAIL", dialError(syscall.EADDRNOTAVAIL), LocalAddress},
		{"EPERM", dialError(syscall.EPERM), LocalPermission},
		{"EACCES", dialError(syscall.EACCES), LocalPermission},
		{"resolver timeout", resolver(net.DNSError{Err: "i/o timeout", IsTimeout: true}), LocalResolver},
		{"resolver failure", resolver(net.DNSError{Err: "server misbehaving", IsTemporary: true}), LocalResolver},
		{"cancelled", context.Canceled, Cancelled},
		{"unknown", errors.New("strange"), Unknown},
	}
	rules := Rules{Schemes: Schemes(), Require: Capabilities(), Rise: 2, Fall: 2}
	j := ownJudge(t)
	plan, _, err := NewPlan(PlanOptions{Judges: []Judge{j}, Require: rules.Require})
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []Record{
		{Passes: 1},
		{Fails: 1, Member: "http://198.51.100.1:80"},
		{Fails: 5, Member: "http://198.51.100.1:80"}, // held by a guard
		{Passes: 7},
	} {
		for _, test := range tests {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.want == Cancelled {
				cancel()
			}
			p := New(Options{Dial: failing(test.err)})
			e := mustProxy(t, "http://198.51.100.1:80").Endpoint
			results := p.Round(ctx, plan, Job{Endpoint: e, Schemes: rules.Schemes})
			if len(results) != 1 || results[0].Outcome != test.want {
				t.Errorf("%s: got %+v", test.name, results)
			}
			round := Round{At: time.UnixMilli(1), Results: results}
			round.Verdict = rules.Judge(before, round, nil)
			after := before.After(round)
			if after.Passes != before.Passes || after.Fails != before.Fails || after.LastPass != before.LastPass {
				t.Errorf("%s: streaks %d/%d became %d/%d", test.name, before.Passes, before.Fails, after.Passes, after.Fails)
			}
			if d := rules.Decide(after, round.Verdict); d.Action != Keep {
				t.Errorf("%s: %+v", test.name, d)
			}
		}
	}
}

// TestControlNeverBlamesAProxy: there is none.
func TestControlNeverBlamesAProxy(t *testing.T) {
	for _, o := range Outcomes() {
		if c := asJudge(o).Class(); c == ClassProxy || c == ClassSecurity {
			t.Errorf("%s became %s", o, asJudge(o))
		}
	}
}
