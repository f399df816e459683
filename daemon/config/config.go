// Package config is evenpool's YAML file: its types, defaults and rules, and
// errors that say where and what to write instead.
//
// A file is read by Load, or Parse for bytes at hand. All that is wrong with it
// is reported at once. What comes back is complete: defaults are filled in, a
// pool names its sources and judges, and every text has become a type.
package config

import (
	"io/fs"
	"time"

	"evenpool/alloc"
	"evenpool/sources/proxyurl"
)

// Config is the whole file.
type Config struct {
	Redis  Redis
	Socket Socket
	// StateDir is the directory of what this host keeps for itself: the last good
	// copy of each list, for the next start, and the pools of the embedded store.
	// Default: /var/lib/evenpool. It is made if it is missing, and locked by the
	// daemon that uses it.
	StateDir string
	// MaxDialsPerSecond is how many connections the probes of all pools begin in a
	// second, from 0 to 100,000. Default: 1,000. Zero has no limit. Raising it
	// shortens long cycles, and fills the tables of routers and firewalls on the way,
	// which then drop others' connections too.
	MaxDialsPerSecond int
	GeoIP             GeoIP
	// Judges are the web servers that probes ask; in the file's order, at least one.
	Judges []Judge
	// Targets are pages of the operator's that pools may require to be reached; in
	// the file's order. Default: none.
	Targets []Target
	// Sources are the lists of candidates; in the file's order, at least one.
	Sources []Source
	// Pools are what workers allocate from; in the file's order, at least one.
	Pools []Pool

	places places // for what is found to be wrong later
}

// Redis says where the pools are kept.
type Redis struct {
	// URL is redis://HOST:PORT/DB, rediss://HOST:PORT/DB (TLS) or
	// unix:///PATH?db=DB. Default: empty, the embedded store in StateDir, which is
	// for trying out and for one small host.
	URL string
	// Username is the ACL user. Default: empty, the server's default user.
	Username string
	// PasswordFile is a file whose content, less one newline at its end, is the
	// password. Default: empty: systemd's credential "redis-password" if there is
	// one, else no password. Read it with Password.
	PasswordFile string
	// PoolSize is the most connections that the daemon opens, from 1 to 1,000.
	// Default: 8. Raising it helps only where the network is slow, as waiting
	// allocations share a script; lowering it spares a server with many clients.
	PoolSize int
}

// Socket is the Unix socket on which workers ask.
type Socket struct {
	// Path is the socket's file, at most 107 bytes long. Default:
	// /run/evenpool/evenpool.sock, or what Defaults says.
	Path string
	// Mode is the file's permission bits. Default: 0660, the daemon's user and
	// group. Whoever can write to the socket can allocate. Zero is refused, as
	// nobody could ask.
	Mode fs.FileMode
}

// Source is one list of candidates.
type Source struct {
	// Name is unique among the sources: [a-z0-9][a-z0-9_-]{0,31}.
	Name string
	// URL is http://, https:// or file:///PATH.
	URL string
	// Format names the one of sources.Formats that the list is written in.
	// Default: "auto", it is found by content.
	Format string
	// Scheme is what the list's proxies speak where a record does not say: one of
	// proxyurl.Claims. "any" has it found out by probing, which costs a probe for
	// each scheme that a pool wants. Default: empty, such records are rejected.
	Scheme proxyurl.Scheme
	// Schedule is when the list is fetched, besides the daemon's start. Default:
	// "*/30 * * * *". More often finds new proxies sooner and is harder on
	// whoever publishes the list.
	Schedule Schedule
	// Headers are sent with the request, by canonical name (X-Key), at most 32; a
	// key of a paid list is one. Their values are secrets and are never shown.
	// Default: none. A file has none, and no UserAgent and Proxy either.
	Headers map[string]string
	// UserAgent is sent as User-Agent, at most 256 bytes. Default: empty, evenpool
	// and its version.
	UserAgent string
	// Proxy is the proxy to fetch through: http://, https:// or socks5://, with
	// HOST:PORT, and a user and password if it asks for them. Default: empty,
	// none; the environment has no say in it.
	Proxy string
	// Timeout is for one fetch, all tries of it; from 1s to 10m. Default: 30s.
	// Raising it waits longer for slow servers and large lists.
	Timeout time.Duration
	// MaxBytes bounds the list, unpacked, from 1,024 to 256 MiB. Default: 16 MiB.
	// A larger list is not used at all: the last good copy is. Raising it costs
	// memory, up to four times as much while the list is read.
	MaxBytes int
	// MaxCandidates bounds what is taken of the list, from 1 to 1,000,000.
	// Default: 200,000. Records beyond it are rejected and counted.
	MaxCandidates int
	// AllowAddresses are the prefixes that may be dialled for this source's
	// candidates, and for the list itself, although they are not public: your own
	// proxies, or the lab. Never for a list that others write. Default: none.
	AllowAddresses proxyurl.Allow
}

