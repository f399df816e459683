package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		in   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.in); got != test.want {
			t.Errorf("median of %v: %v, want %v", test.in, got, test.want)
		}
	}
}

// TestReadAnswer: only a whole answer of 200 counts, and the next one begins where it ended.
func TestReadAnswer(t *testing.T) {
	in := bufio.NewReader(strings.NewReader(
		"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none" +
			"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo" +
			"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}" +
			"HTTP/1.1 200 OK\r\n\r\n"))
	for _, want := range []string{"one", "two"} {
		var body bytes.Buffer
		if err := readAnswer(in, &body); err != nil || body.String() != want {
			t.Errorf("%q, %v, want %q", body.String(), err, want)
		}
	}
	for _, want := range []string{`HTTP/1.1 503 Service Unavailable: "{}"`, "an answer without Content-Length", "EOF"} {
		if err := readAnswer(in, new(bytes.Buffer)); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
