package sources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// errNotRegular is for what is opened and read for ever, or never: pipes,
// devices, directories.
var errNotRegular = errors.New("not a regular file")

// openFile opens a regular file of at most limit bytes. It is opened without
// blocking, since opening a named pipe waits for a writer, and looked at through
// its descriptor, since the name may mean another file a moment later.
func openFile(ctx context.Context, path string, limit int64) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	case info.Size() > limit:
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, info.Size(), limit)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &fileReader{File: f, ctx: ctx}, nil
}

// fileReader ends with its context, between two reads: a file has no deadlines.
type fileReader struct {
	*os.File
	ctx context.Context
}

func (r *fileReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.File.Read(p)
}
