package lab

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
)

// once reads a request, and then does what it is made for.
func once(then func(s *session)) behaviour {
	return func(_ context.Context, s *session) {
		if _, err := s.readRequest(); err == nil {
			then(s)
		}
	}
}

// says answers every request with a fixed text, which it repeats for ever if
// there is something to repeat.
func says(text, repeat string) behaviour {
	return once(func(s *session) {
		if _, err := io.WriteString(s, text); err != nil || repeat == "" {
			return
		}
		piece := bytes.Repeat([]byte(repeat), 1+4096/len(repeat))
		s.flood(func() []byte { return piece })
	})
}

// silent accepts and never says a word.
func silent(_ context.Context, s *session) { s.hold() }

// closes takes the request and hangs up.
func closes(*session) {}

func resets(s *session) { reset(s.Conn) }

// firstOnly is a good proxy once.
func firstOnly(ctx context.Context, s *session) {
	if s.proxy.served.Add(1) == 1 {
		httpProxy{}.serve(ctx, s)
		return
	}
	once(closes)(ctx, s)
}

// captive has one page for everything, as the network of a hotel has.
func captive(s *session) {
	s.answer(http.StatusOK, "", "<html><title>Welcome</title>Please log in to use this network.</html>\n")
}

// The texts that bad proxies answer with, and what they repeat.
const (
	// garbage is no HTTP; it would write to a terminal that shows it raw.
	garbage = "\x00\xff\xfeSSH-2.0-\x1b]0;lab\x07\x1b[31m\u202e\x9b2J\r\n\r\n"

	// bare407 has neither a reason phrase nor a challenge.
	bare407      = "HTTP/1.1 407 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	badGateway   = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	brokenAnswer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 6\r\nConnection: close\r\n\r\nbroken"
	elsewhere    = "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

	headStart  = "HTTP/1.1 200 OK\r\n"
	headerLine = "X-Flood: 0123456789012345678901234567890123456789\r\n"
	interim    = "HTTP/1.1 102 Processing\r\n\r\n"
	bodyStart  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"flood\":\""
	chunkStart = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	chunk      = "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n"
)

// halfThenReset sends half of the destination's answer, and breaks off.
func halfThenReset(s *session, answer []byte) {
	s.Write(answer[:len(answer)/2])
	reset(s.Conn)
}

// halfThenEnd sends all but the last bytes of the answer, says that this was all, and
// keeps listening.
func halfThenEnd(s *session, answer []byte) {
	s.Write(answer[:max(0, len(answer)-8)])
	if s.CloseWrite() == nil {
		s.hold()
	}
}

// drip sends the answer byte by byte, so slowly that every wait is short and the
// whole is long.
func drip(s *session, answer []byte) {
	for i := range answer {
		if _, err := s.Write(answer[i : i+1]); err != nil || !s.wait(s.lab.slow/20) {
			return
		}
	}
}

// endlessTrailers sends the answer in chunks, and trailers behind it for ever.
func endlessTrailers(s *session, answer []byte) {
	_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	fmt.Fprintf(s, "%s%x\r\n%s\r\n0\r\n", chunkStart, len(body), body)
	piece := bytes.Repeat([]byte(headerLine), 64)
	s.flood(func() []byte { return piece })
}

// bomb is small and unpacks to 16 MiB.
func bomb(s *session) {
	packed := s.lab.bomb()
	fmt.Fprintf(s, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(packed))
	s.Write(packed)
}

// packBomb packs it: gzip members may stand in a row.
func packBomb() []byte {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	w.Write(make([]byte, 256<<10))
	w.Close()
	return bytes.Repeat(member.Bytes(), 64)
}

// floodConnect answers a CONNECT with a head that does not end.
func floodConnect(_ context.Context, s *session, _ string) {
	io.WriteString(s, "HTTP/1.1 200 Connection established\r\n")
	piece := bytes.Repeat([]byte(headerLine), 64)
	s.flood(func() []byte { return piece })
}

// What is done with a CONNECT that is not refused.

func connect407(_ context.Context, s *session, _ string) {
	s.answer(http.StatusProxyAuthRequired, "Proxy-Authenticate: Basic realm=\"lab\"\r\n", "a password is needed\n")
}

func connectSilent(_ context.Context, s *session, _ string) { s.hold() }

func tunnelSilent(_ context.Context, s *session, _ string) {
	io.WriteString(s, established)
	s.hold()
}

// tunnelCloses waits for the client to begin: a connection that is closed with
// bytes unread ends in a reset, and this one is to end in order.
func tunnelCloses(_ context.Context, s *session, _ string) {
	io.WriteString(s, established)
	s.drain()
}

func tunnelGarbage(_ context.Context, s *session, _ string) {
	io.WriteString(s, established)
	s.drain()
	io.WriteString(s, "220 lab.example.org ESMTP\r\n")
}
