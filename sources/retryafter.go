package sources

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	retry "github.com/sethvargo/go-retry"
)

// maxRetryAfter bounds how long a server may have a list left alone.
const maxRetryAfter = 24 * time.Hour

// WaitError says that a server has asked to be left alone until a time that is not
// over (Retry-After). Until then its list is not asked for.
type WaitError struct {
	Until time.Time

	err error // the answer that asked for it; nil where it came earlier
}

func (e *WaitError) Error() string {
	text := "the server asks to be left alone until " + e.Until.UTC().Format(time.RFC3339)
	if e.err != nil {
		return fmt.Sprintf("%s; %s", e.err, text)
	}
	return text
}

func (e *WaitError) Unwrap() error { return e.err }

// retryAfter reads the header of that name (RFC 9110, 10.2.3): seconds, or a date,
// which is counted from the server's own where it says that. 0 is for none, for
// nonsense and for what is over.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(seconds, 0), int64(maxRetryAfter/time.Second))) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if its, err := http.ParseTime(header.Get("Date")); err == nil {
		now = its
	}
	return min(max(until.Sub(now), 0), maxRetryAfter)
}

// asked returns how long an answer asks to wait; 0 for not at all.
func asked(err error) time.Duration {
	if status := (*StatusError)(nil); errors.As(err, &status) {
		return status.retryAfter
	}
	return 0
}

// notBefore makes a backoff wait at least as long as *least says by then.
func notBefore(b retry.Backoff, least *time.Duration) retry.Backoff {
	return retry.BackoffFunc(func() (time.Duration, bool) {
		next, stop := b.Next()
		return max(next, *least), stop
	})
}
