package probe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"evenpool/sources/proxyurl"
)

func TestReadResponse(t *testing.T) {
	tests := []struct {
		name, in string
		status   int
		body     string
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloX", 200, "hello"},
		{"read to close", "HTTP/1.0 200 OK\r\n\r\nhello", 200, "hello"},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, ""},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 200, "hi"},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nA: b\r\n\r\n", 200, "hello"},
		{"chunked overrides length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, ""},
		{"1xx before", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\n" + goodResponse, 200, "hello"},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\nhi", 200, "hi"},
		{"no content", "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello", 204, ""},
		{"folded", "HTTP/1.1 200 OK\r\nA: b\r\n  c\r\nContent-Length: 0\r\n\r\n", 200, ""},
		{"long header", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 10000) + "\r\nContent-Length: 2\r\n\r\nhi", 200, "hi"},
		{"largest body", "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("b", maxBody), 200, strings.Repeat("b", maxBody)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// One byte at a time: no read may depend on how the bytes arrive.
			got, err := readResponse(bufio.NewReader(iotest.OneByteReader(strings.NewReader(test.in))), false)
			if err != nil || got.status != test.status || string(got.body) != test.body {
				t.Errorf("got %d %.50q, %v", got.status, got.body, err)
			}
		})
	}
}

func TestReadResponseRefused(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\n"
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n"
	tests := []struct {
		name, in string
		want     Outcome
		detail   string
	}{
		{"other protocol", "SSH-2.0-OpenSSH_9.2\r\n", Garbage, `not an answer of HTTP/1: "SSH-2.0-OpenSSH_9.2\x0d\x0a"`},
		{"SOCKS", "\x05\x00", Garbage, `not an answer of HTTP/1: "\x05\x00"`},
		{"HTTP/2", "HTTP/2 200 OK\r\n\r\n", Garbage, `not an answer of HTTP/1: "HTTP/2 200 OK\x0d\x0a\x0d\x0a"`},
		{"HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", Garbage, `bad status line "HTTP/1.2 200 OK"`},
		{"status of two digits", "HTTP/1.1 20\r\n\r\n", Garbage, `bad status line "HTTP/1.1 20"`},
		{"status of four digits", "HTTP/1.1 2000\r\n\r\n", Garbage, `bad status line "HTTP/1.1 2000"`},
		{"status with a sign", "HTTP/1.1 +20\r\n\r\n", Garbage, `bad status line "HTTP/1.1 +20"`},
		{"status 600", "HTTP/1.1 600 x\r\n\r\n", Garbage, `bad status line "HTTP/1.1 600 x"`},
		{"switches protocols", "HTTP/1.1 101 x\r\n\r\n", Garbage, "status 101, which was not asked for"},
		{"no colon", head + "Hello\r\n\r\n", Garbage, `not a header: "Hello"`},
		{"space in name", head + "A B: c\r\n\r\n", Garbage, `not a header: "A B: c"`},
		{"control character", head + "A: \x1b[2J\r\n\r\n", Garbage, `control character in "A: \x1b[2J"`},
		{"folded length", head + "Content-Length: 1\r\n 2\r\n\r\n", Garbage, `folded header " 2"`},
		{"folded at once", head + " A: b\r\n\r\n", Garbage, `folded header " A: b"`},
		{"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", Garbage, `content length "2"`},
		{"signed length", head + "Content-Length: +1\r\n\r\n", Garbage, `content length "+1"`},
		{"list of lengths", head + "Content-Length: 1, 1\r\n\r\n", Garbage, `content length "1, 1"`},
		{"empty length", head + "Content-Length:\r\n\r\n", Garbage, `content length ""`},
		{"unknown coding", head + "Transfer-Encoding: gzip, chunked\r\n\r\n", Garbage, `transfer coding "gzip, chunked"`},
		{"coding of HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Garbage, `transfer coding "chunked"`},
		{"chunk size", chunked + "x\r\n", Garbage, `chunk size "x"`},
		{"chunk of no size", chunked + "\r\n", Garbage, `chunk size ""`},
		{"chunk line without CR", chunked + "1\na\r\n", Garbage, `bare line feed after "1"`},
		{"chunk too long", chunked + "1\r\nab\r\n", Garbage, "chunk longer than its size"},
		{"trailer", chunked + "0\r\nHello\r\n\r\n", Garbage, `not a trailer: "Hello"`},
		{"huge chunk", chunked + "7fffffffffffffff\r\n", BodyTooLarge, "body of more than 65536 bytes"},
		{"huge length", head + "Content-Length: 65537\r\n\r\n", BodyTooLarge, "body of 65537 bytes, more than 65536"},
		{"body one too long", head + "\r\n" + strings.Repeat("b", maxBody+1), BodyTooLarge, "body of more than 65536 bytes"},
		{"head too long", head + strings.Repeat("A: "+strings.Repeat("b", 997)+"\r\n", 17), HeadTooLarge, "more than 16384 bytes of headers"},
		{"line too long", head + strings.Repeat("b", maxHead), HeadTooLarge, "more than 16384 bytes of headers"},
		{"trailers too long", chunked + "0\r\n" + strings.Repeat("A: b\r\n", 3000), HeadTooLarge, "more than 16384 bytes of headers"},
		{"chunk lines too long", chunked + strings.Repeat("1;"+strings.Repeat("x", 990)+"\r\na\r\n", 17), BodyTooLarge, "chunks of more sizes than content"},
		{"six 1xx", strings.Repeat("HTTP/1.1 100 x\r\n\r\n", 6) + goodResponse, HeadTooLarge, "more than 5 answers of 1xx"},
		{"nothing", "", Closed, "EOF"},
		{"cut in the status", "HTTP/1.1 2", Closed, "unexpected EOF"},
		{"cut in the headers", head + "A: b\r\n", Closed, "unexpected EOF"},
		{"cut in the body", head + "Content-Length: 5\r\n\r\nhell", Closed, "unexpected EOF"},
		{"cut in a chunk", chunked + "5\r\nhell", Closed, "unexpected EOF"},
		{"cut before the last chunk", chunked + "1\r\na\r\n", Closed, "unexpected EOF"},
		{"cut in the trailers", chunked + "0\r\n", Closed, "unexpected EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := readResponse(bufio.NewReader(strings.NewReader(test.in)), false)
			if err == nil || proxyurl.Escape(err.Error(), maxDetail) != test.detail || classify(err, StageResponse, noTLS) != test.want {
				t.Errorf("got %v", err)
			}
		})
	}
}

