package lab

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestSilenceCostsNothing: no goroutine for a connection, and hardly any memory;
// and all of them are let go when their clients go.
func TestSilenceCostsNothing(t *testing.T) {
	const n = 1000
	w := newWorld(t, Options{Population: []Spec{{"silent", n}}})
	var before, after runtime.MemStats
	conns := make([]net.Conn, n)
	goroutines := runtime.NumGoroutine()
	for i, p := range w.Proxies() {
		conns[i] = dial(t, p)
		if i == 0 {
			w.awaitConnections(t, 1)
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
	}
	for _, conn := range conns {
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\n\r\n")
	}
	w.awaitConnections(t, n)
	if got := runtime.NumGoroutine(); got > goroutines+2 {
		t.Errorf("%d goroutines for %d connections, %d before", got, n, goroutines)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	// Both ends are in this process; the client's net.Conn is most of it.
	if each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / n; each > 1500 {
		t.Errorf("%d bytes for a connection", each)
	}
	wantSilence(t, conns[n/2])
	for _, conn := range conns {
		conn.Close()
	}
	w.awaitConnections(t, 0)
}

// awaitConnections waits until the lab has so many.
func (w *world) awaitConnections(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); w.connections() != want; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, want %d", w.connections(), want)
		}
	}
}

// TestSilenceFails: a silent proxy that is told to fail resets what it has and
// what comes, and others of its kind keep theirs.
func TestSilenceFails(t *testing.T) {
	w := newWorld(t, Options{Population: []Spec{{"silent", 2}}})
	first, second := dial(t, w.proxy(t, "silent-1")), dial(t, w.proxy(t, "silent-2"))
	w.awaitConnections(t, 2)
	if err := w.SetFailing("silent-1", true); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("its connection: %v, want a reset", err)
	}
	if conn, err := net.Dial("tcp", w.proxy(t, "silent-1").URL.Endpoint.HostPort()); err == nil {
		defer conn.Close()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a new one: %v, want a reset", err)
		}
	}
	wantSilence(t, second)
	if err := w.SetFailing("silent-1", false); err != nil {
		t.Fatal(err)
	}
	wantSilence(t, dial(t, w.proxy(t, "silent-1")))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	second.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) && err != io.EOF {
		t.Errorf("after Close: %v, want the end", err)
	}
	w.SetFailing("silent-1", true) // of a lab that is closed: nothing to do
}
