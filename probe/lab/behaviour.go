package lab

import (
	"context"
	"slices"

	"evenpool/sources/proxyurl"
)

// Behaviour names what a proxy does: a row of the table below.
type Behaviour string

// Behaviours returns all, in the order of the table.
func Behaviours() []Behaviour {
	var all []Behaviour
	for _, k := range table() {
		all = append(all, k.Behaviour)
	}
	return all
}

// behaviour serves one connection, and returns when it is done with it. The
// connection is closed behind it; it ends early when the client goes, when the
// lab ends, or after connLife.
type behaviour func(ctx context.Context, s *session)

// kind is a row of the table.
type kind struct {
	Behaviour
	claimed        proxyurl.Scheme // in the list
	user, password string          // in the list
	serve          behaviour       // nil: nobody listens on the port
	truth          Truth
	how            how
}

// row makes a row.
func row(b Behaviour, claimed proxyurl.Scheme, user, password string, serve behaviour, truth Truth) kind {
	return kind{b, claimed, user, password, serve, truth, how{}}
}

func (k kind) but(h how) kind {
	k.how = h
	return k
}

// how says how a proxy is reached and how it goes out, where that is not as
// usual.
type how struct {
	ipv6     bool // it listens on ::1
	ipv6Exit bool // it reaches ::1 too, and prefers it for a name
	rotating bool // it has several exits, and takes the next for each connection
	silent   bool // it says nothing, and so needs no goroutine for each connection
}

// table is everything that a lab's proxies can do, good ones first.
func table() []kind {
	return slices.Concat(goodOnes(), lackingOnes(), deadOnes(), brokenOnes(), hostileOnes())
}

// Words of the truths.
const (
	all            = "http connect tls remote_dns" // that most good ones can do
	socksAll       = "http tls remote_dns"
	socksAddresses = "http tls" // names are left to the client

	elite       = "elite"
	anonymous   = "anonymous"
	transparent = "transparent"
)

const (
	claimsHTTP    = proxyurl.HTTP
	claimsHTTPS   = proxyurl.HTTPS
	claimsSocks4  = proxyurl.SOCKS4
	claimsSocks4a = proxyurl.SOCKS4A
	claimsSocks5  = proxyurl.SOCKS5
)

