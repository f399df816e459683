package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"evenpool/alloc"
	"evenpool/daemon/api"
)

// classic is the script that a worker runs who goes to Redis himself.
const classic = `
local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then return nil end
redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen`

const (
	poolName    = "bench"
	eligibleKey = "evenpool:{" + poolName + "}:eligible"
)

// allocator gets some allocations, and says how many.
type allocator func(ctx context.Context) (int, error)

// generator makes workers that allocate in one way; target is a socket or what else it takes.
type generator func(target string, n int) ([]allocator, error)

// generators is the list of all ways beside redis-benchmark.
func generators() map[string]generator {
	return map[string]generator{
		"http":     func(target string, n int) ([]allocator, error) { return httpWorkers(target, n, 1) },
		"http16":   func(target string, n int) ([]allocator, error) { return httpWorkers(target, n, 16) },
		"client":   clientWorkers,
		"go-redis": directWorkers,
		"store":    storeWorkers,
		"embedded": embeddedWorkers,
	}
}

// runGenerator is a load generator's process. It prints what it measured.
func runGenerator(ctx context.Context, way, target string, l load) error {
	generate, known := generators()[way]
	if !known {
		return fmt.Errorf("no generator %q", way)
	}
	workers, err := generate(target, l.workers)
	if err != nil {
		return err
	}
	m, err := drive(ctx, workers, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}

// drive lets all workers allocate as fast as they can.
func drive(ctx context.Context, workers []allocator, l load) (measured, error) {
	var total, calls atomic.Int64
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var counting, ended atomic.Bool
	var running sync.WaitGroup
	times := make([][]time.Duration, len(workers)) // of single calls, each worker's own
	for i, allocate := range workers {
		running.Go(func() {
			for !ended.Load() {
				began := time.Now()
				n, err := allocate(ctx)
				if err != nil {
					cancel(err)
					return
				}
				total.Add(int64(n))
				if counting.Load() {
					calls.Add(1)
					times[i] = append(times[i], time.Since(began))
				}
			}
		})
	}
	wait := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	wait(l.warmUp)
	warm, began := total.Load(), time.Now()
	counting.Store(true)
	wait(l.duration)
	m := measured{Rate: float64(total.Load()-warm) / time.Since(began).Seconds()}
	ended.Store(true)
	running.Wait()
	m.All = total.Load()
	if err := context.Cause(ctx); err != nil {
		return m, err
	}
	all := slices.Concat(times...)
	if len(all) == 0 {
		return m, errors.New("no allocation in the time that counts")
	}
	slices.Sort(all)
	m.P50 = all[len(all)/2]
	return m, nil
}

// directWorkers run the classic script by its hash, each over a connection of its own.
func directWorkers(socket string, n int) ([]allocator, error) {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, PoolSize: n, MaxRetries: -1})
	script := redis.NewScript(classic)
	if err := script.Load(context.Background(), client).Err(); err != nil {
		return nil, err
	}
	workers := make([]allocator, n)
	for i := range workers {
		workers[i] = func(ctx context.Context) (int, error) {
			_, err := script.EvalSha(ctx, client, []string{eligibleKey}).Text()
			return 1, err
		}
	}
	return workers, nil
}

// clientWorkers ask the daemon by the project's own client.
func clientWorkers(socket string, n int) ([]allocator, error) {
	client := &api.Client{Socket: socket}
	return slices.Repeat([]allocator{func(ctx context.Context) (int, error) {
		got, err := client.Allocate(ctx, poolName)
		if err == nil && got.Proxy == nil {
			err = errors.New("the pool is empty")
		}
		return 1, err
	}}, n), nil
}

// storeWorkers allocate from the pool "100" or "100000", target being SOCKET,POOL, without a daemon.
func storeWorkers(target string, n int) ([]allocator, error) {
	socket, pool, _ := strings.Cut(target, ",")
	store, err := alloc.Open(alloc.Options{URL: "unix://" + socket})
	if err != nil {
		return nil, err
	}
	return poolWorkers(store.Pool(pool), n), nil
}

// embeddedWorkers allocate from an embedded store with as many members as target says.
func embeddedWorkers(target string, n int) ([]allocator, error) {
	members, err := strconv.Atoi(target)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "evenpool-bench-")
	if err != nil {
		return nil, err
	}
	store, err := alloc.Open(alloc.Options{StateDir: dir})
	if err != nil {
		return nil, err
	}
	os.RemoveAll(dir) // nothing is saved: the store is never closed
	pool := store.Pool(poolName)
	return poolWorkers(pool, n), fill(context.Background(), pool, members)
}

func poolWorkers(pool *alloc.Pool, n int) []allocator {
	return slices.Repeat([]allocator{func(ctx context.Context) (int, error) {
		got, err := pool.Allocate(ctx, 1)
		return len(got), err
	}}, n)
}

// httpWorkers ask the daemon for some each time, each over a connection that is kept alive. They write
// fixed bytes and read no more of an answer than they must: what is measured is the daemon.
func httpWorkers(socket string, n, each int) ([]allocator, error) {
	many := ""
	if each > 1 {
		many = fmt.Sprintf("&n=%d", each)
	}
	request := []byte("POST /v1/pools/" + poolName + "/allocate?timeout_ms=10000" + many + " HTTP/1.1\r\nHost: evenpool\r\nContent-Length: 0\r\n\r\n")
	workers := make([]allocator, n)
	for i := range workers {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		in := bufio.NewReader(conn)
		var body bytes.Buffer
		workers[i] = func(context.Context) (int, error) {
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				return 0, err
			}
			if _, err := conn.Write(request); err != nil {
				return 0, err
			}
			body.Reset()
			if err := readAnswer(in, &body); err != nil {
				return 0, err
			}
			if got := bytes.Count(body.Bytes(), []byte(`"proxy":"http://`)); got != each {
				return 0, fmt.Errorf("%d allocations, want %d: %.200q", got, each, body.String())
			}
			return each, nil
		}
	}
	return workers, nil
}

func readAnswer(in *bufio.Reader, body *bytes.Buffer) error {
	status, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	length := -1
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		if strings.EqualFold(name, "Content-Length") {
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without Content-Length")
	}
	if _, err := io.CopyN(body, in, int64(length)); err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return fmt.Errorf("%s: %.200q", strings.TrimSpace(status), body.String())
	}
	return nil
}

// fill puts members into a pool, through the store itself. None is due while the bench runs.
func fill(ctx context.Context, pool *alloc.Pool, members int) error {
	if _, err := pool.Init(ctx); err != nil {
		return err
	}
	due := time.Now().AddDate(1, 0, 0)
	var settlements []alloc.Settlement
	for i := range members {
		endpoint := fmt.Sprintf("198.%d.%d.%d:8080", 18+i/62500, i/250%250, i%250)
		settlements = append(settlements, alloc.Settlement{
			Endpoint: endpoint, Record: []byte("{}"), Due: due,
			Action: alloc.Admit, Member: "http://" + endpoint, Reason: "bench",
		})
	}
	_, err := pool.Settle(ctx, settlements, alloc.SettlePolicy{Host: "bench"})
	return err
}
