package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// PageBefore and PageAfter stand around the answer in the page form. They are
// constant, and hold what those who alter pages look for: a head and a body,
// scripts, style sheets, images, links, a form, and places that ask to be
// filled. So whatever differs from them was changed on the way.
const (
	PageBefore = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>evenpool judge: known page 2</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="A page of known content. Nobody on the way has any reason to change it.">
<meta name="robots" content="noindex, nofollow">
<link rel="stylesheet" href="/style.css">
<link rel="icon" href="/favicon.ico">
<style>
body { font-family: sans-serif; max-width: 40em; margin: 2em auto }
</style>
<script src="/page.js"></script>
<script>
var judge = { page: 2, changed: false };
</script>
</head>
<body>
<h1>This page is a question</h1>
<p>It is sent through proxies by those who want to know what the proxies do to it.
An honest one brings it as it is, byte for byte.</p>
<p><img src="/banner.png" alt="a banner" width="468" height="60"></p>
<ul>
<li><a href="/first.html">a link</a></li>
<li><a href="http://www.example.com/download.zip">a download</a></li>
<li><a href="https://www.example.com/login">a login</a></li>
</ul>
<form action="/login" method="post">
<input type="text" name="user"> <input type="password" name="password">
<input type="submit" value="Log in">
</form>
<iframe src="/frame.html" width="300" height="250"></iframe>
<!-- the answer stands between the next two lines -->
<pre id="answer">
`
	PageAfter = `
</pre>
<div class="ad" id="ad-top"></div>
<p>Addresses and amounts are copied by some and replaced by others:
<code>1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa</code>, <code>user@example.com</code>, <code>$ 1,000.00</code>.</p>
<script>
if (document.scripts.length != 3) { judge.changed = true; }
</script>
<p>End of the known page.</p>
</body>
</html>
`
	// KnownPage is what /page gives: the same page without an answer.
	KnownPage = PageBefore + "{}" + PageAfter
)

// What is wrong with a page that ought to be a judge's.
var (
	ErrNoPage      = errors.New("not a judge's page")                  // something else altogether: a captive page, an error
	ErrPageCut     = errors.New("a judge's page, cut short")           // its beginning, as far as it goes
	ErrPageAltered = errors.New("a judge's page, altered by somebody") // it can be recognised, and something was added, removed or changed
)

// Page is the answer in its page form, some 2 KB. What the asker sent cannot get
// out of it: JSON writes <, > and & as \u003c, \u003e and \u0026.
func Page(a Answer) []byte {
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // texts and numbers: there is nothing that could fail
	}
	page := make([]byte, 0, len(PageBefore)+len(text)+len(PageAfter))
	page = append(page, PageBefore...)
	page = append(page, text...)
	return append(page, PageAfter...)
}

// marks are what a page is recognised by that is no longer as it was. None of
// them stands in a question, which a captive page may repeat.
var marks = [][]byte{
	[]byte("evenpool judge: known page"),
	[]byte("This page is a question"),
	[]byte("the answer stands between the next two lines"),
	[]byte(`"evenpool_judge"`),
	[]byte("End of the known page"),
}

// CutPage cuts the answer out of a page, and wants all else to be constant. The
// error is ErrNoPage, ErrPageCut or ErrPageAltered, the last with where the page
// first differs. The answer shares body's memory, is one line, and is not looked
// at further: it may be anything that the sender liked.
func CutPage(body []byte) (answer []byte, err error) {
	rest, ok := bytes.CutPrefix(body, []byte(PageBefore))
	if !ok {
		return nil, notAsItWas(body, PageBefore, 0)
	}
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		return nil, ErrPageCut
	}
	answer, after := rest[:end], rest[end:]
	at := len(PageBefore) + end
	switch {
	case end == 0:
		return nil, fmt.Errorf("%w, from byte %d on", ErrPageAltered, at)
	case string(after) != PageAfter:
		return nil, notAsItWas(after, PageAfter, at)
	}
	return answer, nil
}

// notAsItWas says how got, which begins at an offset of the page, differs from
// what it ought to be.
func notAsItWas(got []byte, want string, offset int) error {
	same := 0
	for same < len(got) && same < len(want) && got[same] == want[same] {
		same++
	}
	switch {
	case offset == 0 && !slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(got, mark) }):
		return ErrNoPage
	case same == len(got):
		return ErrPageCut
	}
	return fmt.Errorf("%w, from byte %d on", ErrPageAltered, offset+same)
}
