package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// PasswordCredential is the name of systemd's credential for the Redis
	// password (LoadCredential=redis-password:/PATH).
	PasswordCredential = "redis-password"

	maxPasswordBytes = 4096
	maxRootsBytes    = 1 << 20
)

// Password reads the Redis password: from PasswordFile if it is set, else from
// systemd's credential in credentialsDir (what $CREDENTIALS_DIRECTORY says, empty
// if it says nothing) if it is there, else it is empty. One newline at the
// file's end is not part of it. An error has nothing of the content, and is a
// *FileError if PasswordFile is set.
func (r Redis) Password(credentialsDir string) (string, error) {
	path := r.PasswordFile
	wrong := func(err error) error { return InKey("password_file", path, err) }
	if path == "" {
		if credentialsDir == "" {
			return "", nil
		}
		path = filepath.Join(credentialsDir, PasswordCredential)
		wrong = func(err error) error { return fmt.Errorf("systemd's credential %s: %w", PasswordCredential, err) }
	}
	data, err := readSmall(path, maxPasswordBytes)
	if r.PasswordFile == "" && errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", wrong(err)
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	switch {
	case password == "":
		return "", wrong(errors.New("is empty; write the password into it"))
	case strings.ContainsAny(password, "\r\n"):
		return "", wrong(errors.New("has more than one line; it holds the password alone"))
	}
	return password, nil
}

// RootCAs returns the roots for this judge's certificates: nil, the system's,
// without a CAFile; else the system's and those of CAFile. An error is a *FileError.
func (j Judge) RootCAs() (*x509.CertPool, error) {
	return rootsFrom("ca_file", j.CAFile)
}

// rootsFrom returns the system's roots and those of the file that a key names; nil
// for no file.
func rootsFrom(key, path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := readSmall(path, maxRootsBytes)
	if err != nil {
		return nil, InKey(key, path, err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a host without roots of its own; those of the file are enough
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, InKey(key, path, errors.New("has no certificate in PEM form"))
	}
	return pool, nil
}

// readSmall reads a regular file of at most limit bytes. Errors name the path.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO without a writer would block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("is not a regular file")}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", limit)}
	}
	return data, nil
}
