package probe

// Outcome is how a check or a probe ended: one of the constants below, never
// anything else.
type Outcome string

// Class says who is answerable for an outcome, and so what follows from it.
type Class string

// The classes.
const (
	ClassOK       Class = "ok"
	ClassProxy    Class = "proxy"    // the proxy's fault: counts against it
	ClassJudge    Class = "judge"    // the judge's fault: counts for nothing
	ClassLocal    Class = "local"    // this host's fault, or unknown: counts for nothing
	ClassSecurity Class = "security" // the proxy is hostile or leads where nobody may go: out at once
)

// The closed list of outcomes. The table beside it gives each its class.
const (
	OK Outcome = "ok"

	Refused        Outcome = "refused"         // the proxy's host refused the connection
	DialTimeout    Outcome = "dial_timeout"    // no connection within the time limit
	Unreachable    Outcome = "unreachable"     // a router says that the proxy's host cannot be reached
	Unresolved     Outcome = "unresolved"      // the proxy's name does not exist
	Excluded       Outcome = "excluded"        // the proxy's name leads to addresses alone that the pool does not want
	Reset          Outcome = "reset"           // connection reset
	Closed         Outcome = "closed"          // connection closed before the answer was complete
	Timeout        Outcome = "timeout"         // connected, but no complete answer within the time limit
	Garbage        Outcome = "garbage"         // the answer is not of the protocol asked for
	AuthRequired   Outcome = "auth_required"   // user and password are missing or refused
	ConnectRefused Outcome = "connect_refused" // CONNECT was answered by another status than 2xx
	SOCKSRefused   Outcome = "socks_refused"   // the SOCKS request was refused
	HeadTooLarge   Outcome = "head_too_large"  // status line, headers and 1xx answers beyond the limit
	BodyTooLarge   Outcome = "body_too_large"  // body beyond the limit
	WrongStatus    Outcome = "wrong_status"    // another status than the judge gives, redirects included
	WrongContent   Outcome = "wrong_content"   // another page than the judge's: a captive page, an advertisement
	NonceMissing   Outcome = "nonce_missing"   // the judge's form, but not the answer to this question
	TLSFailed      Outcome = "tls_failed"      // no TLS through the proxy

	ProxyTLS         Outcome = "proxy_tls"         // handshake with an https proxy: it speaks no TLS
	ProxyCertificate Outcome = "proxy_certificate" // handshake with an https proxy: its certificate is not valid for its host
	TargetFailed     Outcome = "target_failed"     // another answer than the target is to give

	JudgeAddress     Outcome = "judge_address"     // the judge's name does not exist, or has no address that the scheme can ask for
	JudgeUnreachable Outcome = "judge_unreachable" // control: the judge does not answer
	JudgeAnswer      Outcome = "judge_answer"      // control: the judge answers wrongly
	JudgeCertificate Outcome = "judge_certificate" // control: the judge's TLS does not work, its certificate above all
	JudgeForbidden   Outcome = "judge_forbidden"   // the judge's address may not be dialled
	Disputed         Outcome = "disputed"          // a member failed with one judge, and another was content
	TooFewJudges     Outcome = "too_few_judges"    // all were content, but fewer judges than it takes

	LocalDescriptors Outcome = "local_descriptors" // EMFILE, ENFILE: too many open files
	LocalMemory      Outcome = "local_memory"      // ENOBUFS, ENOMEM
	LocalNetwork     Outcome = "local_network"     // ENETUNREACH, ENETDOWN: no way out
	LocalAddress     Outcome = "local_address"     // EADDRNOTAVAIL: no local port or address left
	LocalPermission  Outcome = "local_permission"  // EPERM, EACCES: a local firewall or sandbox
	LocalResolver    Outcome = "local_resolver"    // the resolver fails or is silent
	LocalOverload    Outcome = "local_overload"    // a time limit passed while this host had no time for the probe
	Cancelled        Outcome = "cancelled"         // the probe was cancelled, at shutdown for example
	Unknown          Outcome = "unknown"           // an error that nobody has classified

	ForbiddenAddress Outcome = "forbidden_address" // the proxy's name leads to an address that may not be dialled
	TLSIntercepted   Outcome = "tls_intercepted"   // the certificate seen through the proxy is not valid for the judge
	Tampered         Outcome = "tampered"          // our judge's own page came back altered
	Forged           Outcome = "forged"            // an answer in our judge's form that our judge did not sign
	Replayed         Outcome = "replayed"          // an answer that our judge signed for another question
)

// classed is the list, in the order in which Outcomes gives it.
var classed = []struct {
	outcome Outcome
	class   Class
}{
	{OK, ClassOK},

	{Refused, ClassProxy},
	{DialTimeout, ClassProxy},
	{Unreachable, ClassProxy},
	{Unresolved, ClassProxy},
	{Excluded, ClassProxy},
	{Reset, ClassProxy},
	{Closed, ClassProxy},
	{Timeout, ClassProxy},
	{Garbage, ClassProxy},
	{AuthRequired, ClassProxy},
	{ConnectRefused, ClassProxy},
	{SOCKSRefused, ClassProxy},
	{HeadTooLarge, ClassProxy},
	{BodyTooLarge, ClassProxy},
	{WrongStatus, ClassProxy},
	{WrongContent, ClassProxy},
	{NonceMissing, ClassProxy},
	{TLSFailed, ClassProxy},
	{ProxyTLS, ClassProxy},
	{ProxyCertificate, ClassProxy},
	{TargetFailed, ClassProxy},

	{JudgeAddress, ClassJudge},
	{JudgeUnreachable, ClassJudge},
	{JudgeAnswer, ClassJudge},
	{JudgeCertificate, ClassJudge},
	{JudgeForbidden, ClassJudge},
	{Disputed, ClassJudge},
	{TooFewJudges, ClassJudge},

	{LocalDescriptors, ClassLocal},
	{LocalMemory, ClassLocal},
	{LocalNetwork, ClassLocal},
	{LocalAddress, ClassLocal},
	{LocalPermission, ClassLocal},
	{LocalResolver, ClassLocal},
	{LocalOverload, ClassLocal},
	{Cancelled, ClassLocal},
	{Unknown, ClassLocal},

	{ForbiddenAddress, ClassSecurity},
	{TLSIntercepted, ClassSecurity},
	{Tampered, ClassSecurity},
	{Forged, ClassSecurity},
	{Replayed, ClassSecurity},
}

// Outcomes returns the closed list: ok first, then by class.
func Outcomes() []Outcome {
	list := make([]Outcome, len(classed))
	for i, c := range classed {
		list[i] = c.outcome
	}
	return list
}

// Class returns the outcome's class. A text that is no outcome is ClassLocal:
// what is not understood is never held against a proxy.
func (o Outcome) Class() Class {
	for _, c := range classed {
		if c.outcome == o {
			return c.class
		}
	}
	return ClassLocal
}

// Stage is the step of a check: where it was when it ended.
type Stage string

// The stages, in the order in which a check goes through them. An ok check ends
// at none of them.
const (
	StageResolve   Stage = "resolve"   // the judge's name, for SOCKS 4 alone
	StageDial      Stage = "dial"      // the connection to the proxy, its name included
	StageHandshake Stage = "handshake" // TLS with an https proxy; CONNECT or SOCKS: the proxy's connection to the judge
	StageTLS       Stage = "tls"       // TLS with the judge
	StageRequest   Stage = "request"   // sending the question
	StageResponse  Stage = "response"  // reading the answer
	StageAnswer    Stage = "answer"    // looking at the answer
)
