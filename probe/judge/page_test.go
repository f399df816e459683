package judge

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestPage: the answer comes out of it as it went in, and nothing that the asker
// sent gets out of its place.
func TestPage(t *testing.T) {
	w := ask(t, &Handler{Key: testKey}, "/?form=page&nonce="+nonce, http.Header{"X": {"</pre><script>alert(1)</script>&\u2028\n</pre>\n"}})
	answer, err := CutPage(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var a Answer
	if err := json.Unmarshal(answer, &a); err != nil || a.Verify(testKey) != nil || !strings.HasPrefix(a.Headers["X"][0], "</pre><script>") {
		t.Errorf("%v, %+v", err, a)
	}
	if bytes.ContainsAny(answer, "<>&\n") {
		t.Errorf("the asker's text stands in the page raw: %s", answer)
	}
	if n := len(KnownPage); n < 1500 || n > 4000 {
		t.Errorf("the page has %d bytes", n)
	}
	if answer, err := CutPage([]byte(KnownPage)); err != nil || string(answer) != "{}" {
		t.Errorf("the known page: %q, %v", answer, err)
	}
	for _, part := range []string{PageBefore, PageAfter} {
		for _, sought := range []string{"<script", "</script>"} {
			if !strings.Contains(part, sought) {
				t.Errorf("an injector who looks for %s does not find it", sought)
			}
		}
	}
}

// TestP4_TamperingIsSeen: what injectors, blockers and rewriters do to pages.
func TestP4_TamperingIsSeen(t *testing.T) {
	page := string(Page(Answer{Version: Version, Nonce: nonce}))
	replace := func(old, new string) string {
		changed := strings.Replace(page, old, new, 1)
		if changed == page {
			t.Fatalf("nothing to replace: %s", old)
		}
		return changed
	}
	const altered = "a judge's page, altered by somebody, from byte "
	for _, test := range []struct{ name, page, want string }{
		{"script before the head's end", replace("</head>", "<script src=http://ads.example/x.js></script></head>"), altered},
		{"script behind the body's start", replace("<body>", "<body><script>x()</script>"), altered},
		{"script before the body's end", replace("</body>", "<script>x()</script></body>"), altered},
		{"script behind all", page + "<script>x()</script>", altered},
		{"script before all", "<script>x()</script>" + page, altered + "1"},
		{"one line more", page + "\n", altered},
		{"image blocked", replace(`<img src="/banner.png"`, `<xxx src="/banner.png"`), altered},
		{"script blocked", replace(`<script src="/page.js"></script>`, ""), altered},
		{"link upgraded", replace("http://www.example.com/", "https://www.example.com/"), altered},
		{"link downgraded", replace("https://www.example.com/", "http://www.example.com/"), altered},
		{"number changed", replace("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"), altered},
		{"line ends", strings.ReplaceAll(page, "\n", "\r\n"), altered},
		{"spaces squeezed", strings.ReplaceAll(page, "\n", " "), altered},
		{"title gone, the rest left", page[strings.Index(page, "<body>"):], altered},
		{"answer gone", PageBefore + PageAfter, altered},
		{"answer and its line gone", PageBefore[:len(PageBefore)-1] + PageAfter, altered},
		{"answer in two lines", replace(`,"address"`, ",\n\"address\""), altered},
		{"framed", "<html><frameset>" + page + "</frameset></html>", altered},

		{"cut in the head", page[:300], "a judge's page, cut short"},
		{"cut in the answer", page[:len(PageBefore)+20], "a judge's page, cut short"},
		{"cut behind the answer", page[:len(page)-30], "a judge's page, cut short"},
		{"cut by one byte", page[:len(page)-1], "a judge's page, cut short"},

		{"nothing", "", "not a judge's page"},
		{"so little that it may be anything", page[:30], "not a judge's page"},
		{"a captive page", "<html><title>Welcome</title>Please log in.</html>", "not a judge's page"},
		{"a captive page with the URL", "<html>Please log in to see /?nonce=" + nonce + "&form=page", "not a judge's page"},
	} {
		if answer, err := CutPage([]byte(test.page)); err == nil || !strings.HasPrefix(err.Error(), test.want) || answer != nil {
			t.Errorf("%s: %v, answer %q; want %s", test.name, err, answer, test.want)
		}
	}
	_, err := CutPage([]byte(replace("</body>", "<script>x()</script></body>")))
	if want := strings.Index(page, "</body>") + 1; !errors.Is(err, ErrPageAltered) || !strings.HasSuffix(err.Error(), " "+strconv.Itoa(want)+" on") {
		t.Errorf("%v, want byte %d", err, want)
	}
}

// FuzzCutPage: what is cut out, put back, is the page, byte for byte; and every
// page that is not one has one of the three errors.
func FuzzCutPage(f *testing.F) {
	f.Add([]byte(KnownPage), "{}", 0, byte('x'))
	f.Add([]byte("<html>"), `{"a":1}`, 1700, byte('\n'))
	f.Fuzz(func(t *testing.T, body []byte, answer string, at int, b byte) {
		cut, err := CutPage(body)
		switch {
		case err == nil:
			if PageBefore+string(cut)+PageAfter != string(body) {
				t.Errorf("cut %q out of %q", cut, body)
			}
		case !errors.Is(err, ErrNoPage) && !errors.Is(err, ErrPageCut) && !errors.Is(err, ErrPageAltered):
			t.Errorf("error %v", err)
		}
		if answer == "" || strings.Contains(answer, "\n") {
			return
		}
		page := []byte(PageBefore + answer + PageAfter)
		if cut, err := CutPage(page); err != nil || string(cut) != answer {
			t.Errorf("cut %q, %v; want %q", cut, err, answer)
		}
		// One byte of the constant parts, changed, is seen.
		at = int(uint(at) % uint(len(page)))
		if inside := at >= len(PageBefore) && at < len(PageBefore)+len(answer); inside || page[at] == b {
			return
		}
		page[at] = b
		if cut, err := CutPage(page); err == nil {
			t.Errorf("byte %d changed to %q, and cut %q", at, b, cut)
		}
	})
}