// goodOnes are eligible where the rules ask for no more than http and tls.
func goodOnes() []kind {
	plain := httpProxy{}.serve
	password := httpProxy{user: "lab", password: "open sesame"}.serve
	return []kind{
		row("http", claimsHTTP, "", "", plain, eligible(elite, all, "http", "absolute-form requests and CONNECT")),
		row("http-password", claimsHTTP, "lab", "open sesame", password, eligible(elite, all, "http", "wants a password, and the list has it")),
		row("claimed-https", claimsHTTPS, "", "", plain, eligible(elite, all, "http", "claimed as https, answers CONNECT in plain: the member is http://")),
		row("https", claimsHTTPS, "", "", secure(rightCertificate, plain), eligible(elite, all, "https", "speaks TLS itself, with a certificate for its address").needs(NeedCA)),
		row("https-password", claimsHTTPS, "lab", "open sesame", secure(rightCertificate, password), eligible(elite, all, "https", "speaks TLS itself, and wants a password, which the list has").needs(NeedCA)),
		row("socks4", claimsSocks4, "", "", socks4{}.serve, eligible(elite, socksAddresses, "socks4", "SOCKS 4: addresses only")),
		row("socks4-user", claimsSocks4, "lab", "", socks4{user: "lab"}.serve, eligible(elite, socksAddresses, "socks4", "wants to be told a user, and the list has it")),
		row("socks4a", claimsSocks4a, "", "", socks4{names: true}.serve, eligible(elite, socksAll, "socks4 socks4a", "SOCKS 4A: names too. It speaks SOCKS 4, which is tried first: the member is socks4://")),
		row("socks4a-user", claimsSocks4a, "lab", "", socks4{names: true, user: "lab"}.serve, eligible(elite, socksAll, "socks4 socks4a", "wants to be told a user, and the list has it")),
		row("socks5", claimsSocks5, "", "", socks5{}.serve, eligible(elite, socksAll, "socks5", "SOCKS 5: addresses and names")),
		row("socks5-password", claimsSocks5, "lab", "s3cret:@/", socks5{user: "lab", password: "s3cret:@/"}.serve, eligible(elite, socksAll, "socks5", "wants a password, and the list has it")),
		row("socks5-address", claimsSocks5, "", "", socks5{noNames: true}.serve, eligible(elite, socksAddresses, "socks5", "takes addresses, and refuses names")),
		row("socks5-name", claimsSocks5, "", "", socks5{noAddresses: true}.serve, eligible(elite, socksAll, "socks5", "takes names, and refuses addresses").needs(NeedName)),
		row("flaky", claimsHTTP, "", "", plain, eligible(elite, all, "http", "a good one, to be told to fail and to recover")),
		row("slow-first-byte", claimsHTTP, "", "", httpProxy{wait: 20}.serve, eligible(elite, all, "http", "right answers, half a second late")),
		row("rotating", claimsHTTP, "", "", plain, eligible(elite, all, "http", "comes from another address with each request")).but(how{rotating: true}),

		row("anonymous", claimsHTTP, "", "", httpProxy{adds: via}.serve, eligible(anonymous, all, "http", "adds Via: it is known for a proxy, and names nobody")),
		row("distorting", claimsHTTP, "", "", httpProxy{adds: wrongFor}.serve, eligible(anonymous, all, "http", "names another client in X-Forwarded-For than it has")),
		row("transparent", claimsHTTP, "", "", httpProxy{adds: forwardedFor}.serve, eligible(transparent, all, "http", "names its client in X-Forwarded-For, and itself in Via")),
		row("transparent-forwarded", claimsHTTP, "", "", httpProxy{adds: forwarded}.serve, eligible(transparent, all, "http", "names its client in Forwarded (RFC 7239)")),
		row("transparent-odd", claimsHTTP, "", "", httpProxy{adds: oddHeader}.serve, eligible(transparent, all, "http", "names its client in a header of its own")),

		row("http-ipv6", claimsHTTP, "", "", plain, eligible(elite, all, "http", "listens on an IPv6 address").needs(NeedIPv6)).but(how{ipv6: true}),
		row("socks5-ipv6", claimsSocks5, "", "", socks5{}.serve, eligible(elite, socksAll, "socks5", "listens on an IPv6 address").needs(NeedIPv6)).but(how{ipv6: true}),
		row("transparent-ipv6", claimsHTTP, "", "", httpProxy{adds: forwardedFor}.serve, eligible(transparent, all, "http", "names its client's IPv6 address in X-Forwarded-For").needs(NeedIPv6)).but(how{ipv6: true}),
		row("ipv6-exit", claimsHTTP, "", "", plain, eligible(transparent, all+" ipv6_exit", "http", "goes out by IPv6. Loopback has one such address only: it is the client's own").needs(NeedIPv6)).but(how{ipv6Exit: true}),
	}
}

// lackingOnes are honest, and cannot do all that is required, or not for us.
func lackingOnes() []kind {
	return []kind{
		row("connect-only", claimsHTTP, "", "", httpProxy{noGet: true}.serve, fails("wrong_status", "answer", requireHTTP, "", "", "http", "refuses plain requests with 405")),
		row("http-only", claimsHTTP, "", "", httpProxy{noConnect: true}.serve, fails("connect_refused", "handshake", requireTLS, elite, "http remote_dns", "http", "refuses CONNECT with 405")),
		row("http-407", claimsHTTP, "", "", httpProxy{user: "lab", password: "nobody knows"}.serve, fails("auth_required", "answer", requireHTTP, "", "", "http", "wants a password, says so, and the list has none")),
		row("http-407-bare", claimsHTTP, "", "", says(bare407, ""), fails("auth_required", "answer", requireHTTP, "", "", "http", "answers 407 without a reason and without naming a scheme")),
		row("connect-407", claimsHTTP, "", "", httpProxy{connect: connect407}.serve, fails("auth_required", "handshake", requireTLS, elite, "http remote_dns", "http", "wants a password for CONNECT alone")),
		row("socks4-wrong-user", claimsSocks4, "somebody", "", socks4{user: "nobody knows"}.serve, fails("auth_required", "handshake", requireHTTP, "", "", "socks4", "the list has a wrong user")),
		row("socks5-wrong-password", claimsSocks5, "lab", "guess", socks5{user: "lab", password: "nobody knows"}.serve, fails("auth_required", "handshake", requireHTTP, "", "", "socks5", "the list has a wrong password")),
		row("socks5-refuses", claimsSocks5, "", "", socks5{refuses: true}.serve, fails("socks_refused", "handshake", requireHTTP, "", "", "socks5", "refuses every destination")),
		row("judge-only", claimsHTTP, "", "", httpProxy{oneHost: true}.serve, fails("wrong_status", "answer", requireHTTP, elite, all, "http", "works for a judge at localhost, and for no other host").needs(NeedJudges)),
		row("https-claimed-http", claimsHTTP, "", "", secure(rightCertificate, httpProxy{}.serve), fails("garbage", "response", requireHTTP, "", "", "https", "claimed as http, speaks TLS: a plain request gets a TLS alert")),
		row("https-unknown-authority", claimsHTTPS, "", "", secure(foreignCertificate, httpProxy{}.serve), fails("proxy_certificate", "handshake", requireHTTP, "", "", "https", "speaks TLS itself, with a certificate of an authority that nobody knows")),
		row("https-wrong-name", claimsHTTPS, "", "", secure(otherNameCertificate, httpProxy{}.serve), fails("proxy_certificate", "handshake", requireHTTP, "", "", "https", "speaks TLS itself, with a certificate for another name").needs(NeedCA)),
		row("https-expired", claimsHTTPS, "", "", secure(expiredCertificate, httpProxy{}.serve), fails("proxy_certificate", "handshake", requireHTTP, "", "", "https", "speaks TLS itself, with a certificate of last year").needs(NeedCA)),
	}
}

