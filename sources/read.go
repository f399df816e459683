package sources

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	retry "github.com/sethvargo/go-retry"
)

// tries is how often a fetch is tried.
const tries = 4

// reading is what one try to read a source gave.
type reading struct {
	list       List
	sha256     string // of the list's text
	validators validators
	text       *copyWriter // the text, written aside; nil where it is not
	copyErr    error       // why it is not
}

// read fetches and parses once, or a few times where the failure may pass. The
// text of what it returns is the caller's to keep or discard. If the list is what
// v stands for, it returns errNotModified.
func (f *Fetcher) read(ctx context.Context, src Source, v validators) (got reading, err error) {
	got.list.Source = src.Name
	open, err := f.opener(src, v)
	if err != nil {
		return got, err
	}
	var last error
	var wait time.Duration // as the last answer asks for
	// A backoff has state: it is built anew for each fetch.
	backoff := notBefore(retry.WithMaxRetries(tries-1, retry.WithJitterPercent(25,
		retry.WithCappedDuration(5*time.Second, retry.NewExponential(f.opts.RetryWait)))), &wait)
	err = retry.Do(ctx, backoff, func(ctx context.Context) error {
		got.text.discard()
		got, last = f.readOnce(ctx, open, src)
		wait = asked(last)
		if last != nil && mayPass(last) && !beyond(ctx, wait) {
			return retry.RetryableError(last)
		}
		return last
	})
	got.list.Source = src.Name
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		if last != nil && !errors.Is(last, context.DeadlineExceeded) && !errors.Is(last, context.Canceled) {
			err = fmt.Errorf("%w; before that: %w", err, last)
		}
	}
	if err != nil && wait > 0 {
		err = &WaitError{Until: f.opts.Now().Add(wait), err: err}
	}
	return got, err
}

// beyond says whether waiting so long would take ctx to its end.
func beyond(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= wait
}

// opener returns what opens the source's list.
type opener func(ctx context.Context) (*body, error)

func (f *Fetcher) opener(src Source, v validators) (opener, error) {
	u, err := url.Parse(src.URL)
	if err != nil {
		return nil, errors.New("the URL is not one") // url.Error would repeat a password
	}
	switch {
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		return func(ctx context.Context) (*body, error) {
			file, err := openFile(ctx, u.Path, f.limitsFor(src).MaxBytes)
			if err != nil {
				return nil, err
			}
			return &body{ReadCloser: file}, nil
		}, nil
	case u.Scheme == "file":
		return nil, errors.New("the URL of a file is file:///ABSOLUTE/PATH")
	case (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "":
		return func(ctx context.Context) (*body, error) {
			return f.openWeb(ctx, u, src, v)
		}, nil
	}
	return nil, errors.New("the URL is neither http:// nor https:// nor file:///")
}

func (f *Fetcher) readOnce(ctx context.Context, open opener, src Source) (got reading, err error) {
	body, err := open(ctx)
	if err != nil {
		return got, err
	}
	defer body.Close()
	limits := f.limitsFor(src)
	text, err := decode(body, body.encodings, body.contentType, limits.MaxBytes)
	if err != nil {
		return got, err
	}
	defer text.Close()
	got.validators = body.validators
	sum := sha256.New()
	along := io.Writer(sum)
	if f.opts.Dir != "" {
		if got.text, got.copyErr = f.copies.create(); got.copyErr == nil {
			along = io.MultiWriter(sum, got.text)
		}
	}
	got.list, err = parseAll(io.TeeReader(text, along), src, limits)
	got.sha256 = hex.EncodeToString(sum.Sum(nil))
	return got, err
}

// parseAll is Parse that reads to the end, where a format may be content before:
// the end may be missing.
func parseAll(r io.Reader, src Source, limits Limits) (List, error) {
	list, err := Parse(r, src, limits)
	_, rest := io.Copy(io.Discard, &boundedReader{r: r, limit: limits.MaxBytes})
	return list, cmp.Or(err, rest)
}
