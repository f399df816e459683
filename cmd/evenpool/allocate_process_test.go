package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"evenpool/alloc"
	"evenpool/alloc/alloctest"
	"evenpool/daemon/api"
)

// worker allocates as often as is asked, in one of several ways, and prints what it got, a line each.
func worker() {
	socket, way := os.Args[1], os.Args[2]
	times, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	client := api.Client{Socket: socket}
	plain := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	for range times {
		switch way {
		case "one":
			got, err := client.Allocate(context.Background(), "web")
			if err != nil {
				panic(err)
			}
			fmt.Println(*got.Proxy)
		case "seven":
			got, err := client.AllocateMany(context.Background(), "web", 7)
			if err != nil {
				panic(err)
			}
			for _, a := range got.Proxies {
				fmt.Println(a.Proxy)
			}
		case "text":
			text, err := askText(&plain)
			if err != nil {
				panic(err)
			}
			fmt.Print(text)
		}
	}
	os.Exit(0)
}

func askText(client *http.Client) (string, error) {
	ask, err := http.NewRequest("POST", "http://evenpool/v1/allocate", nil)
	if err != nil {
		return "", err
	}
	ask.Header.Set("Accept", "text/plain")
	answer, err := client.Do(ask)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}

// classicScript is what anybody may run on a pool's key beside the daemon.
const classicScript = `local chosen = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
if not chosen then return nil end
redis.call('ZINCRBY', KEYS[1], 1, chosen)
return chosen`

// Twelve processes through the socket, for one, for seven and for plain text, and four that run the
// classic script with redis-cli on the same key, all at once, 100,000 allocations: each member's count
// is the number of its answers, and the counts differ by one at the most.
func TestProcessesAndTheClassicScriptShareOnePoolEvenly(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatalf("%v: install it (Debian: apt-get install redis-tools)", err)
	}
	server := alloctest.NewServer(t)
	h := newHost(t, server.URL, quickPool)
	h.start()
	h.awaitCycle()
	var commands []*exec.Cmd
	want := int64(0)
	for way, each := range map[string]int64{"one": 6000, "seven": 2000, "text": 3000} {
		for range 4 {
			commands = append(commands, program(t, "worker", h.client.Socket, way, strconv.FormatInt(each, 10)))
		}
		want += 4 * each
	}
	want += 4 * 6 * 2000 // seven at a time
	for range 4 {
		commands = append(commands, exec.Command("redis-cli", "-s", server.Socket, "-r", "2000",
			"EVAL", classicScript, "1", "evenpool:{web}:eligible"))
		want += 2000
	}
	if len(commands) != 16 || want != 100_000 {
		t.Fatalf("%d processes, %d allocations", len(commands), want)
	}
	var (
		group   sync.WaitGroup
		mu      sync.Mutex
		answers = map[string]int64{}
	)
	for _, cmd := range commands {
		group.Go(func() {
			out, err := cmd.Output()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%s: %v", cmd, err)
			}
			for line := range strings.Lines(string(out)) {
				answers[strings.TrimSpace(line)]++
			}
		})
	}
	group.Wait()
	members, err := openStore(t, server.URL).Pool("web").Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for _, m := range members {
		total += m.Count
		if answers[m.Member] != m.Count {
			t.Errorf("%s has count %d and was answered %d times", m.Member, m.Count, answers[m.Member])
		}
	}
	if total != want {
		t.Errorf("the counts' sum is %d, want %d", total, want)
	}
	if least, most := members[0].Count, members[len(members)-1].Count; most-least > 1 {
		t.Errorf("the counts go from %d to %d", least, most)
	}
}

// kill -9 of the daemon under eight workers, again and again: what they got, and what they do not know
// of, can be explained by allocations that happened one after the other, once or not at all.
func TestHistoryOfADaemonThatIsKilled(t *testing.T) {
	server := alloctest.NewServer(t)
	h := newHost(t, server.URL, quickPool)
	h.start()
	h.awaitCycle()
	pool := openStore(t, server.URL).Pool("web")
	members, err := pool.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	initial := map[string]int64{}
	for _, m := range members {
		initial[m.Member] = m.Count
	}
	history := alloctest.NewHistory(initial)
	const workers, each = 8, 200
	var (
		all  sync.WaitGroup
		done atomic.Int64
	)
	for w := range workers {
		all.Go(func() {
			for i := 0; i < each; {
				n := 1 + (i+w)%3
				_, err := history.Allocate(w, n, func() ([]alloc.Allocation, error) { return askMany(h.client, n) })
				switch {
				case err == nil || errors.Is(err, alloc.ErrOutcomeUnknown):
					i++
					done.Add(1)
				case errors.Is(err, alloc.ErrUnavailable): // nobody is there
					time.Sleep(time.Millisecond)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	for kill := range int64(3) {
		h.await("allocations", func() bool { return done.Load() > (kill+1)*workers*each/5 })
		h.kill()
		h.start()
	}
	all.Wait()
	if !history.Linearizable(t) {
		t.Error("no order of the allocations explains the answers")
	}
}

// askMany is an allocation through the socket with the errors of package alloc.
func askMany(client *api.Client, n int) (got []alloc.Allocation, err error) {
	answer, err := client.AllocateMany(context.Background(), "web", n)
	if failed := (*api.Error)(nil); errors.As(err, &failed) {
		switch failed.Code {
		case api.CodeOutcomeUnknown:
			return nil, fmt.Errorf("%w: %w", alloc.ErrOutcomeUnknown, err)
		case api.CodeUnavailable:
			return nil, fmt.Errorf("%w: %w", alloc.ErrUnavailable, err)
		}
		return nil, err
	}
	for _, a := range answer.Proxies {
		got = append(got, alloc.Allocation{Member: a.Proxy, Count: a.Count})
	}
	return got, nil
}
