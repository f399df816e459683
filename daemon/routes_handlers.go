package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// call is a request as the handlers see it.
type call struct {
	pool   string // "" when the path names none
	source string // likewise
	query  query
	text   bool // the answer is wanted as plain text
}

// reply is a successful answer: JSON, or text, or nothing (204).
type reply struct {
	status  int // 0 means 200
	json    any
	written []byte // JSON that is written already
	text    string
}

// maxMemberText bounds a member in a text, in bytes: a host name of 253 and a
// user and password of 255 each, percent-encoded, are shorter.
const maxMemberText = 2048

func (rt *routes) allocate(ctx context.Context, c call) (reply, error) {
	many := c.query.has("n")
	n := 1
	if many {
		var err error
		if n, err = c.query.whole("n", 1, api.MaxAllocate); err != nil {
			return reply{}, err
		}
	}
	pool, err := rt.poolOf(c)
	if err != nil {
		return reply{}, err
	}
	return rt.allocateSome(ctx, pool, n, many, c.text)
}

// allocateSome answers with n allocations. many: as a list, also for n = 1; text: as lines.
func (rt *routes) allocateSome(ctx context.Context, pool string, n int, many, text bool) (reply, error) {
	list, err := rt.backend.allocate(ctx, pool, n)
	switch {
	case err != nil && len(list) > 0:
		// Many take several scripts, and one of the later ones failed: those before it did run.
		return reply{}, fmt.Errorf("%w: %d of %d were allocated, then: %v", alloc.ErrOutcomeUnknown, len(list), n, err)
	case err != nil:
		return reply{}, err
	case text && len(list) == 0:
		return reply{status: http.StatusNoContent}, nil
	case text:
		var b strings.Builder
		for _, a := range list {
			// Whoever else writes to the pool's set shall not break the lines. What we
			// admit has nothing to escape.
			b.WriteString(proxyurl.Escape(a.Member, maxMemberText))
			b.WriteByte('\n')
		}
		return reply{text: b.String()}, nil
	case len(list) == 0 && many:
		return reply{json: api.AllocateMany{RetryAfterMS: rt.backend.emptyRetry(pool).Milliseconds()}}, nil
	case len(list) == 0:
		return reply{json: api.AllocateOne{RetryAfterMS: rt.backend.emptyRetry(pool).Milliseconds()}}, nil
	case many:
		return reply{written: appendMany(nil, list)}, nil
	}
	return reply{written: appendOne(nil, list[0])}, nil
}

// poolOf gives the pool of the path, or the only pool when it names none.
func (rt *routes) poolOf(c call) (string, error) {
	if c.pool != "" {
		return c.pool, nil
	}
	names := rt.backend.poolNames()
	if len(names) == 1 {
		return names[0], nil
	}
	return "", badRequest("there are %d pools, so name one of them: POST /v1/pools/{pool}/allocate with %s",
		len(names), listNames(names))
}

func (rt *routes) status(ctx context.Context, _ call) (reply, error) {
	answer, err := rt.backend.status(ctx)
	return reply{json: answer}, err
}

func (rt *routes) pool(ctx context.Context, c call) (reply, error) {
	answer, err := rt.backend.pool(ctx, c.pool)
	return reply{json: answer}, err
}

func (rt *routes) members(ctx context.Context, c call) (reply, error) {
	list, err := rt.backend.members(ctx, c.pool)
	return reply{json: api.Members{Members: list}}, err
}

func (rt *routes) why(ctx context.Context, c call) (reply, error) {
	if !c.query.has("url") {
		return reply{}, badRequest("which proxy? add ?url=SCHEME://HOST:PORT or ?url=HOST:PORT, percent-encoded")
	}
	endpoint, err := parseProxy(c.query.get("url"))
	if err != nil {
		return reply{}, badRequest("url: %v; expected SCHEME://[USER:PASSWORD@]HOST:PORT or the same without SCHEME://, percent-encoded as a whole", err)
	}
	answer, err := rt.backend.why(ctx, c.pool, endpoint)
	return reply{json: answer}, err
}

// parseProxy reads a proxy's URL or its endpoint alone.
func parseProxy(text string) (proxyurl.Endpoint, error) {
	if strings.Contains(text, "://") {
		u, err := proxyurl.ParseURL(text)
		return u.Endpoint, err
	}
	return proxyurl.ParseEndpoint(text)
}

func (rt *routes) probeNow(ctx context.Context, c call) (reply, error) {
	if err := rt.backend.probeNow(ctx, c.pool); err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusAccepted, json: api.ProbeStarted{Pool: c.pool}}, nil
}

func (rt *routes) sources(ctx context.Context, _ call) (reply, error) {
	list, err := rt.backend.sourceStates(ctx)
	return reply{json: api.Sources{Sources: list}}, err
}

// fetch waits for the end of a fetch, which may take longer than any budget: then
// it goes on, and the answer is how the source was before, as 202.
func (rt *routes) fetch(ctx context.Context, c call) (reply, error) {
	rep := reply{}
	if err := rt.backend.fetchNow(ctx, c.source); err != nil {
		if ctx.Err() == nil || !errors.Is(err, context.Cause(ctx)) {
			return rep, err
		}
		rep.status = http.StatusAccepted
	}
	list, err := rt.backend.sourceStates(ctx)
	if err != nil {
		return rep, err
	}
	i := slices.IndexFunc(list, func(s api.Source) bool { return s.Name == c.source })
	if i < 0 {
		return rep, errUnknownSource
	}
	rep.json = list[i]
	return rep, nil
}

// listNames writes names of pools or sources for a message.
func listNames(names []string) string {
	return proxyurl.Escape(strings.Join(names, ", "), 300)
}
