package sources

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The good copy of each source lies in the state directory as two files: the list's
// text, packed and encoded no more, and a small JSON file that says what it is.
// A text's name has its hash in it, so that the two never belong to different
// fetches: the text is written first, then the JSON file that names it takes the
// place of the one before.

// copyMeta says what is known of a source beside its list.
type copyMeta struct {
	Version int `json:"version"`
	// Key is the hash of all of the source that its list depends on.
	Key string `json:"key"`
	// SHA256 is the hash of the list's text; "" where there is no good copy.
	SHA256     string     `json:"sha256,omitempty"`
	Candidates int        `json:"candidates,omitempty"`
	FetchedAt  time.Time  `json:"fetched_at,omitzero"`
	Validators validators `json:"validators,omitzero"`
	// WaitUntil is when the server may be asked again.
	WaitUntil time.Time `json:"wait_until,omitzero"`
}

const (
	metaVersion  = 1
	maxMetaBytes = 64 << 10
)

func (m copyMeta) hasCopy() bool { return m.SHA256 != "" }

// dropCopy leaves of m what is not about the copy.
func (m *copyMeta) dropCopy() { *m = copyMeta{Key: m.Key, WaitUntil: m.WaitUntil} }

// Why a copy on disk is not used.
var (
	errDamaged = errors.New("the good copy is damaged")
	errFuture  = errors.New("the good copy is of a time to come")
	errForeign = errors.New("the good copy is of another source, or by another version of evenpool")
)

// keyOf hashes all of a source that its list depends on: after a change of the
// configuration an old copy may hold what is not wanted any more. Hashed, since
// URLs and headers may hold keys.
func keyOf(s Source, limits Limits) string {
	text, err := json.Marshal(struct {
		Name, URL, Format, Scheme string
		Allow                     string
		Headers                   map[string]string // in order of names
		Limits                    Limits
	}{s.Name, s.URL, cmp.Or(s.Format, "auto"), string(s.Scheme), fmt.Sprint(s.Allow), s.Headers, limits})
	if err != nil {
		panic(err) // strings and numbers always have a JSON form
	}
	return hash(string(text))
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// copies is the folder of the good copies.
type copies struct{ dir string }

// base is the beginning of the names of a source's files. The name is for people,
// the key for telling sources apart.
func (c copies) base(name, key string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
	return filepath.Join(c.dir, safe[:min(len(safe), 48)]+"."+key[:16])
}

func metaPath(base string) string             { return base + ".json" }
func textPath(base string, m copyMeta) string { return base + "." + m.SHA256[:16] + ".list" }

// load reads what is known of a source. No file is no error.
func (c copies) load(base, key string) (copyMeta, error) {
	none := copyMeta{Key: key}
	file, err := openFile(context.Background(), metaPath(base), maxMetaBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return none, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxMetaBytes))
	if err != nil {
		return none, err
	}
	var m copyMeta
	sum, err := []byte(nil), json.Unmarshal(text, &m)
	if err == nil {
		sum, err = hex.DecodeString(m.SHA256)
	}
	switch {
	case err != nil || m.hasCopy() && len(sum) != sha256.Size:
		return none, errDamaged
	case m.Version != metaVersion || m.Key != key:
		return none, errForeign
	}
	return m, nil
}

// save puts m in the place of what was known before, and text, if it is not nil,
// in that of the text before.
func (c copies) save(base string, m, before copyMeta, text *copyWriter, now time.Time) error {
	if text != nil {
		if err := text.rename(textPath(base, m), now); err != nil {
			return err
		}
	} else if m.hasCopy() {
		// The time of a file says when it was good last: see prune.
		if err := os.Chtimes(textPath(base, m), now, now); err != nil {
			return err
		}
	}
	m.Version = metaVersion
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w, err := c.create()
	if err != nil {
		return err
	}
	defer w.discard()
	w.Write(append(line, '\n'))
	if err := w.rename(metaPath(base), now); err != nil {
		return err
	}
	if before.hasCopy() && before.SHA256 != m.SHA256 {
		os.Remove(textPath(base, before)) // if not, prune does
	}
	return syncDir(c.dir)
}

// prune removes what has not been good for longer than age: copies of sources that
// are gone, and what a crash has left.
func (c copies) prune(now time.Time, age time.Duration) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".json", ".list", ".tmp":
		default:
			continue
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > age {
			os.Remove(filepath.Join(c.dir, entry.Name()))
		}
	}
}

// create begins a file that has no name of its own yet.
func (c copies) create() (*copyWriter, error) {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(c.dir, "*.tmp")
	if err != nil {
		return nil, err
	}
	return &copyWriter{file: file, buf: bufio.NewWriterSize(file, 32<<10)}, nil
}

// copyWriter writes a file aside. Its Write never fails, so that a full disk does
// not end the reading that is written along; rename tells.
type copyWriter struct {
	file *os.File
	buf  *bufio.Writer // keeps its first error
	done bool
}

func (w *copyWriter) Write(p []byte) (int, error) {
	w.buf.Write(p)
	return len(p), nil
}

// rename gives the file its name, once all of it is on disk. Whatever comes of it,
// the writer is done.
func (w *copyWriter) rename(path string, now time.Time) error {
	if w.done {
		return fs.ErrClosed
	}
	w.done = true
	temporary := w.file.Name()
	err := w.buf.Flush()
	if err == nil {
		err = w.file.Sync()
	}
	if closed := w.file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chtimes(temporary, now, now)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}

// discard removes the file, unless it has got its name.
func (w *copyWriter) discard() {
	if w == nil || w.done {
		return
	}
	w.done = true
	w.file.Close()
	os.Remove(w.file.Name())
}

// syncDir makes the new names in a folder last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
