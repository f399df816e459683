package main

import (
	"fmt"
	"strings"

	"evenpool/probe"
	"evenpool/sources/proxyurl"
)

// Limits on what is kept of a conversation.
const (
	maxTurn  = 4 << 10 // bytes of what one side said before the other said something
	maxLines = 100     // of them, as they are shown
	maxLine  = 500     // bytes of a line, as it is shown
)

// talk is what was said when one question was put through a proxy.
type talk struct {
	scheme   proxyurl.Scheme
	question probe.Check // whom it asked, for what
	turns    []turn
}

// turn is what one side said before the other did.
type turn struct {
	sent bool // by us
	data []byte
	more int // bytes that are not kept
}

// listen is a probe.Trace.
func (t *tried) listen(scheme proxyurl.Scheme, question probe.Check) func(sent bool, data []byte) {
	talk := &talk{scheme: scheme, question: question}
	t.talks = append(t.talks, talk)
	return talk.add
}

func (t *talk) add(sent bool, data []byte) {
	if len(t.turns) == 0 || t.turns[len(t.turns)-1].sent != sent {
		t.turns = append(t.turns, turn{sent: sent})
	}
	last := &t.turns[len(t.turns)-1]
	kept := min(len(data), maxTurn-len(last.data))
	last.data = append(last.data, data[:kept]...)
	last.more += len(data) - kept
}

// lines writes what was said through a proxy for a terminal, without its password: "> " before what was sent, "< " before
// what was received. Of the ends of lines CR LF alone is not shown.
func (t *talk) lines(e proxyurl.Endpoint) (lines []string) {
	for _, turn := range t.turns {
		mark := "< "
		if turn.sent {
			mark = "> "
		}
		text := e.Hide(string(turn.data), turn.more > 0)
		shown, more := 0, turn.more
		for line := range strings.Lines(text) {
			if shown++; shown > maxLines {
				more += len(line)
				continue
			}
			lines = append(lines, mark+proxyurl.Escape(strings.TrimSuffix(line, "\r\n"), maxLine))
		}
		if more > 0 {
			lines = append(lines, fmt.Sprintf("%s... and %d bytes more", mark, more))
		}
	}
	return lines
}
