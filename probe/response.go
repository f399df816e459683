package probe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/textproto"
	"strconv"
	"strings"
)

// A small strict reader of HTTP/1.x answers (RFC 9112). It is stricter than
// net/http's where that costs no honest proxy, and bounded everywhere: a peer
// decides neither how much is read nor how much is kept.

// response is an answer as far as a probe looks at it.
type response struct {
	status int
	header map[string][]string // names in canonical form; nil where nobody asked for it
	body   []byte
}

// head is a status line and what the headers say about the body.
type head struct {
	status  int
	chunked bool
	length  int64 // of the body; -1: not said
	left    int   // what remains of maxHead
}

// readResponse reads one answer to its end, and keeps its headers if they are
// wanted.
func readResponse(r *bufio.Reader, wanted bool) (response, error) {
	var header map[string][]string
	if wanted {
		header = map[string][]string{}
	}
	h, err := readHead(r, header)
	if err != nil {
		return response{}, err
	}
	body, err := readBody(r, h)
	return response{h.status, header, body}, err
}

// readHead reads up to the end of the headers of the first answer that is not
// 1xx. It puts the headers into header, if that is not nil.
func readHead(r *bufio.Reader, header map[string][]string) (head, error) {
	lines := lineReader{r: r, left: maxHead, over: errHead}
	for range maxInform + 1 {
		clear(header)
		h, err := lines.head(header)
		if err != nil || h.status >= 200 {
			return h, err
		}
		if h.status == 101 {
			return h, faultf(Garbage, "status 101, which was not asked for")
		}
	}
	return head{}, faultf(HeadTooLarge, "more than %d answers of 1xx", maxInform)
}

// lineReader reads lines from a budget of bytes.
type lineReader struct {
	r    *bufio.Reader
	left int
	crlf bool  // a bare LF does not end a line
	over error // when the budget is spent
}

// The errors of a spent budget.
var (
	errHead   = faultf(HeadTooLarge, "more than %d bytes of headers", maxHead)
	errChunks = faultf(BodyTooLarge, "chunks of more sizes than content")
)

// next returns a line without its end, valid until the next read. A bare LF ends
// a line of a head too (RFC 9112 section 2.2), but not one between chunks, where
// the RFC does not allow it and peers disagree about what follows.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) && len(long) <= l.left {
			line, err = l.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	l.left -= len(line)
	switch {
	case l.left < 0:
		return nil, l.over
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	line, ok := bytes.CutSuffix(line[:len(line)-1], []byte("\r"))
	if !ok && l.crlf {
		return nil, faultf(Garbage, "bare line feed after \"%s\"", start(line))
	}
	if i := bytes.IndexFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }); i >= 0 {
		return nil, faultf(Garbage, "control character in \"%s\"", start(line))
	}
	return line, nil
}

func (l *lineReader) head(header map[string][]string) (head, error) {
	minor, status, err := l.status()
	if err != nil {
		return head{}, err
	}
	h := head{status: status, length: -1}
	var lengths, codings []string
	var foldable, key string // the header that a line beginning with space would continue
	for {
		line, err := l.next()
		if err != nil {
			return head{}, err
		}
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' { // obs-fold: old, but allowed to be received
			if foldable == "" || foldable == "content-length" || foldable == "transfer-encoding" {
				return head{}, faultf(Garbage, "folded header \"%s\"", start(line))
			}
			if values := header[key]; len(values) > 0 {
				last := &values[len(values)-1]
				*last = strings.Trim(*last+" "+string(bytes.Trim(line, " \t")), " \t")
			}
			continue
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !isToken(name) {
			return head{}, faultf(Garbage, "not a header: \"%s\"", start(line))
		}
		foldable = strings.ToLower(string(name))
		if header != nil {
			key = textproto.CanonicalMIMEHeaderKey(foldable)
			header[key] = append(header[key], string(bytes.Trim(value, " \t")))
		}
		switch foldable {
		case "content-length":
			lengths = append(lengths, string(bytes.Trim(value, " \t")))
		case "transfer-encoding":
			codings = append(codings, string(bytes.Trim(value, " \t")))
		}
	}
	h.left = l.left
	return h, h.framing(minor, lengths, codings)
}

