package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"evenpool/daemon/config"
)

// keptFile is a file whose content is used while the daemon runs, and that others
// change. What was read last and was sound stays in use, whatever becomes of the
// file. It is in memory: a file that is mapped and is cut short by whoever writes it
// in place would kill the process. It is safe for concurrent use.
type keptFile[T any] struct {
	path  string
	limit int64
	parse func([]byte) (T, error)

	current atomic.Pointer[T]
	mu      sync.Mutex
	tried   fileState // of the file when it was last read, sound or not; zero for one that could not be
	note    string    // why it could not be read then; "" when it could
}

// fileState tells one content of a path from another. Who writes a file in place
// changes its times, who renames another one over it the inode as well.
type fileState struct {
	device, inode    uint64
	size             int64
	modified, change time.Time
}

// errChanging is for a file that is being written.
var errChanging = errors.New("it is being written at the moment")

// openKept reads a file for the first time. The error says what is wrong with it.
func openKept[T any](path string, limit int64, parse func([]byte) (T, error)) (*keptFile[T], error) {
	f := &keptFile[T]{path: path, limit: limit, parse: parse}
	value, state, err := f.read()
	if err != nil {
		return nil, f.describe(err)
	}
	f.tried = state
	f.current.Store(&value)
	return f, nil
}

func (f *keptFile[T]) get() T { return *f.current.Load() }

// refresh reads the file again if it has changed since it was last read. One that
// cannot be used is an error, once for each content or reason; what was read before
// stays.
func (f *keptFile[T]) refresh() (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && stateOf(info) == f.tried {
		return false, nil
	}
	var value T
	var state fileState
	if err == nil {
		value, state, err = f.read()
	}
	if err != nil {
		err = f.describe(err)
		if err.Error() == f.note {
			return false, nil
		}
		f.tried, f.note = state, err.Error()
		return false, err
	}
	f.tried, f.note = state, ""
	f.current.Store(&value)
	return true, nil
}

// read reads a regular file through one descriptor, since the path may mean another
// file a moment later. One that changes meanwhile is not used: half of a list of
// banned proxies is a sound list.
func (f *keptFile[T]) read() (value T, state fileState, err error) {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return value, state, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return value, state, err
	}
	state = stateOf(info)
	switch {
	case !info.Mode().IsRegular():
		return value, state, errors.New("not a regular file")
	case info.Size() > f.limit:
		return value, state, fmt.Errorf("%d bytes, at most %d", info.Size(), f.limit)
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(file, data)
	if info, statErr := file.Stat(); err != nil || statErr != nil || stateOf(info) != state {
		return value, fileState{}, errChanging // to be tried again, whatever it then is
	}
	value, err = f.parse(data)
	return value, state, err
}

// describe names the file.
func (f *keptFile[T]) describe(err error) error { return config.InKey("", f.path, err) }

func stateOf(info fs.FileInfo) fileState {
	s := fileState{size: info.Size(), modified: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.device, s.inode = uint64(sys.Dev), sys.Ino
		s.change = time.Unix(sys.Ctim.Unix())
	}
	return s
}
