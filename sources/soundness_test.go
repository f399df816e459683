package sources

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"evenpool/sources/proxyurl"
)

func allow(texts ...string) (a proxyurl.Allow) {
	for _, text := range texts {
		a = append(a, netip.MustParsePrefix(text))
	}
	return a
}

func TestL6_ABrokenListIsNotAnEmptyOne(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
		says       string
	}{
		{"a good list", "1.2.3.4:80\n", nil, ""},
		{"half of it unreadable", "1.2.3.4:80\nnonsense\n", nil, ""},
		{"most of it unreadable", "1.2.3.4:80\nnonsense\n1.2.3.4:080\n", ErrUnreadable,
			"most lines are unreadable: 2 of 3 (bad-port 1, unparseable 1)"},
		{"all overlong", strings.Repeat("x", 600) + "\n" + strings.Repeat("y", 600), ErrUnreadable,
			"most lines are unreadable: 2 of 2 (line-too-long 2)"},
		{"mostly what cannot be used", "1.2.3.4:80\n10.0.0.1:80\n10.0.0.2:80\nvmess://x\n", nil, ""},
		{"nothing that can be used", "10.0.0.1:80\n10.0.0.2:80\nvmess://x\n", ErrEmpty,
			"the list names no candidate in 3 records (private 2, unsupported-scheme 1)"},
		{"nothing that can be used, most of it VPNs", "10.0.0.1:80\nvmess://x\nvmess://y\n", ErrEmpty,
			"the list names no candidate in 3 records (unsupported-scheme 2, private 1)"},
		{"no byte", "", ErrEmpty, "the list names no candidate"},
		{"one newline", "\n", ErrEmpty, "the list names no candidate"},
		{"comments alone", "# none today\n", ErrEmpty, "the list names no candidate"},
		{"HTML", "<!DOCTYPE html>\n<html>\n1.2.3.4:80\n1.2.3.5:80\n1.2.3.6:80\n", ErrMarkup, "a page of HTML or XML in place of a list"},
		{"HTML without a doctype", "\n  <HTML><body>1.2.3.4:80</body></html>", ErrMarkup, "a page of HTML or XML in place of a list"},
		{"HTML on one long line", "<html>" + strings.Repeat("x", 600), ErrMarkup, "a page of HTML or XML in place of a list"},
		{"XML", "<?xml version=\"1.0\"?>\n<a/>\n", ErrMarkup, "a page of HTML or XML in place of a list"},
		{"an arrow", "<- the list\n1.2.3.4:80\n1.2.3.5:80\n", nil, ""},
		{"one character", "<\n1.2.3.4:80\n1.2.3.5:80\n", nil, ""},
	} {
		_, err := Parse(strings.NewReader(c.text), Source{Scheme: proxyurl.HTTP}, Limits{})
		if !errors.Is(err, c.want) || err != nil && err.Error() != c.says {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
}

func TestL6_Shrunk(t *testing.T) {
	list := func(n int) List { return List{Candidates: make([]Candidate, n)} }
	for _, c := range []struct {
		before, now int
		want        string
	}{
		{100, 21, ""},
		{100, 20, ""},
		{100, 19, "the list shrank by more than 80 %: from 100 candidates to 19"},
		{5, 1, ""},
		{6, 1, "the list shrank by more than 80 %: from 6 candidates to 1"},
		{1, 1, ""},
		{10, 1000, ""},
	} {
		err := shrunk(list(c.now), c.before)
		if got := errors.Is(err, ErrShrunk); got != (c.want != "") || err != nil && err.Error() != c.want {
			t.Errorf("from %d to %d: %v, want %q", c.before, c.now, err, c.want)
		}
	}
}
