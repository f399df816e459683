package sources

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge says that a list has more bytes than Limits.MaxBytes.
var ErrTooLarge = errors.New("the list is too large")

// lineReader cuts a stream into lines. It holds one buffer, whatever the lines
// are like: what a line has beyond the buffer is read and dropped.
type lineReader struct {
	r      *bufio.Reader
	max    int  // bytes in a line, its end not counted
	number int  // of the line returned last, from 1
	ended  bool // it had an end, and is not merely where the stream ends
}

func newLineReader(r io.Reader, longest int) *lineReader {
	// Room for a longest line and its CR, LF: a fuller buffer is a longer line.
	return &lineReader{r: bufio.NewReaderSize(r, max(longest+2, 4096)), max: longest}
}

// next returns the next line without its end (LF or CR LF), valid until the next
// call. Of a line that is too long it returns the beginning. At the end it
// returns io.EOF, else an error of the stream; a line that the stream breaks off
// is then lost, since nobody knows how it would have gone on.
func (l *lineReader) next() (line []byte, long bool, err error) {
	line, err = l.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			line, long = bytes.Clone(line[:l.max]), true
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = l.r.ReadSlice('\n')
			}
		}
		if err != nil && (err != io.EOF || len(line) == 0) {
			return nil, false, err
		}
	}
	l.number++
	l.ended = err == nil
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	if len(line) > l.max {
		line, long = line[:l.max], true
	}
	return line, long, nil
}

// ahead returns what follows the line returned last: what has been read already,
// or as much as there is room for. It makes that line invalid.
func (l *lineReader) ahead(far bool) []byte {
	n := l.r.Buffered()
	if far {
		n = l.r.Size() - 1
	}
	ahead, _ := l.r.Peek(n)
	return ahead
}

// skip drops so many bytes of what ahead returned, which are whole lines.
func (l *lineReader) skip(length int) {
	if length == 0 {
		return
	}
	dropped, _ := l.r.Peek(length)
	l.number += bytes.Count(dropped, []byte("\n"))
	l.ended = true
	l.r.Discard(length)
}

// boundedReader ends with ErrTooLarge where the stream goes on after its limit.
type boundedReader struct {
	r     io.Reader
	limit int64
	read  int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	// One byte more than the limit, so that a stream of just that length ends well.
	if left := b.limit + 1 - b.read; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	if b.read > b.limit {
		return n, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.limit)
	}
	return n, err
}
