package judge

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"maps"
	"slices"
	"strings"
)

// Answer is the JSON of an answer.
type Answer struct {
	Version int                 `json:"evenpool_judge"` // the constant Version
	Nonce   string              `json:"nonce"`          // as it came, hexadecimal
	Address string              `json:"address"`        // the asker's IP address as the judge saw it; "" for none
	Host    string              `json:"host"`           // the host that was asked for, with the port if one was given
	Headers map[string][]string `json:"headers"`        // of the request, names in canonical form, without Host
	TimeMS  int64               `json:"time_ms"`        // when it was answered, in milliseconds since 1970, by the judge's clock
	// Signature is the HMAC-SHA-256 (RFC 2104) of all of the above, 64
	// hexadecimal digits; "" from a judge without a key.
	Signature string `json:"signature,omitempty"`
}

// Version is Answer.Version: of the fields, and of what a signature is made over.
const Version = 2

// What is wrong with a signature.
var (
	ErrUnsigned = errors.New("the answer is not signed")
	ErrForged   = errors.New("the answer's signature is not the judge's")
	ErrNoKey    = errors.New("there is no key to verify the answer with")
)

// Sign signs the answer. Texts that are no UTF-8 are put into the form that they
// have after a way through JSON, since that is what the reader will verify.
func (a *Answer) Sign(key Key) {
	a.clean()
	a.Signature = hex.EncodeToString(a.mac(key))
}

// Verify says whether the holder of the key wrote the answer as it is. It gives
// ErrUnsigned, ErrForged, or ErrNoKey, and takes the same time for every forgery.
func (a Answer) Verify(key Key) error {
	switch {
	case len(key) == 0: // anybody could sign with that
		return ErrNoKey
	case a.Signature == "":
		return ErrUnsigned
	}
	got, err := hex.DecodeString(a.Signature)
	if err != nil || !hmac.Equal(got, a.mac(key)) {
		return ErrForged
	}
	return nil
}

// purpose keeps a signature from being of use anywhere else that has the key.
const purpose = "evenpool judge answer"

// mac is over a text in which every part stands behind its length, so that no
// two answers have the same one.
func (a Answer) mac(key Key) []byte {
	m := signer{hmac.New(sha256.New, key)}
	m.text(purpose)
	m.number(uint64(a.Version))
	m.text(a.Nonce)
	m.text(a.Address)
	m.text(a.Host)
	m.number(uint64(a.TimeMS))
	m.number(uint64(len(a.Headers)))
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		m.text(name)
		m.number(uint64(len(a.Headers[name])))
		for _, value := range a.Headers[name] {
			m.text(value)
		}
	}
	return m.Sum(nil)
}

type signer struct{ hash.Hash }

func (s signer) number(n uint64) { s.Write(binary.BigEndian.AppendUint64(nil, n)) }

func (s signer) text(t string) {
	s.number(uint64(len(t)))
	s.Write([]byte(t))
}

// clean makes all texts valid UTF-8. Headers may hold any byte from 0x80 up
// (RFC 9110 section 5.5), and JSON may not.
func (a *Answer) clean() {
	a.Nonce, a.Address, a.Host = valid(a.Nonce), valid(a.Address), valid(a.Host)
	headers := make(map[string][]string, len(a.Headers))
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		values := make([]string, 0, len(a.Headers[name]))
		for _, v := range a.Headers[name] {
			values = append(values, valid(v))
		}
		headers[valid(name)] = values
	}
	a.Headers = headers
}

// valid puts one U+FFFD in place of each byte that is no UTF-8, as encoding/json
// does.
func valid(s string) string {
	return strings.Map(func(r rune) rune { return r }, s)
}
