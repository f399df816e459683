package probe

import (
	"encoding/base64"

	"evenpool/sources/proxyurl"
)

// userAgent is what judges and proxies see of us: the truth.
const userAgent = "evenpool-probe/1"

// connect asks an http proxy for a tunnel (RFC 9110 section 9.3.6). An answer of
// 2xx has no body, whatever its headers say.
func connect(conn *stream, proxy proxyurl.Endpoint, to destination) error {
	at := to.hostport()
	b := append(make([]byte, 0, 256), "CONNECT "...)
	b = append(append(append(append(b, at...), " HTTP/1.1\r\nHost: "...), at...), "\r\n"...)
	b = append(authorize(b, proxy), "User-Agent: "+userAgent+"\r\n\r\n"...)
	if _, err := conn.Write(b); err != nil {
		return err
	}
	head, err := readHead(conn.r, nil)
	switch {
	case err != nil:
		return err
	case head.status == 407, head.status == 401 && proxy.HasUser(): // Tinyproxy says 401 of wrong ones
		return faultf(AuthRequired, "CONNECT: status %d", head.status)
	case head.status/100 != 2:
		return faultf(ConnectRefused, "CONNECT: status %d", head.status)
	}
	return nil
}

// authorize adds Basic credentials (RFC 7617), if the endpoint has any.
func authorize(b []byte, proxy proxyurl.Endpoint) []byte {
	if !proxy.HasUser() {
		return b
	}
	b = append(b, "Proxy-Authorization: Basic "...)
	b = base64.StdEncoding.AppendEncode(b, []byte(proxy.User()+":"+proxy.Password()))
	return append(b, "\r\n"...)
}
