package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// showProgress keeps one line up to date until stop is called, if w is a
// terminal.
func showProgress(w io.Writer, line func() string) (stop func()) {
	if f, ok := w.(*os.File); !ok || !isTerminal(f) {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			fmt.Fprint(w, "\r"+line())
			select {
			case <-end:
				fmt.Fprint(w, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(end); <-ended }
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