// deadOnes give nothing, or nothing in time.
func deadOnes() []kind {
	return []kind{
		row("refuses", claimsHTTP, "", "", nil, fails("refused", "dial", requireHTTP, "", "", "", "nobody listens on the port")),
		row("silent", claimsHTTP, "", "", silent, fails("timeout", "response", requireHTTP, "", "", "", "accepts and never answers")).but(how{silent: true}),
		row("slow", claimsHTTP, "", "", httpProxy{wait: 1}.serve, fails("timeout", "response", requireHTTP, "", "", "http", "right answers, long after the time limit")),
		row("drip", claimsHTTP, "", "", httpProxy{noConnect: true, spoil: drip}.serve, fails("timeout", "response", requireHTTP, "", "", "http", "the right answer, byte by byte: every wait is short, the whole is long")),
		row("connect-silent", claimsHTTP, "", "", httpProxy{connect: connectSilent}.serve, fails("timeout", "handshake", requireTLS, elite, "http remote_dns", "http", "never answers a CONNECT")),
		row("tls-silent", claimsHTTP, "", "", httpProxy{connect: tunnelSilent}.serve, fails("timeout", "tls", requireTLS, elite, "http remote_dns", "http", "grants a CONNECT, and then nothing comes")),
		row("closes", claimsHTTP, "", "", once(closes), fails("closed", "response", requireHTTP, "", "", "", "takes the request and hangs up")),
		row("resets", claimsHTTP, "", "", once(resets), fails("reset", "response", requireHTTP, "", "", "", "takes the request and resets the connection")),
		row("fast-fails", claimsHTTP, "", "", says(badGateway, ""), fails("wrong_status", "answer", requireHTTP, "", "", "http", "answers 502 at once: the fastest of all")),
		row("first-only", claimsHTTP, "", "", firstOnly, fails("closed", "handshake", requireTLS, elite, "http remote_dns", "http", "does what its first client asks for once, and hangs up on every request behind that")),
		row("socks5-grants-closes", claimsSocks5, "", "", socks5{then: closes}.serve, fails("closed", "response", requireHTTP, "", "", "socks5", "grants the connection, takes the request, and hangs up")),
	}
}

