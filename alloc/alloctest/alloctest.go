// Package alloctest gives tests a real Redis: the one that EVENPOOL_TEST_REDIS names, a container, or
// a redis-server of their own. Where none is to be had, the test fails and says what to install.
//
//	EVENPOOL_TEST_REDIS=URL        a running server; only keys of the tests' own pools are touched
//	EVENPOOL_TEST_STORE=docker     a container, by testcontainers-go
//	EVENPOOL_TEST_STORE=server     redis-server or valkey-server from PATH, on a private Unix socket
//	EVENPOOL_TEST_STORE=auto       (default) docker where an engine answers and the image is there, else server
//	EVENPOOL_TEST_REDIS_IMAGE      the container's image; evenpool-test-redis:local, which .ci/redis-image.sh
//	                               makes, is never pulled, any other may be
//
// A package with many tests shares one server among them by
//
//	func TestMain(m *testing.M) { os.Exit(alloctest.Main(m)) }
//
// Each test uses pools of its own (PoolName), so they may run side by side.
package alloctest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"evenpool/alloc"
)

const (
	envRedis = "EVENPOOL_TEST_REDIS"
	envStore = "EVENPOOL_TEST_STORE"
	envImage = "EVENPOOL_TEST_REDIS_IMAGE"
	// envHow is Main's note, for its own process, of where the server in EVENPOOL_TEST_REDIS is from.
	envHow = "EVENPOOL_TEST_REDIS_HOW"
)

// Main starts one server for all tests of a package, runs them, ends the server and gives the exit
// status. Where no server is to be had the tests that need one say so themselves.
func Main(m *testing.M) int {
	if os.Getenv(envRedis) != "" {
		return m.Run()
	}
	found, err := find()
	if err != nil {
		return m.Run()
	}
	defer found.stop()
	os.Setenv(envRedis, found.url)
	os.Setenv(envHow, found.how)
	return m.Run()
}

// Redis gives options that open a store on a real Redis, and logs which. Without Main and
// EVENPOOL_TEST_REDIS, it starts a server for this test.
func Redis(t testing.TB) alloc.Options {
	t.Helper()
	// What Main read, read again: go test's cache sees only what tests read.
	_, _ = os.Getenv(envStore), os.Getenv(envImage)
	if url := os.Getenv(envRedis); url != "" {
		how := os.Getenv(envHow)
		if how == "" {
			how = "the one of " + envRedis
		}
		t.Log("redis: " + how)
		return alloc.Options{URL: url}
	}
	found, err := find()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(found.stop)
	t.Log("redis: " + found.how)
	return alloc.Options{URL: found.url}
}

// Embedded gives options that open an embedded store in a directory of the test's own.
func Embedded(t testing.TB) alloc.Options {
	return alloc.Options{StateDir: t.TempDir()}
}

// Stores runs a test on a real Redis and on the embedded store, each with a pool of its own.
func Stores(t *testing.T, test func(t *testing.T, store *alloc.Store, pool *alloc.Pool)) {
	t.Helper()
	run := func(options func(testing.TB) alloc.Options) func(*testing.T) {
		return func(t *testing.T) {
			store, err := alloc.Open(options(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			test(t, store, store.Pool(PoolName(t)))
		}
	}
	t.Run("redis", run(Redis))
	t.Run("embedded", run(Embedded))
}

// PoolName gives a pool's name that nobody else uses. Its keys are removed when the test ends, where
// the server is one that goes on.
func PoolName(t testing.TB) string {
	name := "t-" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		if url := os.Getenv(envRedis); url != "" {
			removePool(t, url, name)
		}
	})
	return name
}

func removePool(t testing.TB, url, name string) {
	options, err := redis.ParseURL(url)
	if err != nil {
		t.Errorf("%s: %v", envRedis, err)
		return
	}
	client := redis.NewClient(options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, key := range []string{"eligible", "retired", "record", "due", "events", "named", "meta", "reports"} {
		if err := client.Del(ctx, "evenpool:{"+name+"}:"+key).Err(); err != nil {
			t.Errorf("remove the test's pool: %v", err)
		}
	}
}

// found is a server that was started.
type found struct {
	url  string
	how  string
	stop func()
}

func find() (found, error) {
	want := os.Getenv(envStore)
	switch want {
	case "docker", "server", "auto", "":
	default:
		return found{}, fmt.Errorf("%s=%s is none of docker, server, auto", envStore, want)
	}
	var why error
	if want != "server" {
		container, err := startContainer()
		if err == nil {
			return container, nil
		}
		why = fmt.Errorf("no container: %w", err)
	}
	if want != "docker" {
		server, err := startShared()
		if err == nil {
			if why != nil {
				server.how += " (" + why.Error() + ")"
			}
			return server, nil
		}
		why = errors.Join(why, err)
	}
	return found{}, fmt.Errorf("no Redis for this test: %w\ninstall redis-server or valkey-server (Debian: apt-get install redis-server), run a Docker engine and .ci/redis-image.sh, or set %s=redis://HOST:PORT/DB", why, envRedis)
}
