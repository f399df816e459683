package proxyurl

// DottedPort reads "1.2.3.4:80" and nothing else: the form of nearly every record
// of nearly every list, without an allocation. What it accepts, ParseEndpoint
// reads to the same; ok is false for all other texts, good ones and bad ones.
func DottedPort[T string | []byte](text T) (addr [4]byte, port uint16, ok bool) {
	addr, port, n := DottedPrefix(text)
	return addr, port, n > 0 && n == len(text)
}

// DottedPrefix is DottedPort for the beginning of a text. It returns how many bytes
// the address and the port have, 0 where there are none; what follows may show that
// they are no whole ones.
func DottedPrefix[T string | []byte](text T) (addr [4]byte, port uint16, n int) {
	for part := range addr {
		number, next := decimal(text, n, 3)
		if next == len(text) || number > 255 || text[next] != "...:"[part] {
			return addr, 0, 0
		}
		addr[part] = byte(number)
		n = next + 1
	}
	number, n := decimal(text, n, 5)
	if number == 0 || number > 65535 {
		return addr, 0, 0
	}
	return addr, uint16(number), n
}

// decimal reads a number of at most so many digits that begins at i. A text that is
// none, or has a leading zero, gives one that is too large for all that is read.
func decimal[T string | []byte](text T, i, most int) (number uint32, next int) {
	const none = 1 << 31
	if i >= len(text) {
		return none, i
	}
	number = uint32(text[i] - '0')
	if number > 9 {
		return none, i
	}
	end := min(len(text), i+most)
	for i++; i < end; i++ {
		digit := text[i] - '0'
		if digit > 9 {
			return number, i
		}
		if number == 0 {
			return none, i
		}
		number = number*10 + uint32(digit)
	}
	return number, i
}

// DottedEndpoint is NewEndpoint for what DottedPort has read.
func DottedEndpoint(addr [4]byte, port uint16) Endpoint {
	e := Endpoint{port: port, hasIP: true}
	e.ip[10], e.ip[11] = 0xff, 0xff
	copy(e.ip[12:], addr[:])
	return e
}
