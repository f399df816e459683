package alloctest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"evenpool/alloc"
)

// History is what many workers asked of one pool, when, and what they got. Whether it can be has one
// measure: that it is linearizable, so that some order of all of it, each between its call and its
// return, is one in which the lowest (count, bytes) always gets one more. Safe for concurrent use.
type History struct {
	began   time.Time
	initial pool

	mu         sync.Mutex
	operations []porcupine.Operation
	unknown    int
}

// NewHistory begins one with the pool as it is.
func NewHistory(members map[string]int64) *History {
	p := pool{}
	for member, count := range members {
		p = append(p, line(member, count))
	}
	slices.Sort(p)
	return &History{began: time.Now(), initial: p}
}

// asked is one operation: n allocations, or a member that comes with a count or goes.
type asked struct {
	n          int
	come, went string
	count      int64
}

// answered is what came of it. An unknown one has been carried out or not, at any time since its call.
type answered struct {
	got     []alloc.Allocation
	changed bool
	unknown bool
}

// Allocate has a worker ask for n. What provably did not run is not part of the history. It gives
// what ask gave.
func (h *History) Allocate(worker, n int, ask func() ([]alloc.Allocation, error)) ([]alloc.Allocation, error) {
	call := time.Since(h.began)
	got, err := ask()
	switch {
	case err == nil:
		h.add(worker, asked{n: n}, answered{got: got}, call)
	case errors.Is(err, alloc.ErrOutcomeUnknown):
		h.add(worker, asked{n: n}, answered{unknown: true}, call)
	}
	return got, err
}

// Come has a member come, unless it is there; ask says whether it came.
func (h *History) Come(worker int, member string, count int64, ask func() bool) {
	call := time.Since(h.began)
	h.add(worker, asked{come: member, count: count}, answered{changed: ask()}, call)
}

// Go has a member go, if it is there; ask says whether it went.
func (h *History) Go(worker int, member string, ask func() bool) {
	call := time.Since(h.began)
	h.add(worker, asked{went: member}, answered{changed: ask()}, call)
}

func (h *History) add(worker int, in asked, out answered, call time.Duration) {
	returned := int64(time.Since(h.began))
	h.mu.Lock()
	defer h.mu.Unlock()
	if out.unknown {
		returned = math.MaxInt64
		h.unknown++
	}
	h.operations = append(h.operations, porcupine.Operation{ClientId: worker, Input: in, Output: out, Call: int64(call), Return: returned})
}

// Linearizable says whether the history can be. It fails the test when that cannot be said in a minute.
func (h *History) Linearizable(t testing.TB) bool {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	began := time.Now()
	result := porcupine.CheckOperationsTimeout(h.model(), h.operations, time.Minute)
	t.Logf("%d operations, %d of them unknown: %s after %v", len(h.operations), h.unknown, result, time.Since(began))
	if result == porcupine.Unknown {
		t.Fatal("whether the history is linearizable was not found out in time")
	}
	return result == porcupine.Ok
}

func (h *History) model() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{h.initial.String()} },
		Step: func(state, in, out any) []any {
			before := state.(string)
			after, possible := step(parsePool(before), in.(asked), out.(answered))
			switch {
			case out.(answered).unknown && after.String() != before:
				return []any{before, after.String()}
			case possible:
				return []any{after.String()}
			}
			return nil
		},
	}
	return model.ToModel()
}

// step carries an operation out, and says whether its answer is what comes of it.
func step(p pool, in asked, out answered) (after pool, possible bool) {
	switch {
	case in.come != "":
		has := p.find(in.come) >= 0
		if !has {
			p = p.with(line(in.come, in.count))
		}
		return p, has != out.changed
	case in.went != "":
		at := p.find(in.went)
		if at >= 0 {
			p = slices.Delete(p, at, at+1)
		}
		return p, (at >= 0) == out.changed
	}
	possible = len(p) > 0 && len(out.got) == in.n || len(p) == 0 && len(out.got) == 0
	for i := range in.n {
		if len(p) == 0 {
			break
		}
		member, count := p.first()
		possible = possible && out.got[i] == alloc.Allocation{Member: member, Count: count + 1}
		p = p[1:].with(line(member, count+1))
	}
	return p, possible
}

// pool is a line for each member, the next first: the order of lines is that of (count, bytes).
type pool []string

const countWidth = 19

func line(member string, count int64) string {
	return fmt.Sprintf("%0*d %s", countWidth, count, member)
}

func parsePool(text string) pool {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (p pool) String() string { return strings.Join(p, "\n") }

func (p pool) first() (member string, count int64) {
	count, _ = strconv.ParseInt(p[0][:countWidth], 10, 64)
	return p[0][countWidth+1:], count
}

func (p pool) find(member string) int {
	return slices.IndexFunc(p, func(l string) bool { return l[countWidth+1:] == member })
}

func (p pool) with(l string) pool {
	at, _ := slices.BinarySearch(p, l)
	return slices.Insert(slices.Clone(p), at, l)
}