// FuzzReadResponse: what the small reader accepts, net/http accepts with the same
// status, headers and body; and never more than the limits is read or returned.
func FuzzReadResponse(f *testing.F) {
	for _, seed := range []string{
		goodResponse,
		"HTTP/1.1 100 Continue\r\n\r\n" + goodResponse,
		"HTTP/1.0 200 OK\r\nA: b\r\n c\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n2;a=b\r\nhe\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 204 No\nContent-Length: 0\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := bytes.NewReader(data)
		ours, err := readResponse(bufio.NewReaderSize(source, 512), true)
		if read := len(data) - source.Len(); read > maxHead+maxBody+1024 {
			t.Fatalf("read %d bytes", read)
		}
		if err != nil {
			if o := classify(err, StageResponse, noTLS); o.Class() != ClassProxy {
				t.Fatalf("%v: outcome %s", err, o)
			}
			return
		}
		theirs, body, err := readByNetHTTP(data)
		if err != nil {
			t.Fatalf("accepted what net/http refuses: %v", err)
		}
		if ours.status != theirs.StatusCode || !bytes.Equal(ours.body, body) {
			t.Fatalf("read %d %q, net/http %d %q", ours.status, ours.body, theirs.StatusCode, body)
		}
		for name, values := range theirs.Header {
			// net/http puts the length into one where it was said twice.
			if name != "Content-Length" && !slices.EqualFunc(ours.header[name], values, sameValue) {
				t.Fatalf("header %q is %q, by net/http %q", name, ours.header[name], values)
			}
		}
	})
}

// sameValue: a folded value that ends in an empty line keeps a space with net/http, which
// belongs to no value (RFC 9112 section 5.1); how many stand for a fold is left open
// (section 5.2).
func sameValue(a, b string) bool {
	folded := strings.HasSuffix(b, " ") || strings.Contains(b, "  ")
	return a == b || folded && slices.Equal(strings.Fields(a), strings.Fields(b))
}

func readByNetHTTP(data []byte) (*http.Response, []byte, error) {
	r := bufio.NewReader(bytes.NewReader(data))
	req := &http.Request{Method: http.MethodGet}
	for {
		resp, err := http.ReadResponse(r, req)
		if err != nil {
			return nil, nil, err
		}
		if resp.StatusCode >= 200 {
			body, err := io.ReadAll(resp.Body)
			return resp, body, errors.Join(err, resp.Body.Close())
		}
	}
}
