package alloc

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sethvargo/go-retry"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one file of lua/.
type script struct {
	name   string
	source string
	sha    string // what EVALSHA knows it by
	texts  bool   // its reply is a list of strings, and read as one: a quarter of the work of reading anything
}

// scripts is the list of all of them.
type scripts struct {
	allocate, offer, claim, claimThese, settle, forget, repair, report, init, setMeta *script
}

func newScripts() scripts {
	return scripts{
		allocate:   mustScript("allocate").asTexts(),
		offer:      mustScript("offer"),
		claim:      mustScript("claim"),
		claimThese: mustScript("claim_these"),
		settle:     mustScript("settle"),
		forget:     mustScript("forget"),
		repair:     mustScript("repair"),
		report:     mustScript("report"),
		init:       mustScript("init"),
		setMeta:    mustScript("set_meta"),
	}
}

func mustScript(name string) *script {
	source, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	sum := sha1.Sum(source)
	return &script{name: name, source: string(source), sha: hex.EncodeToString(sum[:])}
}

func (sc *script) asTexts() *script {
	sc.texts = true
	return sc
}

// scriptCmd is one sending of a script. It knows whether go-redis has begun to write it: errors
// before that (dialling, greeting, waiting for a connection) prove that nothing ran.
type scriptCmd struct {
	redis.Cmder
	sent   bool
	before func() // called before it is written; may be nil
}

// Args is what go-redis calls to write the command. Were it ever called before that, a sending
// that did not happen would be taken for one that did, which errs on the safe side.
func (c *scriptCmd) Args() []any {
	if !c.sent && c.before != nil {
		c.before()
	}
	c.sent = true
	return c.Cmder.Args()
}

// val is the reply; nil, or an empty list, where there is none.
func (c *scriptCmd) val() any {
	switch cmd := c.Cmder.(type) {
	case *redis.StringSliceCmd:
		return cmd.Val()
	case *redis.Cmd:
		return cmd.Val()
	}
	return nil
}

// NoRetry keeps go-redis, its Cluster client included, from sending a script again.
func (c *scriptCmd) NoRetry() bool { return true }

// maxBudget bounds calls whose context has no deadline.
const maxBudget = 10 * time.Second

// quickTries is how many more tries a refused connection gets. Redis being away is answered at
// once rather than at the end of the budget.
const quickTries = 2

// run runs a script to its end: a reply, or an error that says what became of it. What provably
// did not run is tried again until the deadline. Once a script is written, its reply is awaited
// until the deadline even when ctx is cancelled: going away early would only make the outcome unknown.
func (s *Store) run(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	ctx, cancel := withBudget(ctx)
	defer cancel()
	// Afterwards: a snapshot taken before the script ran must not count as holding its work.
	defer s.changed.Store(true)

	var reply any
	var last error
	lastFate := fateNotRun
	tries := 0
	backoff := retry.WithJitterPercent(20, retry.WithCappedDuration(100*time.Millisecond, retry.NewExponential(10*time.Millisecond)))
	err := retry.Do(ctx, backoff, func(ctx context.Context) error {
		var sent bool
		reply, sent, last = s.send(ctx, sc, keys, args, nil)
		lastFate = fateOf(last, sent)
		switch lastFate {
		case fateBusy:
			return retry.RetryableError(last)
		case fateAway:
			if tries++; tries <= quickTries {
				return retry.RetryableError(last)
			}
		}
		return last
	})
	if err == nil {
		return reply, nil
	}
	if last == nil {
		last = err
	}
	return nil, lastFate.wrap(last)
}

// send sends a script once by its hash, and by its text where Redis does not know the hash: after
// a restart, a failover or SCRIPT FLUSH. before, if not nil, is called when there is a connection and
// nothing has been written; what args point to may change until it returns.
func (s *Store) send(ctx context.Context, sc *script, keys []string, args []any, before func()) (reply any, sent bool, err error) {
	cmd := sc.cmd(ctx, "evalsha", sc.sha, keys, args)
	cmd.before = before
	err = s.client.Process(ctx, cmd)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = sc.cmd(ctx, "eval", sc.source, keys, args)
		err = s.client.Process(ctx, cmd)
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return cmd.val(), cmd.sent, err
}

func (sc *script) cmd(ctx context.Context, command, body string, keys []string, args []any) *scriptCmd {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, command, body, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	all = append(all, args...)
	if sc.texts {
		return &scriptCmd{Cmder: redis.NewStringSliceCmd(ctx, all...)}
	}
	return &scriptCmd{Cmder: redis.NewCmd(ctx, all...)}
}

func withBudget(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, maxBudget)
}

// texts takes a script's reply for a list of strings, in groups of some.
func texts(reply any, group int) ([]string, error) {
	list, ok := reply.([]any)
	if !ok || len(list)%group != 0 {
		return nil, fmt.Errorf("unexpected reply of type %T", reply)
	}
	out := make([]string, len(list))
	for i, value := range list {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("unexpected %T in the reply", value)
		}
		out[i] = text
	}
	return out, nil
}

// wholes takes a script's reply for a list of whole numbers.
func wholes(reply any) ([]int64, error) {
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("unexpected reply of type %T", reply)
	}
	out := make([]int64, len(list))
	for i, value := range list {
		if out[i], ok = value.(int64); !ok {
			return nil, fmt.Errorf("unexpected %T in the reply", value)
		}
	}
	return out, nil
}

// hasWord says whether an error reply carries a word at its start, or further in where a server
// puts the place in the script before it (Redis 6.2).
func hasWord(err error, word string) bool {
	var replied redis.Error
	if !errors.As(err, &replied) {
		return false
	}
	text := replied.Error()
	return strings.HasPrefix(text, word+" ") || strings.Contains(text, ": "+word+" ") || strings.Contains(text, ": -"+word+" ")
}
