package alloc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// defaultPoolSize is how many connections a store opens at most.
const defaultPoolSize = 8

// dialTimeout is how long connecting may take; a call's own deadline may end sooner.
const dialTimeout = time.Second

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// newClient makes a client that sends nothing twice, keeps deadlines and opens few connections. It
// does not dial. A nil dial is the network's.
func newClient(options Options, dial dialFunc) (*redis.Client, error) {
	quietGoRedis()
	o := &redis.Options{Addr: "embedded"}
	if options.URL != "" {
		var err error
		if o, err = parseURL(options.URL); err != nil {
			return nil, err
		}
	}
	if options.Username != "" {
		o.Username = options.Username
	}
	if options.Password != "" {
		o.Password = options.Password
	}
	o.Dialer = dial
	o.PoolSize = options.PoolSize
	if o.PoolSize <= 0 {
		o.PoolSize = defaultPoolSize
	}
	// PoolSize alone is no ceiling, and pipelines would get a pool of their own beside it.
	o.MaxActiveConns = o.PoolSize
	o.PipelinePoolSize = -1
	// A lost reply must not make go-redis send again.
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = dialTimeout
	// Every call has a deadline, which is what bounds reading, writing and waiting for a connection.
	o.ContextTimeoutEnabled = true
	o.ReadTimeout = maxBudget
	o.WriteTimeout = maxBudget
	o.PoolTimeout = maxBudget
	// RESP2: no push messages to look for before each command.
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	// A server that is full greets with an error and hangs up, which go-redis takes for an old
	// server. One question more shows it before a script is sent into nothing.
	o.OnConnect = func(ctx context.Context, cn *redis.Conn) error { return cn.Ping(ctx).Err() }
	return redis.NewClient(o), nil
}

// parseURL reads redis://, rediss:// and unix:// URLs. Errors do not repeat the URL, which may
// hold a password.
func parseURL(text string) (*redis.Options, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("redis url: not a URL; write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB")
	}
	for name := range u.Query() {
		if name != "db" {
			return nil, fmt.Errorf("redis url: unknown parameter %.32q; only db is known", name)
		}
	}
	if u.Scheme == "unix" && u.Path == "" {
		return nil, errors.New("redis url: unix:// without a path; write unix:///PATH")
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New("redis url: unusable; write redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH?db=DB")
	}
	return o, nil
}

// quietGoRedis stops go-redis from printing to standard error: each call returns its error.
var quietGoRedis = sync.OnceFunc(func() { redis.SetLogger(silence{}) })

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}
