package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"evenpool/alloc"
	"evenpool/daemon/api"
	"evenpool/sources/proxyurl"
)

// backend is what the routes need of the daemon. All methods are called by many
// requests at once; a ctx ends when the request's budget is spent, and the
// method then returns without delay. Texts in answers are escaped and passwords
// hidden, but for the URLs that allocate gives.
type backend interface {
	// poolNames gives the configured pools in the order of the configuration.
	poolNames() []string
	// allocate gives n allocations in order, or none when the pool is empty.
	allocate(ctx context.Context, pool string, n int) ([]alloc.Allocation, error)
	// emptyRetry says when to ask an empty pool again, 1 s or more. It asks nobody.
	emptyRetry(pool string) time.Duration
	// status also answers when the store is away, and says so.
	status(ctx context.Context) (api.Status, error)
	pool(ctx context.Context, name string) (api.Pool, error)
	members(ctx context.Context, pool string) ([]api.Member, error)
	// why explains an endpoint; its password may be "***", as it is shown.
	why(ctx context.Context, pool string, proxy proxyurl.Endpoint) (api.Why, error)
	// report takes down a worker's word on a member; the proxy's password may be "***".
	report(ctx context.Context, pool string, proxy proxyurl.URL, outcome, target string) (api.Reported, error)
	// probeNow begins a cycle through the gate of the schedule and does not wait
	// for its end; errBusy when one is running.
	probeNow(ctx context.Context, pool string) error
	// sourceStates gives the configured sources in the order of the configuration.
	sourceStates(ctx context.Context) ([]api.Source, error)
	// fetchNow fetches a list through the gate of the schedule and waits for the
	// end, whatever that is; errBusy when a fetch of it is under way. A ctx that
	// ends first does not end the fetch.
	fetchNow(ctx context.Context, source string) error
}

// Facts that a backend reports beside those of package alloc (ErrPoolLost,
// ErrUnavailable, ErrOutcomeUnknown) and of what badRequest makes. The text of
// an error that wraps errBusy is shown to the caller.
var (
	errUnknownPool   = errors.New("unknown pool")
	errUnknownSource = errors.New("unknown source")
	errBusy          = errors.New("busy")
)

// routes answers the requests that come through the socket.
type routes struct {
	backend backend
	log     *slog.Logger
	handler http.Handler

	mu       sync.Mutex
	failure  string // the last error that was logged, and when
	failedAt time.Time
}

// route is one request that is understood.
type route struct {
	method string
	path   string
	params []string // query parameters beside timeout_ms, which all have
	answer func(context.Context, call) (reply, error)
}

// list is every route. A GET changes nothing.
func (rt *routes) list() []route {
	return []route{
		{"POST", "/v1/allocate", []string{"n"}, rt.allocate},
		{"POST", "/v1/pools/{pool}/allocate", []string{"n"}, rt.allocate},
		{"POST", "/v1/pools/{pool}/probe", nil, rt.probeNow},
		{"POST", "/v1/pools/{pool}/reports", []string{"proxy", "outcome", "target"}, rt.report},
		{"GET", "/v1/status", nil, rt.status},
		{"GET", "/v1/pools/{pool}", nil, rt.pool},
		{"GET", "/v1/pools/{pool}/members", nil, rt.members},
		{"GET", "/v1/pools/{pool}/proxies", []string{"url"}, rt.why},
		{"GET", "/v1/sources", nil, rt.sources},
		{"POST", "/v1/sources/{source}/fetch", nil, rt.fetch},
	}
}

// newRoutes gives what answers all requests of the socket.
func newRoutes(b backend, log *slog.Logger) *routes {
	rt := &routes{backend: b, log: log}
	byPath := map[string][]route{}
	for _, r := range rt.list() {
		byPath[r.path] = append(byPath[r.path], r)
	}
	mux := http.NewServeMux()
	for path, list := range byPath {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { rt.serve(w, r, list) })
	}
	mux.HandleFunc("/", rt.notFound)
	rt.handler = mux
	return rt
}

// ServeHTTP answers a request that came through net/http.
func (rt *routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := limitBody(w, r); err != nil {
		rt.send(w, rt.failed(r.Context(), askedOf(r), err))
		return
	}
	if overLimit(r.Context()) {
		w.Header().Set("Connection", "close")
		rt.send(w, rt.refused(tooManyConns()))
		return
	}
	// The mux would answer such a path with a redirect, which no client of a
	// socket expects.
	if path.Clean(r.URL.Path) != r.URL.Path {
		rt.notFound(w, r)
		return
	}
	rt.handler.ServeHTTP(w, r)
}

// serve answers a request for a known path.
func (rt *routes) serve(w http.ResponseWriter, r *http.Request, list []route) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(list, func(known route) bool { return known.method == method })
	if i < 0 {
		rt.wrongMethod(w, r, list)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			// Nothing is written before a handler has returned, so the answer is still open.
			rt.send(w, rt.panicked(askedOf(r), p))
		}
	}()
	rep, err := rt.call(w, r, list[i])
	if err != nil {
		rt.send(w, rt.failed(r.Context(), askedOf(r), err))
		return
	}
	rt.send(w, rt.answer(r.Context(), askedOf(r), rep))
}

// call reads the request and has it answered within its budget.
func (rt *routes) call(w http.ResponseWriter, r *http.Request, to route) (reply, error) {
	if err := refuseBody(w, r); err != nil {
		return reply{}, err
	}
	query, err := parseQuery(r.URL.RawQuery, to.params)
	if err != nil {
		return reply{}, err
	}
	budget, err := query.budget()
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(requestContext(r), budget-answerTime(budget))
	defer cancel()
	return to.answer(ctx, call{pool: r.PathValue("pool"), source: r.PathValue("source"), query: query, text: wantsText(r.Header)})
}

// serving is the key of a request context's value: the context of all requests,
// which ends when a stopping daemon waits no longer.
type serving struct{}

// requestContext outlives the client's half of the connection: net/http ends the
// request's own context when a client has sent all and closes its writing side,
// and it is still to be answered. Its budget bounds it.
func requestContext(r *http.Request) context.Context {
	if ctx, ok := r.Context().Value(serving{}).(context.Context); ok {
		return ctx
	}
	return r.Context()
}

// answerTime is the part of a budget that is kept back for the answer itself,
// so that it arrives within the budget.
func answerTime(budget time.Duration) time.Duration {
	return min(budget/20, 50*time.Millisecond)
}

func (rt *routes) notFound(w http.ResponseWriter, r *http.Request) {
	rt.send(w, rt.refused(&api.Error{Code: api.CodeNotFound,
		Message: "no such path: " + proxyurl.Escape(r.URL.Path, 100) + "; all begin with /v1/"}))
}

func (rt *routes) wrongMethod(w http.ResponseWriter, r *http.Request, list []route) {
	var methods []string
	for _, known := range list {
		methods = append(methods, known.method)
		if known.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	allow := strings.Join(methods, ", ")
	w.Header().Set("Allow", allow)
	rt.send(w, rt.refused(&api.Error{Code: api.CodeBadRequest, Status: http.StatusMethodNotAllowed,
		Message: proxyurl.Escape(r.Method, 20) + " is not for this path; use " + allow}))
}
