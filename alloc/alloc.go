// Package alloc keeps pools of proxies in Redis, or in the embedded store, and hands out the member
// that was allocated least.
//
// A pool's members are a plain sorted set, member URL to count. Whatever reads and then writes is
// one Lua script (lua/NAME.lua), run by one method; this package is the only one that knows Redis.
//
// A script runs once, or the caller is told that nobody knows: what provably did not run is tried
// again inside the context's deadline and ends as ErrUnavailable; a lost reply is ErrOutcomeUnknown.
package alloc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

var (
	// ErrUnavailable says that Redis could not be asked: the call provably changed nothing. It
	// wraps the cause and may be tried again.
	ErrUnavailable = errors.New("store unavailable")
	// ErrOutcomeUnknown says that a script was sent and its reply was lost: it ran once or not at
	// all. Trying again may do it twice.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrBusy says that too many allocations from the pool are waiting. Nothing was allocated.
	ErrBusy = errors.New("too many allocations are waiting")
	// ErrPoolLost says that a pool is not merely empty: its meta is gone too, or was never made.
	ErrPoolLost = errors.New("pool lost")
	// ErrWrongType says that a key of the pool holds something else. Nothing was changed.
	ErrWrongType = errors.New("a key of the pool has another type")
	// ErrStateDirTaken says that another process has the embedded store's directory.
	ErrStateDirTaken = errors.New("another process has this state directory")
	// ErrSchema says that the pool was made by a version that keeps it in another form.
	ErrSchema = errors.New("pool of another schema version")
)

// Limits of the embedded store. They are told, not enforced: beyond them it still works, slowly,
// since it sorts a set whenever it reads one.
const (
	EmbeddedMaxMembers    = 2_000
	EmbeddedMaxCandidates = 10_000
)

// MaxCount is the highest count that a start or restore policy may give: 2^52. From 2^53 on, adding
// one changes nothing.
const MaxCount = 1 << 52

// The most that one run of a script takes, so that no run is long: under 5 ms with 100,000 members.
// Larger requests become several runs. The scripts refuse more than that.
const (
	maxPerCall = 500
	maxSettled = 50 // an admission takes three commands
)

// Pool is one pool in a store. All it holds is the requests that wait. It is safe for concurrent use.
type Pool struct {
	name   string
	keys   keys
	store  *Store
	gather *gatherer
}

// Pool gives the pool of that name, which must have passed ParsePoolName. It asks nobody: whether
// the pool exists is seen when it is used (see Init). Allocations are gathered by those who share
// what it returns.
func (s *Store) Pool(name string) *Pool {
	p := &Pool{name: name, keys: keysOf(name), store: s}
	p.gather = &gatherer{pool: p}
	return p
}

// Name is the pool's name.
func (p *Pool) Name() string { return p.name }

// ParsePoolName checks a pool's name: 1 to 32 of a to z, 0 to 9, '_' and '-', the first a letter
// or digit.
func ParsePoolName(text string) (string, error) {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`).MatchString(text) {
		return "", fmt.Errorf("%.64q is no pool name; write 1 to 32 of a-z 0-9 _ -, beginning with a letter or digit", text)
	}
	return text, nil
}

// run runs a script of this pool and names both in the error.
func (p *Pool) run(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	reply, err := p.store.run(ctx, sc, keys, args...)
	if err != nil {
		return nil, fmt.Errorf("%s in pool %s: %w", sc.name, p.name, err)
	}
	return reply, nil
}
