package lab

import (
	"context"

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
	spoken         proxyurl.Scheme // in truth; the first of several, in the order of proxyurl.Schemes
	user, password string          // in the list
	serve          behaviour       // nil: nobody listens on the port
	truth          Truth
}

// table is everything that a lab's proxies can do, good ones first. The words
// for outcomes are those of package probe, which this package does not import:
// its tests run labs.
func table() []kind {
	const (
		h  = proxyurl.HTTP
		hs = proxyurl.HTTPS
		s4 = proxyurl.SOCKS4
		sa = proxyurl.SOCKS4A
		s5 = proxyurl.SOCKS5
	)
	var (
		both  = []string{"http", "tls"}
		plain = []string{"http"}
		tls   = []string{"tls"}
	)
	good := func(note string) Truth { return Truth{true, "ok", both, note} }
	bad := func(outcome string, can []string, note string) Truth { return Truth{false, outcome, can, note} }

	return []kind{
		{"http", h, h, "", "", httpProxy{}.serve, good("absolute-form requests and CONNECT")},
		{"http-password", h, h, "lab", "open sesame", httpProxy{user: "lab", password: "open sesame"}.serve, good("wants a password, and the list has it")},
		{"claimed-https", hs, h, "", "", httpProxy{}.serve, good("claimed as https, answers CONNECT in plain: the member is http://")},
		{"socks4", s4, s4, "", "", socks4{}.serve, good("SOCKS 4: addresses only")},
		{"socks4a", sa, s4, "", "", socks4{names: true}.serve, good("SOCKS 4A: names too. It speaks SOCKS 4, which is tried first: the member is socks4://")},
		{"socks5", s5, s5, "", "", socks5{}.serve, good("SOCKS 5: addresses and names")},
		{"socks5-password", s5, s5, "lab", "s3cret:@/", socks5{user: "lab", password: "s3cret:@/"}.serve, good("wants a password, and the list has it")},
		{"transparent", h, h, "", "", httpProxy{tells: true}.serve, good("names its client in X-Forwarded-For and Via: eligible where anonymity is not required")},
		{"flaky", h, h, "", "", httpProxy{}.serve, good("a good one, to be told to fail and to recover")},

		{"connect-only", h, h, "", "", httpProxy{noGet: true}.serve, bad("wrong_status", tls, "refuses plain requests with 405")},
		{"http-only", h, h, "", "", httpProxy{noConnect: true}.serve, bad("connect_refused", plain, "refuses CONNECT with 405")},
		{"http-407", h, h, "", "", httpProxy{user: "lab", password: "nobody knows"}.serve, bad("auth_required", nil, "wants a password, and the list has none")},
		{"socks5-wrong-password", s5, s5, "lab", "guess", socks5{user: "lab", password: "nobody knows"}.serve, bad("auth_required", nil, "the list has a wrong password")},
		{"socks5-refuses", s5, s5, "", "", socks5{refuses: true}.serve, bad("socks_refused", nil, "refuses every destination")},

		{"refuses", h, h, "", "", nil, bad("refused", nil, "nobody listens on the port")},
		{"silent", h, h, "", "", silent, bad("timeout", nil, "accepts and never answers")},
		{"slow", h, h, "", "", httpProxy{slow: true}.serve, bad("timeout", both, "right answers, long after the time limit")},
		{"drip", h, h, "", "", httpProxy{noConnect: true, spoil: drip}.serve, bad("timeout", nil, "the right answer, byte by byte: every wait is short, the whole is long")},
		{"closes", h, h, "", "", once(closes), bad("closed", nil, "takes the request and hangs up")},
		{"half-reset", h, h, "", "", httpProxy{noConnect: true, spoil: halfThenReset}.serve, bad("reset", nil, "resets the connection half-way through the right answer")},
		{"half-close", h, h, "", "", httpProxy{noConnect: true, spoil: halfThenEnd}.serve, bad("closed", nil, "ends the right answer too early and keeps the connection half open")},

		{"garbage", h, h, "", "", says(garbage, ""), bad("garbage", nil, "answers with bytes that are no HTTP, terminal sequences among them")},
		{"captive", h, h, "", "", once(captive), bad("wrong_content", nil, "answers 200 with its own page to everything, CONNECT included")},
		{"status-500", h, h, "", "", says(brokenAnswer, ""), bad("wrong_status", nil, "answers 500 to everything")},
		{"redirect", h, h, "", "", says(elsewhere, ""), bad("wrong_status", nil, "redirects to an address that nobody may dial")},
		{"header-flood", h, h, "", "", says(headStart, headerLine), bad("head_too_large", nil, "headers without end")},
		{"endless-1xx", h, h, "", "", says("", interim), bad("head_too_large", nil, "interim answers without end")},
		{"endless-body", h, h, "", "", says(bodyStart, "x"), bad("body_too_large", nil, "a body without end")},
		{"endless-chunks", h, h, "", "", says(chunkStart, chunk), bad("body_too_large", nil, "chunks without end")},
		{"endless-trailers", h, h, "", "", httpProxy{noConnect: true, spoil: endlessTrailers}.serve, bad("head_too_large", nil, "the right answer, and trailers without end")},
		{"gzip-bomb", h, h, "", "", once(bomb), bad("wrong_content", nil, "some 20 KiB that unpack to 16 MiB")},
		{"connect-flood", h, h, "", "", httpProxy{connect: floodConnect}.serve, bad("head_too_large", plain, "answers CONNECT with headers without end")},
		{"mitm", h, h, "", "", httpProxy{connect: intercept}.serve, bad("tls_intercepted", plain, "reads TLS along, with a certificate of its own")},
	}
}
