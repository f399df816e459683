package judge

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	text := NewKeyText()
	if len(text) != 64 || strings.Trim(text, "0123456789abcdef") != "" || text == NewKeyText() {
		t.Errorf("new key %q", text)
	}
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, mode := range []os.FileMode{0o600, 0o400, 0o640, 0o440} {
		key, err := ReadKey(file("good"+mode.String(), " \t"+text+"\r\n\n", mode))
		if err != nil || string(key) != text {
			t.Errorf("mode %o: %q, %v", mode, key, err)
		}
	}
	if _, err := ReadKey(file("32", strings.Repeat("k", 32), 0o600)); err != nil {
		t.Error(err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	// Each error says what to do, and none of them shows the key.
	for _, test := range []struct{ path, want string }{
		{filepath.Join(dir, "none"), "there is none; copy it from where it is in use, or make one with: evenpool judge --new-key DIR/none"},
		{dir, "is a directory; name a file in it"},
		{pipe, "is no regular file"},
		{file("world", text, 0o604), "mode 0604 lets everybody have it; chmod o= it, and make a new key if others may have read it"},
		{file("world-writable", text, 0o602), "mode 0602 lets everybody have it; chmod o= it, and make a new key if others may have read it"},
		{file("empty", "", 0o600), "is empty; copy it from where it is in use, or remove it and make one with: evenpool judge --new-key DIR/empty"},
		{file("blank", " \n\t\n", 0o600), "is empty; copy it from where it is in use, or remove it and make one with: evenpool judge --new-key DIR/blank"},
		{file("short", " "+text[:31]+"\n", 0o600), "31 characters are too short, want at least 32; make one with: evenpool judge --new-key FILE"},
		{file("pem", "-----BEGIN PRIVATE KEY-----\n"+text+"\n", 0o600), "more than one line; it is not a PEM file, but one line, as evenpool judge --new-key writes it"},
		{file("long", strings.Repeat("k", 1025), 0o600), "more than 1024 bytes; it holds one line, as evenpool judge --new-key writes it"},
	} {
		key, err := ReadKey(test.path)
		want := "key file " + test.path + ": " + strings.ReplaceAll(test.want, "DIR", dir)
		if err == nil || err.Error() != want || key != nil {
			t.Errorf("%s: %q, %v; want %s", filepath.Base(test.path), key, err, want)
		}
		if err != nil && strings.Contains(err.Error(), text[:8]) {
			t.Errorf("%s: the error shows the key", filepath.Base(test.path))
		}
	}
	if os.Geteuid() == 0 {
		return // root may read anything
	}
	if _, err := ReadKey(file("unreadable", text, 0)); err == nil || !strings.HasPrefix(err.Error(), "key file ") {
		t.Errorf("unreadable: %v", err)
	}
}
