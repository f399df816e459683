package alloc_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
)

// fill makes a pool with something in each of its keys.
func fill(t testing.TB, pool *alloc.Pool) {
	t.Helper()
	if _, err := pool.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	offers := []alloc.Offer{{Endpoint: "u:p%0Ass@a:1", Record: []byte("{\"text\":\"\r\n|$5\\u0000\x00\xff\"}")}, {Endpoint: "b:1", Record: []byte(`{}`)}}
	if _, err := pool.Offer(t.Context(), offers, start); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{"m:1", "m:2", "m:3"} {
		admit(t, pool, alloc.SettlePolicy{}, endpoint)
	}
	if _, err := pool.Allocate(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	retire(t, pool, "m:2")
	if err := pool.SetMeta(t.Context(), map[string]string{"guard": "frozen"}); err != nil {
		t.Fatal(err)
	}
}

// TestEmbeddedOutlivesARestart: everything is there again, bytes, counts and the order of events
// included, and it goes on from there.
func TestEmbeddedOutlivesARestart(t *testing.T) {
	options := alloctest.Embedded(t)
	store := open(t, options)
	pools := []*alloc.Pool{store.Pool("web"), store.Pool("other")}
	var before []string
	for _, pool := range pools {
		fill(t, pool)
		before = append(before, state(t, store, pool))
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err == nil {
		t.Error("closed twice without a word")
	}

	store = open(t, options)
	for i, name := range []string{"web", "other"} {
		pool := store.Pool(name)
		if after := state(t, store, pool); after != before[i] {
			t.Errorf("after a restart, pool %s is\n%s\nit was\n%s", name, after, before[i])
		}
		if got, err := pool.Allocate(t.Context(), 1); err != nil || got[0] != (alloc.Allocation{Member: "http://m:3", Count: 34}) {
			t.Errorf("the next allocation: %v, %v", got, err)
		}
		retire(t, pool, "m:3")
		if events := allEvents(t, pool); len(events) != 5 || events[0].Endpoint != "m:3" {
			t.Errorf("%d events, the newest %+v", len(events), events[0])
		}
	}
}

// TestEmbeddedIsSavedWhileItRuns: a kill costs 5 s at most; what has not changed is not written again.
func TestEmbeddedIsSavedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := alloctest.Embedded(t)
		path := filepath.Join(options.StateDir, "embedded.snapshot")
		store := open(t, options)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- store.Run(ctx) }()
		fill(t, store.Pool("web"))
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("saved at once: %v", err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		first, err := os.ReadFile(path)
		if err != nil || alloc.ParseSnapshot(first) != nil {
			t.Fatalf("after 5 s: %v, %v", err, alloc.ParseSnapshot(first))
		}
		os.Remove(path)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("saved although nothing changed: %v", err)
		}
		if _, err := store.Pool("web").Allocate(ctx, 1); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		last, err := os.ReadFile(path)
		if err != nil || string(last) == string(first) {
			t.Errorf("at the end: %v, changed: %v", err, string(last) != string(first))
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v: it holds passwords", info.Mode(), err)
		}
	})
}

// TestEmbeddedDamaged: a damaged file is a clear error, not a silent start with empty pools.
func TestEmbeddedDamaged(t *testing.T) {
	options := alloctest.Embedded(t)
	path := filepath.Join(options.StateDir, "embedded.snapshot")
	store := open(t, options)
	fill(t, store.Pool("web"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, content, want string }{
		{"empty", "", "it is cut short"},
		{"cut short", string(good[:len(good)/2]), "it is cut short"},
		{"without its end", string(good[:strings.LastIndex(string(good), "*2\r\n$4\r\nECHO")]), "it is cut short"},
		{"a byte changed", strings.Replace(string(good), "http://m:1", "http://m:7", 1), "its hash differs"},
		{"longer", string(good) + "*1\r\n$4\r\nPING\r\n", "it goes on after its end"},
		{"something else", "{}\n", "it is no snapshot"},
		{"a length of 1 GB", "*1\r\n$1000000000\r\n", "it is no snapshot"},
		{"another command", "*1\r\n$8\r\nFLUSHALL\r\n" + string(good), "it holds what was never saved"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := alloc.Open(options)
			want := "embedded store: " + path + " is damaged (" + test.want + "); put back a copy, or move it away to begin with empty pools"
			if err == nil || err.Error() != want {
				t.Errorf("error\n%v, want\n%s", err, want)
			}
			if left, _ := os.ReadFile(path); string(left) != test.content {
				t.Error("the damaged file was written")
			}
		})
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, options) // the failures above let go of the directory
}

