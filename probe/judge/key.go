package judge

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Key is what a judge signs with and a prober verifies with: the text of a key
// file.
type Key []byte

// Bounds on a key's text.
const (
	minKeyLength = 32
	maxKeyLength = 1024
)

// NewKeyText makes the text of a key file: 64 hexadecimal digits, 256 random
// bits.
func NewKeyText() string {
	var random [32]byte
	rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:])
}

// ReadKey reads a key file: one line of at least 32 characters, the space around
// it ignored. A file that is missing, empty, too short, no regular file, or open
// to others than its owner and group is refused, with what to do about it. The
// errors hold nothing of the key.
func ReadKey(path string) (Key, error) {
	// Not blocking: a pipe that nobody writes to would hold the start for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("key file %s: there is none; make one with: evenpool judge --new-key %s", path, path)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return nil, fmt.Errorf("key file %s: is a directory; name a file in it", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("key file %s: is no regular file", path)
	case mode.Perm()&0o007 != 0:
		return nil, fmt.Errorf("key file %s: mode %04o lets everybody have it; chmod o= it, and make a new key if others may have read it", path, mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyLength+1))
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxKeyLength:
		return nil, fmt.Errorf("key file %s: more than %d bytes; it holds one line, as evenpool judge --new-key writes it", path, maxKeyLength)
	case key == "":
		return nil, fmt.Errorf("key file %s: is empty; remove it and make one with: evenpool judge --new-key %s", path, path)
	case strings.ContainsAny(key, "\r\n"):
		return nil, fmt.Errorf("key file %s: more than one line; it is not a PEM file, but one line, as evenpool judge --new-key writes it", path)
	case len(key) < minKeyLength:
		return nil, fmt.Errorf("key file %s: %d characters are too short, want at least %d; make one with: evenpool judge --new-key FILE", path, len(key), minKeyLength)
	}
	return Key(key), nil
}