// Pool is a set of eligible proxies with one policy.
type Pool struct {
	// Name is unique among the pools: [a-z0-9][a-z0-9_-]{0,31}. It is part of the
	// pool's keys in Redis: under a new name, a pool starts anew.
	Name string
	// Sources are the names of the lists it draws on. Default: all.
	Sources []string
	// Judges are the names of the judges that its probes ask. Default: all.
	Judges []string
	// MaxCandidates bounds how many proxies the store knows for the pool, members
	// aside, from 1 to 2,000,000. Default: 200,000. Beyond it the oldest that were
	// never proven go first. Lowering it spares memory of the store; raising it
	// makes rounds through all candidates longer.
	MaxCandidates int
	Probe         Probe
	Eligibility   Eligibility
	Guard         Guard
	Allocation    Allocation
}

// Probe says when and how a pool's proxies are asked.
type Probe struct {
	// Schedule is when a cycle begins, besides the daemon's start; a cycle ends
	// before the next is due. Default: "*/5 * * * *". More often notices dead
	// members sooner and costs traffic; less often leaves more of them in the pool.
	Schedule Schedule
	// Timeout is the time for one probe, from dialling to the last byte; from
	// 100ms to 5m and less than the schedule's shortest interval. Default: 8s.
	// Raising it finds slow proxies and makes cycles longer: most candidates are
	// dead and use all of it.
	Timeout time.Duration
	// ConfirmAfter is how long after a first pass a proxy is asked again within
	// the same cycle, until it has passed Rise times; from 0 to 10m. Default: 5s.
	// Zero asks again at once, which proves less: many a proxy answers once.
	ConfirmAfter time.Duration
	// ConnectTimeout is the time for the connection to the proxy alone, from 100ms to
	// 5m; a longer one than Timeout counts as that. Default: 4s, in which a lost first
	// packet is sent again twice (after 1 s and 3 s, RFC 6298). Lowering it lets go of
	// dead candidates sooner and loses distant proxies where packets are lost.
	ConnectTimeout time.Duration
	// ProxyCAFile is a PEM file of roots that are trusted besides the system's for
	// the certificates of https proxies. Default: empty. A worker's client has to
	// trust them too.
	ProxyCAFile string
	// Concurrency is the most probes at once, from 1 to 10,000. Default: 512.
	// Raising it shortens cycles and needs descriptors, memory and bandwidth.
	Concurrency int
}

// Guard keeps one bad cycle from emptying a pool.
type Guard struct {
	// MaxRetired is the share of the members that one cycle may retire; one
	// member always may. Default: 20%. At 0% it is one for each cycle; at 100%
	// there is no limit.
	MaxRetired Percent
	// PanicAbove is the share of failing members above which the observer is
	// taken to be at fault and nothing is retired. Default: 50%. At 0% any five
	// failing members do, at 100% none do.
	PanicAbove Percent
	// MaxFreeze is how long PanicAbove may hold a pool; then MaxRetired alone
	// counts. Default: 15m. Zero never freezes. Raising it keeps a pool through
	// longer outages of the observer, and dead members for longer.
	MaxFreeze time.Duration
}

// Allocation says what a proxy's count is when it comes in.
type Allocation struct {
	// Start is the count at the first admission: a whole number up to 2^52, or
	// "min", "median", "max" of the pool, or "zero". Default: "min". A proxy with
	// a lower count than all others gets every allocation until it has caught up.
	Start alloc.Policy
	// Restore is the count of a proxy that comes back: the same, or "keep" (what
	// it had), or "floor" (the larger of keep and min). Default: "floor".
	Restore alloc.Policy
	// ForgetAfter is how long a retired count is kept for Restore, and how long the
	// store knows a candidate that no list names, two fetches of the slowest list at
	// least. Default: 168h. Zero forgets at once: each comes back by Start.
	ForgetAfter time.Duration
}