// TestEmbeddedOneProcess: a second one gets a clear error instead of the same file.
func TestEmbeddedOneProcess(t *testing.T) {
	options := alloctest.Embedded(t)
	open(t, options)
	_, err := alloc.Open(options)
	want := "embedded store: " + filepath.Join(options.StateDir, "embedded.lock") + ": another process has this state directory; end it, or give this one its own"
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v, want\n%s", err, want)
	}
	if _, err := alloc.Open(alloc.Options{}); err == nil || err.Error() != "embedded store: no state directory; set state_dir, or redis.url for a Redis server" {
		t.Errorf("without a directory: %v", err)
	}
}

// TestSnapshotLoadsIntoRedis: the file is a row of commands that a real server takes as they are, the
// way from the embedded store to Redis.
func TestSnapshotLoadsIntoRedis(t *testing.T) {
	options := alloctest.Embedded(t)
	store := open(t, options)
	fill(t, store.Pool("web"))
	want := state(t, store, store.Pool("web"))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(options.StateDir, "embedded.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	server := alloctest.NewServer(t)
	conn, err := net.Dial("unix", server.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(content); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for !strings.Contains(said.String(), "sha256") {
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		said.Write(buffer[:n])
	}
	real := open(t, alloc.Options{URL: server.URL})
	if got := state(t, real, real.Pool("web")); got != want {
		t.Errorf("the server has\n%s, want\n%s", got, want)
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add([]byte("*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n"))
	f.Add([]byte("*4\r\n$4\r\nZADD\r\n$1\r\nk\r\n$1\r\n0\r\n$1\r\nm\r\n"))
	f.Add([]byte("*-1\r\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		// Whatever it is, it is refused or whole; it never panics and never takes more than it holds.
		if err := alloc.ParseSnapshot(content); err == nil && !strings.Contains(string(content), "sha256") {
			t.Errorf("accepted %q", content)
		}
	})
}

// TestRedisURL: what is wrong is said without repeating the URL, which may hold a password.
func TestRedisURL(t *testing.T) {
	const unusable = "redis url: unusable; write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB"
	for _, test := range []struct{ url, want string }{
		{"redis://127.0.0.1:6379/0", ""},
		{"rediss://redis.example.org", ""},
		{"unix:///run/redis.sock?db=3", ""},
		{"redis://:secret@127.0.0.1:port", "redis url: not a URL; write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB"},
		{"http://u:secret@127.0.0.1/", unusable},
		{"127.0.0.1:6379", "redis url: not a URL; write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB"},
		{"redis://127.0.0.1/secret", unusable},
		{"redis://127.0.0.1/0?max_retries=3", `redis url: unknown parameter "max_retries"; only db is known`},
		{"unix://", "redis url: unix:// without a path; write unix:///PATH"},
	} {
		store, err := alloc.Open(alloc.Options{URL: test.url})
		if err == nil {
			store.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v, want %q", test.url, err, test.want)
		}
	}
}

// TestEmbeddedSaysThatItIsNotSaved: for as long as that is so.
func TestEmbeddedSaysThatItIsNotSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := alloctest.Embedded(t)
		store := open(t, options)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- store.Run(ctx) }()
		if err := os.RemoveAll(options.StateDir); err != nil {
			t.Fatal(err)
		}
		fill(t, store.Pool("web"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := store.SaveError(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without a directory: %v", err)
		}
		if err := os.Mkdir(options.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := store.SaveError(); err != nil {
			t.Errorf("with one again: %v", err)
		}
		cancel()
		<-ran
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
