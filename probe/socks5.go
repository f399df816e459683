package probe

import (
	"encoding/binary"
	"fmt"
	"io"

	"evenpool/sources/proxyurl"
)

// RFC 1928.
const (
	socks5Version    = 5
	methodNone       = 0
	methodPassword   = 2
	methodNoneOfThem = 0xff
	addressIPv4      = 1
	addressName      = 3
	addressIPv6      = 4
)

// socks5 sends the judge's name as it is, if it was given no address: the proxy
// resolves it then. With credentials it offers both to give them and not to, and the proxy chooses.
func socks5(conn *stream, proxy proxyurl.Endpoint, to destination) error {
	if err := greet5(conn, proxy); err != nil {
		return err
	}
	request := []byte{socks5Version, 1, 0}
	switch {
	case to.addr.Is4():
		request = append(append(request, addressIPv4), to.addr.AsSlice()...)
	case to.addr.IsValid():
		request = append(append(request, addressIPv6), to.addr.AsSlice()...)
	case len(to.host) > 255:
		return faultf(JudgeAddress, "the judge's name is too long for SOCKS 5")
	default:
		request = append(append(request, addressName, byte(len(to.host))), to.host...)
	}
	if _, err := conn.Write(binary.BigEndian.AppendUint16(request, to.port)); err != nil {
		return err
	}
	return readReply5(conn, !to.addr.IsValid())
}

// greet5 agrees on a method and, if it is RFC 1929's, authenticates.
func greet5(conn *stream, proxy proxyurl.Endpoint) error {
	greeting := []byte{socks5Version, 1, methodNone}
	if proxy.HasUser() {
		greeting = []byte{socks5Version, 2, methodNone, methodPassword}
	}
	if _, err := conn.Write(greeting); err != nil {
		return err
	}
	if err := expect5(conn, "version", socks5Version); err != nil {
		return err
	}
	method, err := conn.r.ReadByte()
	switch {
	case err != nil:
		return err
	case method == methodNone:
		return nil
	case method == methodPassword && proxy.HasUser():
		return password5(conn, proxy)
	case method == methodNoneOfThem, method == methodPassword:
		return faultf(AuthRequired, "SOCKS 5 method %#02x", method)
	}
	return faultf(Garbage, "SOCKS 5 method %#02x, which was not offered", method)
}

// password5 is RFC 1929. Both lengths were checked when the endpoint was made.
func password5(conn *stream, proxy proxyurl.Endpoint) error {
	request := append([]byte{1, byte(len(proxy.User()))}, proxy.User()...)
	request = append(append(request, byte(len(proxy.Password()))), proxy.Password()...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	if err := expect5(conn, "authentication version", 1); err != nil {
		return err
	}
	status, err := conn.r.ReadByte()
	if err == nil && status != 0 {
		err = faultf(AuthRequired, "SOCKS 5: user and password refused")
	}
	return err
}

// readReply5 reads the reply to its last byte, so that the next one is the
// target's. named: the request held a name.
func readReply5(conn *stream, named bool) error {
	if err := expect5(conn, "reply version", socks5Version); err != nil {
		return err
	}
	var head [3]byte // reply, reserved, kind of address
	if _, err := io.ReadFull(conn.r, head[:1]); err != nil {
		return err
	}
	if head[0] != 0 {
		// What it says of a name that it cannot resolve, or of names as such.
		perhaps := head[0] == 1 || head[0] == 3 || head[0] == 4 || head[0] == 8
		return &fault{outcome: SOCKSRefused, detail: "SOCKS 5 reply " + reply5(head[0]), names: named && perhaps}
	}
	if _, err := io.ReadFull(conn.r, head[1:]); err != nil {
		return err
	}
	var length int
	switch head[2] {
	case addressIPv4:
		length = 4
	case addressIPv6:
		length = 16
	case addressName:
		n, err := conn.r.ReadByte()
		if err != nil {
			return err
		}
		length = int(n)
	default:
		return faultf(Garbage, "SOCKS 5 reply with an address of kind %#02x", head[2])
	}
	_, err := conn.r.Discard(length + 2)
	return err
}

func expect5(conn *stream, what string, want byte) error {
	got, err := conn.r.ReadByte()
	if err == nil && got != want {
		err = faultf(Garbage, "SOCKS 5 %s %#02x in place of %#02x", what, got, want)
	}
	return err
}

// reply5 names a reply as RFC 1928 section 6 does.
func reply5(code byte) string {
	names := [...]string{1: "general failure", 2: "not allowed", 3: "network unreachable", 4: "host unreachable",
		5: "connection refused", 6: "TTL expired", 7: "command not supported", 8: "address type not supported"}
	if int(code) < len(names) {
		return fmt.Sprintf("%d: %s", code, names[code])
	}
	return fmt.Sprint(code)
}
