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
// to others than its owner and group is refused, with what to do about it. An error
// is a *fs.PathError and holds nothing of the key.
func ReadKey(path string) (Key, error) {
	text, err := readKey(path)
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	if err != nil {
		return nil, &fs.PathError{Op: "key file", Path: path, Err: err}
	}
	return Key(text), nil
}

func readKey(path string) (string, error) {
	// Not blocking: a pipe that nobody writes to would hold the start for ever.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is none; copy it from where it is in use, or make one with: evenpool judge --new-key %s", path)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "", errors.New("is a directory; name a file in it")
	case !mode.IsRegular():
		return "", errors.New("is no regular file")
	case mode.Perm()&0o007 != 0:
		return "", fmt.Errorf("mode %04o lets everybody have it; chmod o= it, and make a new key if others may have read it", mode.Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyLength+1))
	if err != nil {
		return "", err
	}
	key := strings.TrimSpace(string(text))
	switch {
	case len(text) > maxKeyLength:
		return "", fmt.Errorf("more than %d bytes; it holds one line, as evenpool judge --new-key writes it", maxKeyLength)
	case key == "":
		return "", fmt.Errorf("is empty; copy it from where it is in use, or remove it and make one with: evenpool judge --new-key %s", path)
	case strings.ContainsAny(key, "\r\n"):
		return "", errors.New("more than one line; it is not a PEM file, but one line, as evenpool judge --new-key writes it")
	case len(key) < minKeyLength:
		return "", fmt.Errorf("%d characters are too short, want at least %d; make one with: evenpool judge --new-key FILE", len(key), minKeyLength)
	}
	return key, nil
}