// status reads the status line. It looks at the first bytes as they come, so that
// a peer of another protocol is known by them even if it never ends a line.
func (l *lineReader) status() (minor byte, status int, err error) {
	const form = "HTTP/1."
	for n := 1; n <= len(form); n++ {
		seen, err := l.r.Peek(n)
		if err != nil {
			return 0, 0, err
		}
		if seen[n-1] != form[n-1] {
			seen, _ = l.r.Peek(min(l.r.Buffered(), 40))
			return 0, 0, faultf(Garbage, "not an answer of HTTP/1: \"%s\"", seen)
		}
	}
	line, err := l.next()
	if err != nil {
		return 0, 0, err
	}
	rest := string(line[len(form):])
	if len(rest) < 5 || rest[0] != '0' && rest[0] != '1' || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
		return 0, 0, faultf(Garbage, "bad status line \"%s\"", start(line))
	}
	n, err := strconv.ParseUint(rest[2:5], 10, 16)
	if err != nil || n < 100 || n > 599 {
		return 0, 0, faultf(Garbage, "bad status line \"%s\"", start(line))
	}
	return rest[0], int(n), nil
}

// framing says how long the body is (RFC 9112 section 6.3). Where the RFC calls a
// message faulty it is refused, and so are codings that were not asked for.
func (h *head) framing(minor byte, lengths, codings []string) error {
	for _, text := range lengths {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || text != lengths[0] {
			return faultf(Garbage, "content length \"%s\"", text)
		}
		h.length = int64(n)
	}
	if len(codings) > 0 {
		if minor == '0' || len(codings) > 1 || !strings.EqualFold(codings[0], "chunked") {
			return faultf(Garbage, "transfer coding \"%s\"", codings[0])
		}
		h.chunked = true // it overrides a length
	}
	if h.status < 200 || h.status == 204 || h.status == 304 {
		h.chunked, h.length = false, 0
	}
	return nil
}

func isToken(name []byte) bool {
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return len(name) > 0
}

func readBody(r *bufio.Reader, h head) ([]byte, error) {
	switch {
	case h.chunked:
		return readChunks(r, h.left)
	case h.length > maxBody:
		return nil, faultf(BodyTooLarge, "body of %d bytes, more than %d", h.length, maxBody)
	case h.length >= 0:
		var body bytes.Buffer // grows as bytes come, not as they are promised
		n, err := io.CopyN(&body, r, h.length)
		if n < h.length && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return body.Bytes(), err
	}
	body, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if len(body) > maxBody {
		return nil, faultf(BodyTooLarge, "body of more than %d bytes", maxBody)
	}
	return body, err
}

// readChunks reads a chunked body (RFC 9112 section 7.1). Sizes, extensions and
// trailers are paid from what the headers left of their budget.
func readChunks(r *bufio.Reader, left int) ([]byte, error) {
	lines := lineReader{r: r, left: left, crlf: true, over: errChunks}
	var body bytes.Buffer
	for {
		line, err := lines.next()
		if err != nil {
			return nil, err
		}
		text, _, _ := strings.Cut(string(line), ";")
		text = strings.TrimRight(text, " \t")
		size, err := strconv.ParseUint(text, 16, 63)
		if err != nil {
			return nil, faultf(Garbage, "chunk size \"%s\"", start(line))
		}
		if size == 0 {
			break
		}
		if size > uint64(maxBody-body.Len()) {
			return nil, faultf(BodyTooLarge, "body of more than %d bytes", maxBody)
		}
		if _, err := io.CopyN(&body, r, int64(size)); err != nil {
			return nil, noEOF(err)
		}
		end, err := lines.next()
		if err == nil && len(end) > 0 {
			err = faultf(Garbage, "chunk longer than its size")
		}
		if err != nil {
			return nil, err
		}
	}
	lines.over = errHead
	for { // trailers: read to their end, and not believed
		line, err := lines.next()
		if err != nil || len(line) == 0 {
			return body.Bytes(), err
		}
		if name, _, ok := bytes.Cut(line, []byte(":")); !ok || !isToken(name) {
			return nil, faultf(Garbage, "not a trailer: \"%s\"", start(line))
		}
	}
}

// noEOF turns an end that comes too early into what it is.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
