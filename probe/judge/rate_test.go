package judge

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRate: each asker has a burst and then the rate, and pays for nobody else.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Handler{Rate: 2, Burst: 4}
		from := func(address string) int {
			r := httptest.NewRequest(http.MethodGet, "/204", nil)
			r.RemoteAddr = address
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code == http.StatusTooManyRequests && (w.Header().Get("Retry-After") != "1" || w.Body.Len() > 100) {
				t.Errorf("refusal %v %q", w.Header(), w.Body)
			}
			return w.Code
		}
		granted := func(address string, asked int) (n int) {
			for range asked {
				if from(address) == http.StatusNoContent {
					n++
				}
			}
			return n
		}
		if n := granted("203.0.113.9:1", 10); n != 4 {
			t.Errorf("%d of 10 at once, want the burst of 4", n)
		}
		if n := granted("[2001:db8:0:1::1]:1", 2) + granted("[2001:db8:0:1:ffff::2]:1", 4); n != 4 {
			t.Errorf("%d for two addresses of one /64, want 4", n)
		}
		if from("203.0.113.10:1") != 204 || from("[2001:db8:0:2::1]:1") != 204 {
			t.Error("others pay for them")
		}
		time.Sleep(1500 * time.Millisecond)
		if n := granted("203.0.113.9:2", 10); n != 3 {
			t.Errorf("%d after 1.5 s, want 3", n)
		}
		time.Sleep(time.Hour)
		if n := granted("203.0.113.9:3", 10); n != 4 {
			t.Errorf("%d after an hour, want the burst of 4", n)
		}
		if h.Limited() != 6+2+7+6 || h.Hits() != 38 {
			t.Errorf("%d limited of %d", h.Limited(), h.Hits())
		}
	})
}

// TestRateIsBounded: no number of askers makes the table grow, and at the same
// time none gets more than its share.
func TestRateIsBounded(t *testing.T) {
	l := newLimiter()
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			a := netip.MustParseAddr("203.0.113.9")
			for range 1000 {
				if l.take(a, 1e-6, 100) {
					granted.Add(1)
				}
			}
			for range 20_000 { // others
				a = a.Next()
				l.take(a, 1e9, 1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 100 {
		t.Errorf("%d granted at once, want 100", n)
	}
	first, second := l.take(netip.Addr{}, 1e-6, 1), l.take(netip.Addr{}, 1e-6, 1)
	if !first || second {
		t.Errorf("askers without an address: %v, then %v", first, second)
	}
}
