package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
)

// socks4 is a SOCKS 4 proxy. With names it is a SOCKS 4A one, which takes
// addresses as well.
type socks4 struct {
	names bool
	user  string // who must be named; "": anybody
}

// The replies of SOCKS 4: request granted, request rejected, and that the user
// is another than identd says.
const (
	socks4Granted   = 90
	socks4Rejected  = 91
	socks4WrongUser = 93
)

func (p socks4) serve(ctx context.Context, s *session) {
	var head [8]byte // version, command, port, address
	if _, err := io.ReadFull(s, head[:]); err != nil || head[0] != 4 {
		return
	}
	user, err := s.readString()
	if err != nil {
		return
	}
	reply := func(code byte) bool {
		_, err := s.Write([]byte{0, code, 0, 0, 0, 0, 0, 0})
		return err == nil
	}
	port := binary.BigEndian.Uint16(head[2:])
	host := netip.AddrFrom4([4]byte(head[4:])).String()
	if p.names && bytes.Equal(head[4:7], []byte{0, 0, 0}) && head[7] != 0 {
		name, err := s.readString()
		if err != nil {
			return
		}
		host = name
	}
	switch {
	case head[1] != 1:
		reply(socks4Rejected)
		return
	case p.user != "" && user != p.user:
		reply(socks4WrongUser)
		return
	}
	to, err := s.dial(ctx, net.JoinHostPort(host, strconv.Itoa(int(port))))
	if err != nil {
		reply(socks4Rejected)
		return
	}
	defer s.lab.untrack(to)
	if reply(socks4Granted) {
		relay(s, to)
	}
}

// socks4AnswersSocks5 takes a request of SOCKS 4, and answers it as SOCKS 5 would
// a greeting.
func socks4AnswersSocks5(_ context.Context, s *session) {
	if _, err := io.ReadFull(s, make([]byte, 8)); err != nil {
		return
	}
	if _, err := s.readString(); err == nil {
		s.Write([]byte{5, socks5NoPassword})
	}
}

// readString reads a string that ends with a zero byte, of at most 255 bytes.
func (s *session) readString() (string, error) {
	var text []byte
	for len(text) < 256 {
		c, err := s.reader().ReadByte()
		if err != nil {
			return "", err
		}
		if c == 0 {
			return string(text), nil
		}
		text = append(text, c)
	}
	return "", errors.New("string without an end")
}

// socks5 is a SOCKS 5 proxy (RFC 1928), with a password (RFC 1929) if it has
// one.
type socks5 struct {
	user, password string
	refuses        bool // answers every request "not allowed by ruleset"
	noNames        bool // takes addresses only
	noAddresses    bool // takes names only
	// then, if set, is what it does with what the client says behind the grant.
	then func(s *session)
}

// What SOCKS 5 calls its methods, address types and replies.
const (
	socks5NoPassword   = 0
	socks5Password     = 2
	socks5NoMethod     = 0xff
	socks5IPv4         = 1
	socks5Name         = 3
	socks5IPv6         = 4
	socks5Granted      = 0
	socks5NotAllowed   = 2
	socks5Unreachable  = 4
	socks5NoSuchAction = 7
	socks5NoSuchKind   = 8
)

func (p socks5) serve(ctx context.Context, s *session) {
	if !p.greet(s) {
		return
	}
	var head [4]byte // version, command, reserved, address type
	if _, err := io.ReadFull(s, head[:]); err != nil || head[0] != 5 {
		return
	}
	host, err := s.readSocks5Host(head[3])
	if err != nil {
		return
	}
	var port [2]byte
	if _, err := io.ReadFull(s, port[:]); err != nil {
		return
	}
	reply := func(code byte) bool {
		_, err := s.Write([]byte{5, code, 0, socks5IPv4, 0, 0, 0, 0, 0, 0})
		return err == nil
	}
	if head[1] != 1 {
		reply(socks5NoSuchAction)
		return
	}
	switch named := head[3] == socks5Name; {
	case p.refuses:
		reply(socks5NotAllowed)
		return
	case p.noNames && named, p.noAddresses && !named:
		reply(socks5NoSuchKind)
		return
	case p.then != nil:
		if reply(socks5Granted) {
			s.drain()
			p.then(s)
		}
		return
	}
	to, err := s.dial(ctx, net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(port[:])))))
	switch {
	case errors.Is(err, errOutside):
		reply(socks5NotAllowed)
		return
	case err != nil:
		reply(socks5Unreachable)
		return
	}
	defer s.lab.untrack(to)
	if reply(socks5Granted) {
		relay(s, to)
	}
}

// greet agrees on a method and checks the password.
func (p socks5) greet(s *session) bool {
	var head [2]byte
	if _, err := io.ReadFull(s, head[:]); err != nil || head[0] != 5 {
		return false
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(s, methods); err != nil {
		return false
	}
	method := byte(socks5NoPassword)
	if p.password != "" {
		method = socks5Password
	}
	if !bytes.Contains(methods, []byte{method}) {
		s.Write([]byte{5, socks5NoMethod})
		return false
	}
	if _, err := s.Write([]byte{5, method}); err != nil || method == socks5NoPassword {
		return err == nil
	}
	if version, err := s.reader().ReadByte(); err != nil || version != 1 {
		return false
	}
	user, err := s.readCounted()
	if err != nil {
		return false
	}
	password, err := s.readCounted()
	if err != nil {
		return false
	}
	if user != p.user || password != p.password {
		s.Write([]byte{1, 1})
		return false
	}
	_, err = s.Write([]byte{1, 0})
	return err == nil
}

func (s *session) readSocks5Host(kind byte) (string, error) {
	switch kind {
	case socks5Name:
		return s.readCounted()
	case socks5IPv4:
		return s.readAddr(4)
	case socks5IPv6:
		return s.readAddr(16)
	}
	return "", errors.New("unknown kind of address")
}

// readCounted reads a string behind one byte with its length.
func (s *session) readCounted() (string, error) {
	n, err := s.reader().ReadByte()
	if err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(s, text)
	return string(text), err
}

func (s *session) readAddr(size int) (string, error) {
	raw := make([]byte, size)
	if _, err := io.ReadFull(s, raw); err != nil {
		return "", err
	}
	addr, _ := netip.AddrFromSlice(raw)
	return addr.String(), nil
}