// brokenOnes answer what is no answer.
func brokenOnes() []kind {
	return []kind{
		row("half-reset", claimsHTTP, "", "", httpProxy{noConnect: true, spoil: halfThenReset}.serve, fails("reset", "response", requireHTTP, "", "", "http", "resets the connection half-way through the right answer")),
		row("half-close", claimsHTTP, "", "", httpProxy{noConnect: true, spoil: halfThenEnd}.serve, fails("closed", "response", requireHTTP, "", "", "http", "ends the right answer too early and keeps the connection half open")),
		row("garbage", claimsHTTP, "", "", says(garbage, ""), fails("garbage", "response", requireHTTP, "", "", "", "answers with bytes that are no HTTP, terminal sequences among them")),
		row("socks4-answers-socks5", claimsSocks4, "", "", socks4AnswersSocks5, fails("garbage", "handshake", requireHTTP, "", "", "", "answers SOCKS 4 in the words of SOCKS 5")),
		row("captive", claimsHTTP, "", "", once(captive), fails("wrong_content", "answer", requireHTTP, "", "", "", "answers 200 with its own page to everything, CONNECT included")),
		row("status-500", claimsHTTP, "", "", says(brokenAnswer, ""), fails("wrong_status", "answer", requireHTTP, "", "", "", "answers 500 to everything")),
		row("redirect", claimsHTTP, "", "", says(elsewhere, ""), fails("wrong_status", "answer", requireHTTP, "", "", "", "redirects to an address that nobody may dial")),
		row("header-flood", claimsHTTP, "", "", says(headStart, headerLine), fails("head_too_large", "response", requireHTTP, "", "", "", "headers without end")),
		row("endless-1xx", claimsHTTP, "", "", says("", interim), fails("head_too_large", "response", requireHTTP, "", "", "", "interim answers without end")),
		row("endless-body", claimsHTTP, "", "", says(bodyStart, "x"), fails("body_too_large", "response", requireHTTP, "", "", "", "a body without end")),
		row("endless-chunks", claimsHTTP, "", "", says(chunkStart, chunk), fails("body_too_large", "response", requireHTTP, "", "", "", "chunks without end")),
		row("endless-trailers", claimsHTTP, "", "", httpProxy{noConnect: true, spoil: endlessTrailers}.serve, fails("head_too_large", "response", requireHTTP, "", "", "http", "the right answer, and trailers without end")),
		row("gzip-bomb", claimsHTTP, "", "", once(bomb), fails("wrong_content", "answer", requireHTTP, "", "", "", "some 20 KiB that unpack to 16 MiB")),
		row("connect-flood", claimsHTTP, "", "", httpProxy{connect: floodConnect}.serve, fails("head_too_large", "handshake", requireTLS, elite, "http remote_dns", "http", "answers CONNECT with headers without end")),
		row("connect-closes", claimsHTTP, "", "", httpProxy{connect: tunnelCloses}.serve, fails("closed", "tls", requireTLS, elite, "http remote_dns", "http", "grants a CONNECT and hangs up")),
		row("connect-garbage", claimsHTTP, "", "", httpProxy{connect: tunnelGarbage}.serve, fails("tls_failed", "tls", requireTLS, elite, "http remote_dns", "http", "grants a CONNECT and brings bytes that are no TLS")),
	}
}

// hostileOnes lie about what they do.
func hostileOnes() []kind {
	return []kind{
		row("honeypot", claimsHTTP, "", "", honeypot, fails("wrong_content", "answer", requireHTTP, "", "", "", "goes nowhere: answers for every host itself, with a page and with TLS of its own")),
		row("mitm", claimsHTTP, "", "", httpProxy{connect: intercept}.serve, fails("tls_intercepted", "tls", safety, elite, "http remote_dns", "http", "reads TLS along, with a certificate of its own")),
		row("forges-unsigned", claimsHTTP, "", "", httpProxy{answers: forge(nil)}.serve, fails("forged", "answer", safety, "", "", "http", "answers in the judge's words, to look elite; it cannot sign them").needs(NeedKey)),
		row("forges-signed", claimsHTTP, "", "", httpProxy{answers: forge(forgersKey)}.serve, fails("forged", "answer", safety, "", "", "http", "answers in the judge's words, and signs with another key").needs(NeedKey)),
		row("replays", claimsHTTP, "", "", httpProxy{answers: replay}.serve, fails("replayed", "answer", safety, "", "", "http", "gives everybody an answer that the judge once signed for somebody else").needs(NeedKey)),
		row("edits-answer", claimsHTTP, "", "", httpProxy{adds: forwardedFor, edit: hideForwardedFor}.serve, fails("forged", "answer", safety, "", "", "http", "names its client in X-Forwarded-For, and takes that out of the answer").needs(NeedKey)),
		row("injects-script", claimsHTTP, "", "", httpProxy{edit: injectScript}.serve, fails("tampered", "answer", safety, "", "", "http", "puts a script into every page")),
		row("blocks-ads", claimsHTTP, "", "", httpProxy{edit: blockFrames}.serve, fails("tampered", "answer", safety, "", "", "http", "takes frames out of every page, and means well")),
	}
}
