package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Client asks a daemon on this host. Its zero value is ready for use and finds
// the daemon's socket by itself. It keeps connections for the next request, and
// may be used by many goroutines at once.
//
// Every method has the time that its ctx has left, or DefaultBudget when ctx has
// no deadline, and tells the daemon so. Every error is an *Error. A pool's name
// may be left empty when the daemon has only one.
type Client struct {
	// Socket is the path of the daemon's socket. Empty means $EVENPOOL_SOCKET, or
	// else the first that exists of the places where a daemon puts it.
	Socket string

	once sync.Once
	http *http.Client
}

const (
	// grace is how much longer than the budget the client waits for a daemon that
	// should have answered.
	grace = time.Second
	// maxAnswer bounds what is read of an answer; 100,000 members have 20 MB.
	maxAnswer = 64 << 20
	// fetchAgain is the time between two looks at a fetch that takes long.
	fetchAgain = 200 * time.Millisecond
)

// Allocate asks for one proxy. An empty pool is no error: Proxy is nil then, and
// the caller makes no request. After an error with CodeOutcomeUnknown an
// allocation may have been counted; it is not tried again here.
func (c *Client) Allocate(ctx context.Context, pool string) (AllocateOne, error) {
	var answer AllocateOne
	err := c.do(ctx, http.MethodPost, allocatePath(pool), nil, &answer)
	return answer, err
}

// AllocateMany asks for n proxies, 1 to MaxAllocate, exactly as n calls of
// Allocate would give them when nobody else asks: with fewer than n members they
// come repeatedly.
func (c *Client) AllocateMany(ctx context.Context, pool string, n int) (AllocateMany, error) {
	var answer AllocateMany
	err := c.do(ctx, http.MethodPost, allocatePath(pool), url.Values{"n": {strconv.Itoa(n)}}, &answer)
	return answer, err
}

func allocatePath(pool string) string {
	if pool == "" {
		return "/v1/allocate"
	}
	return poolPath(pool) + "/allocate"
}

// Status asks how the daemon, its store and all of its pools are.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var answer Status
	err := c.do(ctx, http.MethodGet, "/v1/status", nil, &answer)
	return answer, err
}

// Pool asks how one pool is.
func (c *Client) Pool(ctx context.Context, pool string) (Pool, error) {
	var answer Pool
	err := c.doPool(ctx, http.MethodGet, pool, "", nil, &answer)
	return answer, err
}

// Members gives a pool's members in the order in which they would be allocated.
func (c *Client) Members(ctx context.Context, pool string) ([]Member, error) {
	var answer Members
	err := c.doPool(ctx, http.MethodGet, pool, "/members", nil, &answer)
	return answer.Members, err
}

// Why asks why a proxy is, or is not, a member. The proxy is a URL or an
// endpoint (host:port, [user:password@]host:port).
func (c *Client) Why(ctx context.Context, pool, proxy string) (Why, error) {
	var answer Why
	err := c.doPool(ctx, http.MethodGet, pool, "/proxies", url.Values{"url": {proxy}}, &answer)
	return answer, err
}

// ProbeNow begins a cycle of the pool and does not wait for its end. CodeBusy
// says that one is running.
func (c *Client) ProbeNow(ctx context.Context, pool string) error {
	var answer ProbeStarted
	return c.doPool(ctx, http.MethodPost, pool, "/probe", nil, &answer)
}

// Sources asks how the lists are, in the order of the configuration.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	var answer Sources
	err := c.do(ctx, http.MethodGet, "/v1/sources", nil, &answer)
	return answer.Sources, err
}

// FetchSource has a list fetched now, and waits for the end, at most as long as
// ctx says, which may be longer than MaxBudget. What came of it, well or not, is
// in the answer. CodeBusy says that a fetch of it is under way: one from before,
// or this one, which took longer and goes on.
func (c *Client) FetchSource(ctx context.Context, name string) (Source, error) {
	var before Source
	status, err := c.send(ctx, http.MethodPost, "/v1/sources/"+url.PathEscape(name)+"/fetch", nil, &before)
	if err != nil || status != http.StatusAccepted {
		return before, err
	}
	busy := &Error{Code: CodeBusy, RetryAfter: time.Second, Message: "the fetch of " + name + " is still under way, and goes on"}
	deadline, _ := ctx.Deadline()
	for time.Until(deadline) > fetchAgain {
		select {
		case <-ctx.Done():
			busy.cause = ctx.Err()
			return before, busy
		case <-time.After(fetchAgain):
		}
		list, err := c.Sources(ctx)
		if err != nil {
			return before, err
		}
		for _, s := range list {
			if s.Name == name && !s.TriedAt.Equal(before.TriedAt) {
				return s, nil
			}
		}
	}
	return before, busy
}

