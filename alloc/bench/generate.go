package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"evenpool/alloc"
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

// allocator gets one allocation.
type allocator func(ctx context.Context) error

// runGenerator is a load generator's process. It prints how many allocations counted, and how many
// there were with the warm-up.
func runGenerator(ctx context.Context, way, target string, l load) error {
	var workers []allocator
	var err error
	switch way {
	case "http":
		workers, err = httpWorkers(target, l.workers)
	case "direct":
		workers, err = directWorkers(target, l.workers)
	default:
		err = fmt.Errorf("no generator %q", way)
	}
	if err != nil {
		return err
	}
	counted, all, err := drive(ctx, workers, l)
	if err != nil {
		return err
	}
	fmt.Println(counted, all)
	return nil
}

// drive lets all workers allocate as fast as they can.
func drive(ctx context.Context, workers []allocator, l load) (counted, all int64, err error) {
	var warm, total atomic.Int64
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ended atomic.Bool
	var running sync.WaitGroup
	for _, allocate := range workers {
		running.Go(func() {
			for !ended.Load() {
				if err := allocate(ctx); err != nil {
					cancel(err)
					return
				}
				total.Add(1)
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
	warm.Store(total.Load())
	wait(l.duration)
	counted = total.Load() - warm.Load()
	ended.Store(true)
	running.Wait()
	return counted, total.Load(), context.Cause(ctx)
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
		workers[i] = func(ctx context.Context) error {
			_, err := script.EvalSha(ctx, client, []string{eligibleKey}).Text()
			return err
		}
	}
	return workers, nil
}

// httpWorkers ask the daemon, each over a connection that is kept alive. They write fixed bytes and
// read no more of an answer than they must: what is measured is the daemon.
func httpWorkers(socket string, n int) ([]allocator, error) {
	request := []byte("POST /v1/pools/" + poolName + "/allocate?timeout_ms=10000 HTTP/1.1\r\nHost: evenpool\r\nContent-Length: 0\r\n\r\n")
	workers := make([]allocator, n)
	for i := range workers {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return nil, err
		}
		in := bufio.NewReader(conn)
		var body bytes.Buffer
		workers[i] = func(context.Context) error {
			if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				return err
			}
			if _, err := conn.Write(request); err != nil {
				return err
			}
			body.Reset()
			if err := readAnswer(in, &body); err != nil {
				return err
			}
			if !bytes.Contains(body.Bytes(), []byte(`"proxy":"http://`)) {
				return fmt.Errorf("no allocation: %.200q", body.String())
			}
			return nil
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

// fill puts members into the pool, through the store itself. None is due while the bench runs.
func fill(ctx context.Context, store *alloc.Store, members int) error {
	pool := store.Pool(poolName)
	if _, err := pool.Init(ctx); err != nil {
		return err
	}
	due := time.Now().AddDate(1, 0, 0)
	var settlements []alloc.Settlement
	for i := range members {
		endpoint := fmt.Sprintf("198.18.%d.%d:8080", i/250, i%250)
		settlements = append(settlements, alloc.Settlement{
			Endpoint: endpoint, Record: []byte("{}"), Due: due,
			Action: alloc.Admit, Member: "http://" + endpoint, Reason: "bench",
		})
	}
	_, err := pool.Settle(ctx, settlements, alloc.SettlePolicy{Host: "bench"})
	return err
}
