package main

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

func TestFiguresAndTheirBars(t *testing.T) {
	for _, c := range []struct {
		f      figure
		want   string
		missed bool
	}{
		{figure{"alloc.a", 0.45678, "ratio", "<=0.45"}, "alloc.a 0.457 ratio <=0.45", true},
		{figure{"alloc.b", 0.45, "ratio", "<=0.45"}, "alloc.b 0.450 ratio <=0.45", false},
		{figure{"alloc.c", 0.499, "ratio", ">=0.5"}, "alloc.c 0.499 ratio >=0.5", true},
		{figure{"alloc.d", 99, "us", ""}, "alloc.d 99.000 us -", false},
	} {
		if got := c.f.String(); got != c.want || c.f.missed() != c.missed {
			t.Errorf("%s, missed %t; want %s, %t", got, c.f.missed(), c.want, c.missed)
		}
	}
	if got := middle([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("median %v", got)
	}
	for _, m := range measurements() {
		did := make([]measured, len(m.ways))
		if n := len(m.values(did)); n != len(m.figures) {
			t.Errorf("%s: %d values for %d figures", m.figures[0].name, n, len(m.figures))
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
