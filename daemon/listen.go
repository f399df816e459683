package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrSocketTaken says that another daemon, or another program, answers on the
// socket.
var ErrSocketTaken = errors.New("the socket is taken")

// maxSocketPath is how long the path of a Unix socket may be: 108 bytes with
// the NUL behind it (unix(7)). The kernel's own word for more is "invalid
// argument".
const maxSocketPath = 107

// socket is a listener on a Unix socket whose file nobody else may replace.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo // the socket's file, to know it again
	lock *os.File    // flocked for as long as the socket is ours

	closeOnce sync.Once
	closeErr  error
}

// listen binds a Unix socket at path with the mode, and creates the folder if it
// is missing. The socket is never reachable with another mode. One process has
// it at a time: the others get ErrSocketTaken, also when they start at the same
// moment. What a killed daemon left behind is replaced; a file that is no socket
// is left alone, and an error. The file of the lock, path + ".lock", stays for
// ever: whoever removed it would let two daemons lock two files of that name.
func listen(path string, mode fs.FileMode) (_ *socket, err error) {
	path, err = filepath.Abs(path) // and "@name" is no abstract socket
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket %s: the path has %d bytes, a Unix socket's may have %d", path, len(path), maxSocketPath)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	ln, file, err := bind(path, mode)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return &socket{UnixListener: ln, path: path, file: file, lock: lock}, nil
}

// lockSocket takes the lock that makes this process the owner of path.
func lockSocket(path string) (_ *os.File, err error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("socket %s: lock: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = lock.Close()
		}
	}()
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: %s belongs to another evenpool%s", ErrSocketTaken, path, holder(lock))
	}
	if err != nil {
		return nil, fmt.Errorf("socket %s: lock: %w", path, err)
	}
	// For the message above; nothing depends on it.
	if err := lock.Truncate(0); err == nil {
		_, _ = lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return lock, nil
}

// holder reads which process has the lock, for a message.
func holder(lock *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(lock, 0, 20))
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

// checkPlace says whether path is free, or taken by a socket that nobody
// listens on any more. Our lock keeps other daemons away, but another program's
// socket may be there.
func checkPlace(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: there is a file that is no socket; move it away, or choose another socket.path", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	switch {
	case err == nil:
		_ = conn.Close()
		return fmt.Errorf("%w: another program listens on %s", ErrSocketTaken, path)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("%w: cannot tell who has it: %w", ErrSocketTaken, err)
}

// bind makes the socket in a folder that only we can enter, gives it its mode,
// and only then moves it to where others can reach it. The folder's name is
// fixed, so that a kill at any moment leaves no more than one; the lock makes it
// ours.
func bind(path string, mode fs.FileMode) (_ *net.UnixListener, _ fs.FileInfo, err error) {
	dir := path + ".new"
	temp := filepath.Join(dir, "s")
	removeBoth := func() {
		_ = os.Remove(temp)
		_ = os.Remove(dir)
	}
	removeBoth()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	defer removeBoth()

	name := temp
	if len(name) > maxSocketPath {
		// The same file by a shorter name.
		d, err := os.Open(dir)
		if err != nil {
			return nil, nil, err
		}
		defer d.Close()
		name = fmt.Sprintf("/proc/self/fd/%d/s", d.Fd())
	}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, nil, err
	}
	// net would remove what has the temporary name then, whoever made it.
	ln.SetUnlinkOnClose(false)
	defer func() {
		if err != nil {
			_ = ln.Close()
		}
	}()
	if err := os.Chmod(temp, mode.Perm()); err != nil {
		return nil, nil, err
	}
	file, err := os.Lstat(temp)
	if err != nil {
		return nil, nil, err
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, nil, err
	}
	return ln, file, nil
}

// Close ends the listener, removes its file and then gives the lock away. A file
// that has come into its place meanwhile stays.
func (s *socket) Close() error {
	s.closeOnce.Do(func() {
		// While we listen nobody else can have our inode number.
		var unlink error
		if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.file) {
			unlink = os.Remove(s.path)
		}
		s.closeErr = errors.Join(unlink, s.UnixListener.Close(), s.lock.Close())
	})
	return s.closeErr
}
