package probe

import (
	"encoding/base64"
	"strings"

	"evenpool/sources/proxyurl"
)

// userAgent is what judges and proxies see of us: the truth.
const userAgent = "evenpool-probe/1"

// request writes the question down. In absolute form (RFC 9112 section 3.2.2) it
// is for an http proxy, with its credentials; else for the judge itself.
func (q question) request(absolute bool, proxy proxyurl.Endpoint) []byte {
	var b strings.Builder
	b.Grow(256)
	b.WriteString("GET ")
	if absolute {
		b.WriteString("http://" + q.host)
	}
	b.WriteString(q.path + " HTTP/1.1\r\nHost: " + q.host + "\r\n")
	if absolute {
		authorize(&b, proxy)
	}
	b.WriteString("User-Agent: " + userAgent + "\r\nAccept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n")
	return []byte(b.String())
}

// connect asks an http proxy for a tunnel (RFC 9110 section 9.3.6). An answer of
// 2xx has no body, whatever its headers say.
func connect(conn *stream, proxy proxyurl.Endpoint, to target) error {
	var b strings.Builder
	b.WriteString("CONNECT " + to.hostport() + " HTTP/1.1\r\nHost: " + to.hostport() + "\r\n")
	authorize(&b, proxy)
	b.WriteString("User-Agent: " + userAgent + "\r\n\r\n")
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return err
	}
	head, err := readHead(conn.r)
	switch {
	case err != nil:
		return err
	case head.status == 407:
		return faultf(AuthRequired, "CONNECT: status 407")
	case head.status/100 != 2:
		return faultf(ConnectRefused, "CONNECT: status %d", head.status)
	}
	return nil
}

// authorize adds Basic credentials (RFC 7617), if the endpoint has any.
func authorize(b *strings.Builder, proxy proxyurl.Endpoint) {
	if proxy.HasUser() {
		pair := proxy.User() + ":" + proxy.Password()
		b.WriteString("Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(pair)) + "\r\n")
	}
}
