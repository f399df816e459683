package sources

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"evenpool/sources/proxyurl"
)

// acceptEncoding names what unpack understands.
const acceptEncoding = "gzip, br, zstd"

// zstdWindow bounds the memory that a zstd stream may ask for; no server may use
// a larger one (RFC 9659). A window of brotli has at most 16 MiB by its format.
const zstdWindow = 8 << 20

// sniffed is how much of a list is looked at to tell how it is written. A charset
// is declared within the first 1024 bytes of a page, or not at all.
const sniffed = 1024

// errStacked refuses a body packed more than once: nobody has a reason for it but
// who wants to send much in few bytes.
var errStacked = errors.New("a body with several content encodings")

// decode turns a body into the text of a list: unpacks it and makes it UTF-8.
// encodings are the values of Content-Encoding, contentType that of Content-Type;
// for a file there is neither. Packed, unpacked and decoded it has at most limit
// bytes each, else reading ends with ErrTooLarge. It reads as it is read, and is
// to be closed; the body is not closed with it.
//
// A body that begins like a gzip file is unpacked even where nobody says so: a
// file that is stored as list.txt.gz comes with all kinds of types.
func decode(body io.Reader, encodings []string, contentType string, limit int64) (io.ReadCloser, error) {
	unpacked, err := unpack(&boundedReader{r: body, limit: limit}, encodings)
	if err != nil {
		return nil, err
	}
	text, err := decodeText(unpacked, contentType, limit)
	if err != nil {
		unpacked.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{text, unpacked}, nil
}

func decodeText(unpacked io.Reader, contentType string, limit int64) (io.Reader, error) {
	text := bufio.NewReader(&boundedReader{r: unpacked, limit: limit})
	start, err := peek(text)
	if err == nil && bytes.HasPrefix(start, []byte("\x1f\x8b\x08")) {
		var file *gzip.Reader
		if file, err = gzip.NewReader(text); err == nil {
			text = bufio.NewReader(&boundedReader{r: file, limit: limit})
			start, err = peek(text)
		}
	}
	if err != nil {
		return nil, err
	}
	if e := charsetOf(start, contentType); e != nil {
		return &boundedReader{r: transform.NewReader(text, e.NewDecoder()), limit: limit}, nil
	}
	return text, nil
}

// peek returns the beginning of a stream, less than sniffed bytes if it ends.
func peek(r *bufio.Reader) ([]byte, error) {
	start, err := r.Peek(sniffed)
	if err == io.EOF {
		err = nil
	}
	return start, err
}

// unpack undoes the one content encoding that a body may have.
func unpack(body io.Reader, encodings []string) (io.ReadCloser, error) {
	var named []string
	for _, name := range strings.Split(strings.Join(encodings, ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
			named = append(named, name)
		}
	}
	switch len(named) {
	case 0:
		return io.NopCloser(body), nil
	case 1:
	default:
		return nil, errStacked
	}
	var r io.ReadCloser
	var err error
	switch named[0] {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(body)
	case "br":
		r = io.NopCloser(brotli.NewReader(body))
	case "zstd":
		var d *zstd.Decoder
		// A single thread starts no goroutines.
		d, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err == nil {
			r = d.IOReadCloser()
		}
	default:
		return nil, fmt.Errorf("content encoding %s, which was not asked for", proxyurl.Escape(named[0], 40))
	}
	if err != nil {
		return nil, fmt.Errorf("content encoding %s: %w", named[0], err)
	}
	return r, nil
}

// charsetOf returns what makes a text UTF-8; nil where it is left as it is, with
// whatever it has in it that is not. It goes by the byte order mark, then by the
// header, then by the content.
//
// A wrong name is no reason to lose a list. What addresses are made of is the same
// in nearly all charsets, and a name of one of the others is not believed: UTF-16
// is known by its zero bytes.
func charsetOf(start []byte, contentType string) encoding.Encoding {
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		return unicode.UTF8BOM
	case bytes.HasPrefix(start, []byte("\xff\xfe")), bytes.HasPrefix(start, []byte("\xfe\xff")):
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	}
	if order, ok := looksLikeUTF16(start); ok {
		return unicode.UTF16(order, unicode.IgnoreBOM)
	}
	_, params, err := mime.ParseMediaType(contentType)
	var e encoding.Encoding
	var name string
	switch {
	case err == nil && params["charset"] != "":
		e, name = charset.Lookup(params["charset"])
	case bytes.HasPrefix(bytes.TrimSpace(start), []byte("<")): // a page may name it in itself
		e, name, _ = charset.DetermineEncoding(start, "text/html")
	}
	if e == nil || name == "utf-8" || !keepsAddresses(e) {
		return nil
	}
	return e
}

// looksLikeUTF16 says whether nearly every other byte of a text's beginning is
// zero, as in a list written in UTF-16, and which comes first.
func looksLikeUTF16(start []byte) (order unicode.Endianness, ok bool) {
	start = start[:min(len(start), 64)&^1]
	var zeros [2]int
	for i, b := range start {
		if b == 0 {
			zeros[i&1]++
		}
	}
	half := len(start) / 2
	switch {
	case half >= 2 && 4*zeros[1] >= 3*half && zeros[0] == 0:
		return unicode.LittleEndian, true
	case half >= 2 && 4*zeros[0] >= 3*half && zeros[1] == 0:
		return unicode.BigEndian, true
	}
	return unicode.BigEndian, false
}

// keepsAddresses says whether an encoding writes what addresses and the formats
// around them are made of as ASCII does.
func keepsAddresses(e encoding.Encoding) bool {
	const plain = "0123456789.:@/[]{}<>\",;|\r\n abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	got, err := e.NewDecoder().String(plain)
	return err == nil && got == plain
}
