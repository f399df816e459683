package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"evenpool/probe/judge"
)

// What proxies do that know evenpool's judge, and want to look better than they
// are.

// forgersKey is not the judge's.
var forgersKey = judge.Key("a key that no judge has ever had")

// forge answers a question in the judge's place and in its form, signed if there
// is a key. Other requests are left alone.
func forge(key judge.Key) func(context.Context, *session, *http.Request) bool {
	return func(_ context.Context, s *session, req *http.Request) bool {
		query := req.URL.Query()
		if !query.Has("nonce") {
			return false
		}
		dropHops(req.Header)
		a := judge.Answer{
			Version: judge.Version,
			Nonce:   query.Get("nonce"),
			Address: s.proxy.Exits[0].String(),
			Host:    req.Host,
			Headers: req.Header,
			TimeMS:  time.Now().UnixMilli(),
		}
		if key != nil {
			a.Sign(key)
		}
		body, contentType := judge.Page(a), "text/html; charset=utf-8"
		if query.Get("form") != "page" {
			body, _ = json.Marshal(a)
			contentType = "application/json"
		}
		s.sendBody(contentType, body)
		return true
	}
}

func (s *session) sendBody(contentType string, body []byte) {
	io.WriteString(s, "HTTP/1.1 200 OK\r\nContent-Type: "+contentType+"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\nConnection: close\r\n\r\n")
	s.Write(body)
}

// replay asks the judge a question of its own, once, and gives the answer to
// everybody who asks after that.
func replay(ctx context.Context, s *session, req *http.Request) bool {
	query := req.URL.Query()
	if !query.Has("nonce") {
		return false
	}
	if kept := s.proxy.kept.Load(); kept != nil {
		s.Write(*kept)
		return true
	}
	query.Set("nonce", strings.Repeat("0123456789abcdef", 2))
	req.URL.RawQuery = query.Encode()
	in, resp, done, err := httpProxy{}.ask(ctx, s, req)
	if err != nil {
		s.refuse(err)
		return true
	}
	defer done()
	in.N = math.MaxInt64
	var whole bytes.Buffer
	if resp.Write(&whole) == nil {
		kept := whole.Bytes()
		if resp.StatusCode == http.StatusOK {
			s.proxy.kept.CompareAndSwap(nil, &kept)
		}
		s.Write(kept)
	}
	return true
}

// forwardedForInJSON is the header in a judge's answer: names are sorted, and
// there is one before it.
var forwardedForInJSON = regexp.MustCompile(`,"(X-Forwarded-For|Via)":\["[^"]*"\]`)

func hideForwardedFor(body []byte, _ string) []byte {
	return forwardedForInJSON.ReplaceAll(body, nil)
}

// What proxies do to pages.

const injected = `<script src="http://ads.example.com/x.js"></script>`

func injectScript(body []byte, contentType string) []byte {
	if !strings.HasPrefix(contentType, "text/html") {
		return body
	}
	before, after, ok := bytes.Cut(body, []byte("</body>"))
	if !ok {
		return append(body, injected...)
	}
	return bytes.Join([][]byte{before, []byte(injected), []byte("</body>"), after}, nil)
}

var frame = regexp.MustCompile(`<iframe[^>]*></iframe>`)

func blockFrames(body []byte, contentType string) []byte {
	if !strings.HasPrefix(contentType, "text/html") {
		return body
	}
	return frame.ReplaceAll(body, nil)
}
