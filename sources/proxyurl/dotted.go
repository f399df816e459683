package proxyurl

import "net/netip"

// DottedPort reads "1.2.3.4:80" and nothing else: the form of nearly every record
// of nearly every list, without an allocation. What it accepts, ParseEndpoint
// reads to the same; ok is false for all other texts, good ones and bad ones.
func DottedPort[T string | []byte](text T) (addr [4]byte, port uint16, ok bool) {
	if len(text) > len("255.255.255.255:65535") {
		return addr, 0, false
	}
	number, digits, part := uint32(0), 0, 0 // part 0 to 3 are the octets, 4 is the port
	for i := 0; i < len(text); i++ {
		c := text[i]
		if digit := c - '0'; digit <= 9 {
			if digits > 0 && number == 0 { // a leading zero
				return addr, 0, false
			}
			number = number*10 + uint32(digit)
			if digits++; digits > 5 {
				return addr, 0, false
			}
			continue
		}
		if part > 3 || digits == 0 || number > 255 || c != "...:"[part] {
			return addr, 0, false
		}
		addr[part] = byte(number)
		number, digits = 0, 0
		part++
	}
	if part != 4 || digits == 0 || number == 0 || number > 65535 {
		return addr, 0, false
	}
	return addr, uint16(number), true
}

// AddrEndpoint is NewEndpoint for an address that has been read already and a
// proxy without a user. Errors are *ParseError, for a port of 0 and an address
// that is invalid or has a zone.
func AddrEndpoint(addr netip.Addr, port uint16) (Endpoint, error) {
	switch {
	case port == 0:
		return Endpoint{}, parseError(ReasonPort, "0")
	case !addr.IsValid() || addr.Zone() != "":
		return Endpoint{}, parseError(ReasonHost, addr.String())
	}
	return Endpoint{ip: addr.As16(), port: port, hasIP: true}, nil
}
