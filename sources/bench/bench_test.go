package main

import (
	"bytes"
	"testing"

	"evenpool/sources"
)

// What is measured is what was meant: each list is read to its last record.
func TestEveryListIsReadWhole(t *testing.T) {
	for _, w := range writers() {
		t.Run(w.name, func(t *testing.T) {
			text, n := w.list(1000, 1<<20)
			if n != 1000 {
				t.Fatalf("%d records", n)
			}
			if _, err := read(bytes.NewReader(text), sources.Limits{}, n); err != nil {
				t.Error(err)
			}
			if again, _ := w.list(1000, 1<<20); !bytes.Equal(text, again) {
				t.Error("the second list is another one")
			}
			if short, n := w.list(1000, len(text)/2); len(short) > len(text)/2 || n < 400 {
				t.Errorf("asked for %d bytes, got %d with %d records", len(text)/2, len(short), n)
			}
		})
	}
}

func TestFiguresAndTheirBars(t *testing.T) {
	for _, c := range []struct {
		f      figure
		want   string
		missed bool
	}{
		{figure{"sources.a", 1.23456, "ratio", 2}, "sources.a 1.235 ratio <=2", false},
		{figure{"sources.a", 1.6, "ratio", 1.5}, "sources.a 1.600 ratio <=1.5", true},
		{figure{"sources.b", 99, "MB/s", 0}, "sources.b 99.000 MB/s -", false},
	} {
		if got := c.f.String(); got != c.want || c.f.missed() != c.missed {
			t.Errorf("%s, missed %t; want %s, %t", got, c.f.missed(), c.want, c.missed)
		}
	}
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median %v", got)
	}
	if got := median([]float64{4, 1, 2, 9}); got != 3 {
		t.Errorf("median %v", got)
	}
}
