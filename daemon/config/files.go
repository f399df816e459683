package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"evenpool/sources/proxyurl"
)

// FileError says that a file which the configuration names cannot be used.
type FileError struct {
	Key  string // that names it, below its section: "key_file"; "" if it is not known
	Path string
	Err  error // what is wrong and what to do, without the path
}

// Error returns "key: path: what", safe to print.
func (e *FileError) Error() string {
	text := proxyurl.Escape(e.Path, 200) + ": " + e.Err.Error()
	if e.Key != "" {
		text = e.Key + ": " + text
	}
	return text
}

func (e *FileError) Unwrap() error { return e.Err }

// InKey says which key names the file at path that err is about; nil for nil.
func InKey(key, path string, err error) error {
	if err == nil {
		return nil
	}
	if file := (*FileError)(nil); errors.As(err, &file) {
		err = file.Err
	} else if of := (*fs.PathError)(nil); errors.As(err, &of) {
		err = of.Err
	}
	return &FileError{Key: key, Path: path, Err: err}
}

// FilesIn finds the places of the *FileErrors that err is or that are joined in it;
// section is the path of the section that has their keys, such as "judges[0]". nil
// for nil.
func (c *Config) FilesIn(section string, err error) (list Errors) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, c.FilesIn(section, e)...)
		}
		return list
	}
	var file *FileError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &file):
		return Errors{c.places.problem(section, proxyurl.Escape(err.Error(), 300))}
	}
	p := c.places.problem(strings.TrimPrefix(section+"."+file.Key, "."), file.Err.Error())
	if p.Value == "" { // not written in the file
		p.Value = fmt.Sprintf(`"%s"`, proxyurl.Escape(file.Path, 80))
	}
	return Errors{p}
}
