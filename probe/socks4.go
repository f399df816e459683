package probe

import (
	"encoding/binary"
	"io"
	"net/netip"

	"evenpool/sources/proxyurl"
)

// SOCKS 4 (Ying-Da Lee, "SOCKS: A protocol for TCP proxy across firewalls") and
// its extension 4A: VN 4, CD 1 (connect), port, IPv4 address, user, NUL; with 4A
// the address is 0.0.0.1 and the name follows, NUL. There are no passwords.

func socks4(conn *stream, proxy proxyurl.Endpoint, to destination) error {
	return connect4(conn, proxy.User(), to.port, to.addr, "")
}

// socks4a leaves resolving to the proxy. An IPv4 address needs none.
func socks4a(conn *stream, proxy proxyurl.Endpoint, to destination) error {
	switch {
	case to.addr.Is4():
		return connect4(conn, proxy.User(), to.port, to.addr, "")
	case to.addr.IsValid():
		return faultf(JudgeAddress, "the judge has an IPv6 address, which SOCKS 4A cannot ask for")
	}
	return connect4(conn, proxy.User(), to.port, netip.AddrFrom4([4]byte{0, 0, 0, 1}), to.host)
}

func connect4(conn *stream, user string, port uint16, addr netip.Addr, name string) error {
	request := binary.BigEndian.AppendUint16([]byte{4, 1}, port)
	request = append(request, addr.AsSlice()...)
	request = append(append(request, user...), 0)
	if name != "" {
		request = append(append(request, name...), 0)
	}
	if _, err := conn.Write(request); err != nil {
		return err
	}
	var first [1]byte
	if _, err := io.ReadFull(conn.r, first[:]); err != nil {
		return err
	}
	if first[0] != 0 { // the reply's version; not 4
		return faultf(Garbage, "SOCKS 4 reply begins with byte %#02x in place of 0x00", first[0])
	}
	var rest [7]byte
	if _, err := io.ReadFull(conn.r, rest[:]); err != nil {
		return err
	}
	switch code := rest[0]; code {
	case 90:
		return nil
	case 91:
		return faultf(SOCKSRefused, "SOCKS 4 reply 91: rejected or failed")
	case 92, 93:
		return faultf(AuthRequired, "SOCKS 4 reply %d: the user is not confirmed by identd", code)
	default:
		return faultf(Garbage, "SOCKS 4 reply %d", code)
	}
}
