package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-retry"

	"evenpool/alloc"
	"evenpool/sources/proxyurl"
)

const (
	offered = 100_000
	// pipelined is how many candidates the other way sends at a time.
	pipelined = 1000
)

// offerAgainstPipeline offers candidates to an empty pool in each round, and puts
// the same data into keys of its own on the same server.
func offerAgainstPipeline(ctx context.Context, dir string, rounds int) (figure, error) {
	url, end, err := startRedis(ctx, dir)
	if err != nil {
		return figure{}, err
	}
	defer end()
	store, err := alloc.Open(alloc.Options{URL: url})
	if err != nil {
		return figure{}, err
	}
	defer store.Close()
	clientOptions, err := redis.ParseURL(url)
	if err != nil {
		return figure{}, err
	}
	client := redis.NewClient(clientOptions)
	defer client.Close()

	offers := candidates(offered)
	due := time.Now().AddDate(1, 0, 0)
	ways := [2]func(round int) error{
		func(round int) error {
			pool := store.Pool(fmt.Sprintf("bench-%d", round))
			if _, err := pool.Init(ctx); err != nil {
				return err
			}
			added, err := pool.Offer(ctx, offers, due)
			if err == nil && added != offered {
				err = fmt.Errorf("%d of %d candidates were new", added, offered)
			}
			return err
		},
		func(round int) error {
			return pipeline(ctx, client, fmt.Sprintf("direct-%d", round), offers, due)
		},
	}
	var ratios []float64
	for round := range rounds + 1 {
		if err := client.FlushAll(ctx).Err(); err != nil {
			return figure{}, err
		}
		var took [2]time.Duration
		for i := range ways {
			way := (i + round) % 2
			began := time.Now()
			if err := ways[way](round); err != nil {
				return figure{}, err
			}
			took[way] = time.Since(began)
		}
		if round > 0 { // the first one warms up
			ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
			fmt.Fprintf(os.Stderr, "round %d of %d: offered in %v, pipelined in %v\n", round, rounds, took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
		}
	}
	return figure{value: median(ratios), unit: "ratio", most: 1.5}, nil
}

// pipeline writes the same data as one would without scripts.
func pipeline(ctx context.Context, client *redis.Client, prefix string, offers []alloc.Offer, due time.Time) error {
	score := float64(due.UnixMilli())
	for len(offers) > 0 {
		some := offers[:min(pipelined, len(offers))]
		offers = offers[len(some):]
		p := client.Pipeline()
		for _, o := range some {
			p.HSet(ctx, prefix+":record", o.Endpoint, "1|"+string(o.Record))
			p.ZAddNX(ctx, prefix+":due", redis.Z{Score: score, Member: o.Endpoint})
		}
		if _, err := p.Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

// candidates are as a list gives them, with records as the daemon writes them.
func candidates(n int) []alloc.Offer {
	var offers []alloc.Offer
	for i := 1; len(offers) < n; i++ {
		p := invented(i)
		if _, forbidden := proxyurl.Forbidden(p.addr); forbidden {
			continue
		}
		offers = append(offers, alloc.Offer{Endpoint: p.hostport(),
			Record: []byte(`{"schemes":["http"],"sources":["mylist"],"first_seen":"2023-01-02T03:04:05Z"}`)})
	}
	return offers
}

// startRedis starts a server that keeps nothing on disk, on a Unix socket.
func startRedis(ctx context.Context, dir string) (url string, end func(), err error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		program, err = exec.LookPath("valkey-server")
	}
	if err != nil {
		return "", nil, errors.New("neither redis-server nor valkey-server is on PATH (Debian: apt-get install redis-server)")
	}
	socket := filepath.Join(dir, "redis.sock")
	server := exec.Command(program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "no")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		server.Process.Signal(syscall.SIGTERM)
		server.Wait()
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, MaxRetries: -1})
	defer client.Close()
	backoff := retry.WithMaxDuration(10*time.Second, retry.NewConstant(20*time.Millisecond))
	err = retry.Do(ctx, backoff, func(ctx context.Context) error { return retry.RetryableError(client.Ping(ctx).Err()) })
	if err != nil {
		end()
	}
	return "unix://" + socket, end, err
}
