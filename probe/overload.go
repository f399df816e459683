package probe

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Observer is what probes share that does not grow with their number: this host.
// It keeps what they begin within bounds, and knows when the host had no time for
// them: an overloaded observer would call healthy proxies dead. All Probers of a
// process share one. It is safe for concurrent use.
type Observer struct {
	gate   chan struct{} // a token for each core: who computes for TLS holds one
	starts chan struct{} // a token for each core: who opens a connection holds one
	window *window       // TLS questions under way
	dials  *rate.Limiter // nil: no bound

	active atomic.Int64  // questions under way
	wake   chan struct{} // the first one came
	looked atomic.Int64  // when the meter looked last, on the clock of now; 0: it rests
	lag    atomic.Int64  // ns by which it was late then
	absent atomic.Int64  // ns that it was late in total, as far as it matters
	start  time.Time
}

// Bounds of the meter.
const (
	meterTick = 20 * time.Millisecond
	// seriousLag is counted as absence. A question waits some six times for the
	// scheduler, so that less does no harm to time limits of seconds.
	seriousLag = 50 * time.Millisecond
	// slightLag shows that the cores are busy: no more TLS is begun at once then.
	slightLag = 15 * time.Millisecond
	adaptTick = 100 * time.Millisecond
	// idleShare is how much of the host's cores has to be idle for more TLS.
	idleShare = 0.08
	calmTime  = 5 * time.Second // longest wait for an overload to end
)

// ObserverOptions of an Observer; the zero value is usable.
type ObserverOptions struct {
	DialRate float64 // connections begun per second, over all probes of the process; 0: no bound
}

// NewObserver returns an Observer. Without Run it does not measure, and bounds TLS
// by the number of cores alone.
func NewObserver(o ObserverOptions) *Observer {
	cores := runtime.GOMAXPROCS(0)
	observer := &Observer{gate: make(chan struct{}, cores), starts: make(chan struct{}, cores), window: newWindow(cores), wake: make(chan struct{}, 1), start: time.Now()}
	if o.DialRate > 0 {
		observer.dials = rate.NewLimiter(rate.Limit(o.DialRate), max(1, int(o.DialRate/20))) // bursts of 50 ms
	}
	return observer
}

// Run measures until ctx ends. It does nothing while no question is under way.
func (o *Observer) Run(ctx context.Context) error {
	var host hostTime
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	defer o.looked.Store(0)
	var adapted time.Time
	var worst time.Duration
	for {
		if o.active.Load() == 0 {
			o.looked.Store(0)
			o.lag.Store(0)
			select {
			case <-ctx.Done():
				return nil
			case <-o.wake:
			}
			host.idle() // from here on
			adapted, worst = time.Now(), 0
		}
		began := time.Now()
		o.looked.Store(int64(began.Sub(o.start)) + 1)
		timer.Reset(meterTick)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		runtime.Gosched() // behind all that is ready to run: what a probe waits for
		late := time.Since(began) - meterTick
		o.lag.Store(int64(late))
		if late >= seriousLag {
			o.absent.Add(int64(late))
		}
		worst = max(worst, late)
		if time.Since(adapted) >= adaptTick {
			o.window.adapt(worst >= slightLag || host.idle() < idleShare)
			adapted, worst = time.Now(), 0
		}
	}
}

// begin waits until a question may be begun: TLS needs a place, all need a dial,
// and none is begun while the host lags. The wait is nobody's fault. Call end after
// nil.
func (o *Observer) begin(ctx context.Context, dear bool) error {
	if dear {
		if err := o.window.enter(ctx); err != nil {
			return err
		}
	}
	err := o.pause(ctx)
	if err != nil && dear {
		o.window.leave()
	}
	return err
}

func (o *Observer) pause(ctx context.Context) error {
	if o.lag.Load() >= int64(seriousLag) && !o.calm(ctx, calmTime/5) {
		return context.Cause(ctx)
	}
	if o.dials != nil {
		if err := o.dials.Wait(ctx); err != nil {
			return err
		}
	}
	if o.active.Add(1) == 1 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

func (o *Observer) end(dear bool) {
	o.active.Add(-1)
	if dear {
		o.window.leave()
	}
}

// absence is how long the host was away from its probes so far. The difference
// between two calls is what a question between them suffered.
func (o *Observer) absence() time.Duration {
	absent := time.Duration(o.absent.Load())
	if looked := o.looked.Load(); looked > 0 {
		if overdue := time.Since(o.start) - time.Duration(looked) - meterTick; overdue >= seriousLag {
			absent += overdue // still away
		}
	}
	return absent
}

// calm waits for the end of an overload, for so long at most; false: ctx ended.
func (o *Observer) calm(ctx context.Context, longest time.Duration) bool {
	for until := time.Now().Add(longest); o.lag.Load() >= int64(slightLag) && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(meterTick):
		}
	}
	return ctx.Err() == nil
}

// compute takes a core, and says how long it had to wait for one.
func (o *Observer) compute() (waited time.Duration) { return take(o.gate) }

// rest gives the core back.
func (o *Observer) rest() { <-o.gate }

// open has at most one connection for each core opened at once, and says how long it
// had to wait. When a thousand questions end together, a thousand others begin: they
// would all be ready to run, and everything else would wait for them.
func (o *Observer) open(socket func()) (waited time.Duration) {
	waited = take(o.starts)
	socket()
	<-o.starts
	return waited
}

func take(token chan struct{}) (waited time.Duration) {
	select {
	case token <- struct{}{}:
		return 0
	default:
	}
	began := time.Now()
	token <- struct{}{}
	return time.Since(began)
}

// hostTime is what the host's cores did so far, by /proc/stat (proc(5)): others on
// this host take time from our probes as well.
type hostTime struct{ total, unused uint64 }

// idle is the share of time since the last call in which a core had nothing to do;
// 1 where that cannot be known.
func (h *hostTime) idle() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 1
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	var now hostTime
	for i, field := range bytes.Fields(line) {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil || i > 8 { // "cpu"; guests are counted with their users
			continue
		}
		now.total += n
		if i == 4 || i == 5 { // idle, iowait
			now.unused += n
		}
	}
	total, unused := now.total-h.total, now.unused-h.unused
	*h = now
	if total == 0 || unused > total {
		return 1
	}
	return float64(unused) / float64(total)
}
