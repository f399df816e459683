package sources

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"evenpool/sources/proxyurl"
)

// maxRedirects bounds how often a list's URL may lead on.
const maxRedirects = 3

// Redirects that are not followed.
var (
	errRedirects = fmt.Errorf("more than %d redirects", maxRedirects)
	errDowngrade = errors.New("a redirect from https to http")
	errElsewhere = errors.New("a redirect to what is neither http nor https")
	errLocation  = errors.New("a redirect to what is no URL")
)

// errNotModified says that a server has nothing newer than what the validators
// that it was shown stand for.
var errNotModified = errors.New("not modified")

// StatusError says that a web server answered with another status than 200.
type StatusError struct {
	Code int

	retryAfter time.Duration // as the server asks for; 0 for nothing
}

func (e *StatusError) Error() string {
	if text := http.StatusText(e.Code); text != "" {
		return fmt.Sprintf("status %d (%s)", e.Code, text)
	}
	return fmt.Sprintf("status %d", e.Code)
}

// body is a list's bytes as they came, and what was said of them.
type body struct {
	io.ReadCloser
	encodings   []string // values of Content-Encoding
	contentType string
	validators  validators
}

// validators stand for a version of what one URL gives.
type validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
	// Of is the URL that gave them, after all redirects, hashed, since it may hold
	// a key. They mean nothing to any other.
	Of string `json:"of,omitempty"`
}

// validatorBytes bounds what is remembered of a server's validators.
const validatorBytes = 1024

func validatorsOf(response *http.Response) validators {
	v := validators{ETag: response.Header.Get("ETag"), LastModified: response.Header.Get("Last-Modified")}
	if v.ETag == "" && v.LastModified == "" || len(v.ETag)+len(v.LastModified) > validatorBytes {
		return validators{}
	}
	v.Of = hash(response.Request.URL.String())
	return v
}

// webRequest is one request for a list, and those that redirects make of it.
type webRequest struct {
	src        Source
	userAgent  string
	validators validators
}

// openWeb asks a web server for a list. Every address is checked when it is
// dialled, those of redirects like the first. If the list is still what v stands
// for, it returns errNotModified.
func (f *Fetcher) openWeb(ctx context.Context, u *url.URL, src Source, v validators) (*body, error) {
	transport := &http.Transport{
		// One transport per request, and no connection outlives it: what is opened
		// for one source never serves another. Proxy is nil unless the source names
		// one: the environment has no say in where a list comes from.
		TLSClientConfig:        &tls.Config{RootCAs: f.opts.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
	}
	dialer := &proxyurl.Dialer{Allow: src.Allow, Resolver: f.opts.Resolver, Timeout: 10 * time.Second}
	if src.Proxy != "" {
		via, err := parseProxy(src.Proxy)
		if err != nil {
			return nil, err
		}
		transport.Proxy = http.ProxyURL(via)
		dialer.Allow = anyAddress
	}
	transport.DialContext = func(_ context.Context, network, hostport string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, hostport) // the transport's own outlives the request
	}
	r := &webRequest{src: src, userAgent: f.opts.UserAgent, validators: v}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	if err := r.prepare(request, true); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport, CheckRedirect: r.checkRedirect}
	response, err := client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	limit := f.limitsFor(src).MaxBytes
	switch {
	case response.StatusCode == http.StatusNotModified && r.conditional(response.Request):
		err = errNotModified
	case response.StatusCode != http.StatusOK:
		err = &StatusError{Code: response.StatusCode, retryAfter: retryAfter(response.Header, f.opts.Now())}
	case response.ContentLength > limit:
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, response.ContentLength, limit)
	}
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return &body{
		ReadCloser:  response.Body,
		encodings:   response.Header.Values("Content-Encoding"),
		contentType: response.Header.Get("Content-Type"),
		validators:  validatorsOf(response),
	}, nil
}

// prepare gives a request its headers, and looks at where it goes if it is not
// dialled from here. home says that it goes to the host of the list's own URL.
func (r *webRequest) prepare(request *http.Request, home bool) error {
	// net/http copies most headers along a redirect, keys in headers of other names
	// than Authorization and Cookie among them. Here each request begins without.
	// Nor is the address of one list, with whatever key is in it, the next server's
	// business.
	request.Header = http.Header{}
	request.Header.Set("User-Agent", r.userAgent)
	request.Header.Set("Accept-Encoding", acceptEncoding) // and so net/http unpacks nothing
	if r.src.UserAgent != "" {
		request.Header.Set("User-Agent", r.src.UserAgent)
	}
	if home {
		for name, value := range r.src.Headers {
			if strings.EqualFold(name, "Host") {
				request.Host = value
				continue
			}
			request.Header.Set(name, value)
		}
	}
	if r.conditional(request) {
		if r.validators.ETag != "" {
			request.Header.Set("If-None-Match", r.validators.ETag)
		}
		if r.validators.LastModified != "" {
			request.Header.Set("If-Modified-Since", r.validators.LastModified)
		}
	}
	if r.src.Proxy != "" {
		return checkTarget(request.URL.Hostname(), r.src.Allow)
	}
	return nil
}

// conditional says whether a request is for the URL that gave the validators.
func (r *webRequest) conditional(request *http.Request) bool {
	return r.validators.Of != "" && r.validators.Of == hash(request.URL.String())
}

func (r *webRequest) checkRedirect(next *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return errRedirects
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return errElsewhere
	case next.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return errDowngrade
	}
	// Who has once been sent elsewhere does not come home any more: the way back
	// was another's choice.
	home := sameHost(via[0].URL, next.URL)
	for _, earlier := range via {
		home = home && sameHost(via[0].URL, earlier.URL)
	}
	return r.prepare(next, home)
}

// sameHost says whether two URLs lead to the same server: the same host and port,
// or the ports that http and https have by default.
func sameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	port := func(u *url.URL) string {
		if p := u.Port(); p == "" || u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443" {
			return "" // its default
		} else {
			return p
		}
	}
	return port(a) == port(b)
}

// withoutURL drops from an error of net/http the URL, which may hold a key or
// come from a redirect.
func withoutURL(err error) error {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		err = of.Err
		if strings.HasPrefix(err.Error(), "failed to parse Location header") {
			return errLocation // the text repeats it
		}
	}
	return err
}

// mayPass says whether it is worth asking again: the network, or a server that is
// busy. A page that is not there, a certificate that does not verify and a list
// that is broken stay what they are.
func mayPass(err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		switch status.Code {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
			http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var (
		forbidden *proxyurl.ForbiddenError
		untrusted *tls.CertificateVerificationError
		dns       *net.DNSError
		op        *net.OpError
		netErr    net.Error
	)
	switch {
	case errors.As(err, &forbidden), errors.As(err, &untrusted):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	return errors.As(err, &netErr) && netErr.Timeout()
}
