package main

import (
	"strings"
	"testing"
	"time"

	"evenpool/daemon/api"
)

// sourceStates are lists in every state there is.
func sourceStates(now time.Time) []api.Source {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	return []api.Source{
		{Name: "fine", State: api.SourceGood, Format: "plain", Candidates: 123456, New: 17, TriedAt: ago(3 * time.Minute), FetchedAt: ago(3 * time.Minute), NextFetchAt: now.Add(27 * time.Minute)},
		{Name: "page", State: api.SourceStale, Format: "csv", Stale: true, Candidates: 400, TriedAt: ago(time.Minute), FetchedAt: ago(31 * time.Hour), NextFetchAt: now.Add(time.Minute),
			Error: "fetch page: a page of HTML or XML in place of a list", Rejects: api.Counts{"bad-port": 2, "unparseable": 7}, Refused: api.Counts{"port-25": 1},
			Samples: []api.Sample{{Line: 6, Reason: "bad-port", Text: "1.2.3.4:0"}, {Line: 7, Reason: "unparseable", Text: "\x1b[2J"}}},
		{Name: "polite", State: api.SourceFailed, TriedAt: ago(time.Second), Error: "fetch polite: status 429 (Too Many Requests); the server asks to be left alone until 2024-05-06T08:38:09Z", WaitUntil: now.Add(90 * time.Minute), NextFetchAt: now.Add(20 * time.Second)},
		{Name: "later", State: api.SourceNew, NextFetchAt: now.Add(50 * time.Hour)},
	}
}

func TestSourcesTable(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	const want = `SOURCE  STATE   CANDIDATES  NEW  REJECTED  REFUSED  TRIED  COPY  NEXT
fine    good    123456      17   0         0        3m     3m    27m
page    stale   400         0    9         1        1m     1d    1m
polite  failed  0           0    0         0        1s     -     20s
later   new     0           0    0         0        -      -     2d

page (csv)
  fetch page: a page of HTML or XML in place of a list
  rejected: unparseable 7, bad-port 2
    line 6: bad-port: 1.2.3.4:0
    line 7: unparseable: \x1b[2J
  refused: port-25 1

polite
  fetch polite: status 429 (Too Many Requests); the server asks to be left alone until 2024-05-06T08:38:09Z
`
	var b strings.Builder
	if err := writeSources(&b, sourceStates(now), now); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for line := range strings.Lines(want) {
		if len(line) > 81 && !strings.Contains(line, ": ") {
			t.Errorf("does not fit into 80 columns: %s", line)
		}
	}
}

func TestSourcesCommand(t *testing.T) {
	socket, asked := answering(t, 200, api.Sources{Sources: sourceStates(time.Now())})
	code, stdout, stderr := runCLI(t, "sources", "--socket", socket)
	if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "SOURCE  STATE ") || *asked != "GET /v1/sources" {
		t.Errorf("exit %d, %q, %q, %s", code, stdout, stderr, *asked)
	}
	code, stdout, stderr = runCLI(t, "sources", "-o", "json", "--socket", socket)
	if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "{\n  \"sources\": [\n    {\n      \"name\": \"fine\",") {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if code, _, stderr = runCLI(t, "sources", "chek"); code != exitUsage || stderr != "evenpool: unknown command \"chek\"; 'evenpool sources --help' lists them\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestSourcesFetch(t *testing.T) {
	states := sourceStates(time.Now())
	for _, tc := range []struct {
		name   string
		status int
		answer any
		code   int
		stderr string // without "evenpool: "
	}{
		{"good", 200, states[0], exitDone, ""},
		{"a page in place of the list", 200, states[1], exitFailed, "fetch page: a page of HTML or XML in place of a list"},
		{"the server asks for patience", 200, states[2], exitUnavailable, "fetch polite: status 429 (Too Many Requests); the server asks to be left alone until 2024-05-06T08:38:09Z"},
		{"under way", 503, &api.Error{Code: api.CodeBusy, Message: "busy: a fetch of page is under way", RetryAfter: time.Second}, exitUnavailable,
			"busy: a fetch of page is under way; try again in 1s"},
		{"unknown", 404, &api.Error{Code: api.CodeNotFound, Message: "no source page; configured: fine"}, exitUsage, "no source page; configured: fine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			socket, asked := answering(t, tc.status, tc.answer)
			for _, format := range []string{"text", "json"} {
				code, stdout, stderr := runCLI(t, "sources", "fetch", "page", "--socket", socket, "-o", format)
				want := "evenpool: " + tc.stderr + "\n"
				if tc.stderr == "" {
					want = ""
				}
				if code != tc.code || stderr != want || *asked != "POST /v1/sources/page/fetch" {
					t.Errorf("exit %d, %q, %s; want %d, %q", code, stderr, *asked, tc.code, want)
				}
				start := map[string]string{"text": "SOURCE  STATE ", "json": "{\n  \"name\": "}[format]
				if tc.status == 200 && !strings.HasPrefix(stdout, start) || tc.status != 200 && stdout != "" {
					t.Errorf("stdout %q", stdout)
				}
			}
		})
	}
	for args, want := range map[string]string{
		"":                  "sources fetch takes the name of one source; 'evenpool sources' lists them",
		"a b":               "sources fetch takes the name of one source; 'evenpool sources' lists them",
		"a --timeout 2h":    "--timeout 2h0m0s: expected 10ms to 1h",
		"a --timeout never": "invalid value \"never\" for flag -timeout: parse error; see 'evenpool sources fetch --help'",
	} {
		code, stdout, stderr := runCLI(t, append([]string{"sources", "fetch"}, strings.Fields(args)...)...)
		if code != exitUsage || stdout != "" || stderr != "evenpool: "+want+"\n" {
			t.Errorf("%s: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
