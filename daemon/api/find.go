package api

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// SystemSocket is where a daemon that was started by systemd has its socket.
const SystemSocket = "/run/evenpool/evenpool.sock"

// FindSocket gives the path of the daemon's socket: $EVENPOOL_SOCKET if set, else
// SystemSocket if it exists, else UserSocket if that exists, else SystemSocket.
func FindSocket() string {
	if path := os.Getenv("EVENPOOL_SOCKET"); path != "" {
		return path
	}
	for _, path := range []string{SystemSocket, UserSocket()} {
		if path == "" {
			continue
		}
		// A place that may not be looked at counts as existing: then the error is
		// about the permission, as it should be.
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return SystemSocket
}

// UserSocket is where a daemon without root has its socket,
// $XDG_RUNTIME_DIR/evenpool/evenpool.sock; empty when the variable is not set.
func UserSocket() string {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "evenpool", "evenpool.sock")
}

// dialError says why a daemon could not be asked, and what to do.
func dialError(path string, err error) *Error {
	e := &Error{Code: CodeUnavailable, RetryAfter: time.Second, cause: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Message = fmt.Sprintf("no daemon: there is no socket %s; start evenpool, or name its socket with --socket or $EVENPOOL_SOCKET", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("no daemon: nobody listens on %s; start evenpool", path)
	case errors.Is(err, fs.ErrPermission):
		e.Code, e.RetryAfter = CodeForbidden, 0
		e.Message = fmt.Sprintf("this user may not open %s; a member of the socket's group may", path)
	default:
		e.Message = fmt.Sprintf("no daemon on %s: %v", path, err)
	}
	return e
}
