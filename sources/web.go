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
)

// StatusError says that a web server answered with another status than 200.
type StatusError struct{ Code int }

func (e *StatusError) Error() string {
	if text := http.StatusText(e.Code); text != "" {
		return fmt.Sprintf("status %d (%s)", e.Code, text)
	}
	return fmt.Sprintf("status %d", e.Code)
}

// openWeb asks a web server for a list. Every address is checked when it is
// dialled, those of redirects like the first.
func (f *Fetcher) openWeb(ctx context.Context, u *url.URL, allow proxyurl.Allow) (io.ReadCloser, error) {
	dialer := &proxyurl.Dialer{Allow: allow, Resolver: f.opts.Resolver, Timeout: 10 * time.Second}
	client := &http.Client{
		CheckRedirect: checkRedirect,
		// One transport per request, and no connection outlives it: what is opened
		// for one source never serves another. Proxy is nil: the environment has no
		// say in where a list comes from.
		Transport: &http.Transport{
			DialContext: func(_ context.Context, network, hostport string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, hostport) // the transport's own outlives the request
			},
			TLSClientConfig:        &tls.Config{RootCAs: f.opts.RootCAs, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true,
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header.Set("User-Agent", f.opts.UserAgent)
	request.Header.Set("Accept-Encoding", "identity") // and so net/http unpacks nothing
	response, err := client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	switch encoding := response.Header.Get("Content-Encoding"); {
	case response.StatusCode != http.StatusOK:
		err = &StatusError{Code: response.StatusCode}
	case encoding != "" && encoding != "identity":
		err = fmt.Errorf("content encoding %s, which was not asked for", proxyurl.Escape(encoding, 40))
	case response.ContentLength > f.opts.Limits.MaxBytes:
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, response.ContentLength, f.opts.Limits.MaxBytes)
	}
	if err != nil {
		response.Body.Close()
		return nil, err
	}
	return response.Body, nil
}

func checkRedirect(next *http.Request, via []*http.Request) error {
	// The address of one list, with whatever key is in it, is not the next
	// server's business.
	next.Header.Del("Referer")
	switch {
	case len(via) > maxRedirects:
		return errRedirects
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return errElsewhere
	case next.URL.Scheme == "http" && via[len(via)-1].URL.Scheme == "https":
		return errDowngrade
	}
	return nil
}

// withoutURL drops from an error of net/http the URL, which may hold a key or
// come from a redirect.
func withoutURL(err error) error {
	if of := (*url.Error)(nil); errors.As(err, &of) {
		return of.Err
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
		dns       *net.DNSError
		op        *net.OpError
		netErr    net.Error
	)
	switch {
	case errors.As(err, &forbidden):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.As(err, &op), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return true
	}
	return errors.As(err, &netErr) && netErr.Timeout()
}