// Close drops the connections that are kept. The client can still be used.
func (c *Client) Close() error {
	c.client().CloseIdleConnections()
	return nil
}

func poolPath(pool string) string { return "/v1/pools/" + url.PathEscape(pool) }

// doPool is do for a path below a pool. The paths need its name, so that of the
// only pool is asked for first if need be.
func (c *Client) doPool(ctx context.Context, method, pool, path string, query url.Values, answer any) error {
	if pool == "" {
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if len(status.Pools) != 1 {
			var names []string
			for _, p := range status.Pools {
				names = append(names, p.Name)
			}
			return &Error{Code: CodeBadRequest, Message: fmt.Sprintf("there are %d pools, so name one of them: %s",
				len(names), strings.Join(names, ", "))}
		}
		pool = status.Pools[0].Name
	}
	return c.do(ctx, method, poolPath(pool)+path, query, answer)
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, answer any) error {
	_, err := c.send(ctx, method, path, query, answer)
	return err
}

// send makes one request and reads its answer. It never repeats a request that
// the daemon may have carried out. The status is one of success, or 0.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, answer any) (status int, err error) {
	ctx, cancel, budget := withBudget(ctx)
	defer cancel()
	values := url.Values{"timeout_ms": {strconv.FormatInt(budget.Milliseconds(), 10)}}
	for name, list := range query {
		values[name] = list
	}
	// net/http repeats a request by itself only when nothing of it was written,
	// as a POST has no Idempotency-Key; each try begins with GetConn.
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { sent.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	})
	req, err := http.NewRequestWithContext(ctx, method, "http://evenpool"+path+"?"+values.Encode(), nil)
	if err != nil {
		return 0, &Error{Code: CodeBadRequest, Message: err.Error(), cause: err}
	}
	resp, err := c.client().Do(req)
	if err != nil {
		return 0, c.lost(ctx, method, sent.Load(), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("the answer is over %d bytes", maxAnswer)
	}
	if err != nil {
		return 0, c.lost(ctx, method, true, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return 0, errorOf(resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return 0, c.lost(ctx, method, true, fmt.Errorf("the answer is not readable: %w", err))
	}
	return resp.StatusCode, nil
}

// withBudget gives the daemon a little less time than ctx has, so that its word
// on a failure arrives in time; without a deadline in ctx it sets one.
func withBudget(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	deadline, ok := ctx.Deadline()
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, DefaultBudget+grace)
		return ctx, cancel, DefaultBudget
	}
	left := time.Until(deadline)
	budget := left - min(left/10, 100*time.Millisecond)
	budget = min(max(budget, time.Millisecond), MaxBudget)
	ctx, cancel := context.WithTimeout(ctx, budget+grace)
	return ctx, cancel, budget
}

// lost says what is known when no answer came.
func (c *Client) lost(ctx context.Context, method string, sent bool, err error) *Error {
	// The URL that net/http puts before it says nothing new.
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer in time: %w", ctx.Err())
	}
	if sent && method != http.MethodGet {
		return &Error{Code: CodeOutcomeUnknown, cause: err,
			Message: fmt.Sprintf("the daemon on %s was asked, but its answer did not come: %v", c.where(), err)}
	}
	if sent {
		return &Error{Code: CodeUnavailable, cause: err, RetryAfter: time.Second,
			Message: fmt.Sprintf("no answer from the daemon on %s: %v", c.where(), err)}
	}
	return dialError(c.where(), err)
}

func (c *Client) where() string {
	if c.Socket != "" {
		return c.Socket
	}
	return FindSocket()
}

// errorOf reads the error of an answer.
func errorOf(status int, body []byte) *Error {
	e := &Error{Status: status}
	if err := json.Unmarshal(body, e); err != nil || e.Code == "" {
		e.Code = CodeInternal
		e.Message = fmt.Sprintf("HTTP status %d, and no error of evenpool's: %.100q", status, body)
		if status == http.StatusServiceUnavailable {
			e.Code, e.RetryAfter = CodeUnavailable, time.Second
		}
	}
	return e
}

// client gives the HTTP client, made at the first use.
func (c *Client) client() *http.Client {
	c.once.Do(func() {
		c.http = &http.Client{
			Transport: &http.Transport{
				Proxy: nil, // not the environment's either
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					var d net.Dialer
					return d.DialContext(ctx, "unix", c.where())
				},
				DisableCompression:     true,
				MaxIdleConnsPerHost:    64,
				IdleConnTimeout:        30 * time.Second, // well before the daemon closes it (60 s)
				MaxResponseHeaderBytes: 16 << 10,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return c.http
}
