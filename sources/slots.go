package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// slot is what a Fetcher keeps of one source: what is known of its list, and where
// there is no folder for it, or no room, the list.
type slot struct {
	gate  chan struct{} // holds one element while somebody has the slot
	users int           // who has it or waits for it; the Fetcher's lock guards it

	// The rest belongs to who has the slot.

	base     string   // of the names of its files
	loaded   bool     // meta was looked for on disk
	meta     copyMeta // of the good copy
	list     *List    // the good copy, where it is not on disk
	unusable error    // why there is no good copy though there was one
}

// acquire takes the slot of a source, and looks on disk for what an earlier
// process has left of it.
func (f *Fetcher) acquire(ctx context.Context, src Source) (*slot, error) {
	now := f.opts.Now()
	key := keyOf(src, f.limitsFor(src))
	s, prune := f.slot(src.Name, key, now)
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		s.users--
		return nil, context.Cause(ctx)
	}
	if !s.loaded && f.opts.Dir != "" {
		s.meta, s.unusable = f.copies.load(s.base, key)
		// A clock that was wrong once makes nothing last for ever: see expire, too.
		if last := now.Add(maxRetryAfter); s.meta.WaitUntil.After(last) {
			s.meta.WaitUntil = last
		}
	}
	s.loaded = true
	if prune { // after loading, which says of a copy that it is too old
		f.copies.prune(now, max(f.opts.MaxAge, maxRetryAfter))
	}
	return s, nil
}

// slot returns the slot of a source, with the caller among its users, and forgets
// those of sources that are gone. prune says that the folder is due for the same.
func (f *Fetcher) slot(name, key string, now time.Time) (s *slot, prune bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.slots {
		if s.users == 0 && now.Sub(s.meta.FetchedAt).Abs() > f.opts.MaxAge && now.After(s.meta.WaitUntil) {
			delete(f.slots, key)
		}
	}
	s = f.slots[key]
	if s == nil {
		s = &slot{gate: make(chan struct{}, 1), base: f.copies.base(name, key), meta: copyMeta{Key: key}}
		f.slots[key] = s
	}
	s.users++
	if prune = f.opts.Dir != "" && now.Sub(f.pruned).Abs() > time.Hour; prune {
		f.pruned = now
	}
	return s, prune
}

func (f *Fetcher) release(s *slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.users--
	<-s.gate
}

// expire gives up a copy that is too old, or of a clock that was too far ahead. Of
// what is on disk nothing is lost by that: where it is this process's clock that is
// wrong, the copy is there again when it is right.
func (s *slot) expire(now time.Time, age time.Duration) {
	switch old := now.Sub(s.meta.FetchedAt); {
	case !s.meta.hasCopy():
	case old > age:
		s.drop(fmt.Errorf("the good copy is older than %s", age))
	case old < -age:
		s.drop(errFuture)
	}
}

// drop gives up the copy.
func (s *slot) drop(why error) {
	s.meta.dropCopy()
	s.list, s.unusable = nil, why
}

// validators returns what to show to a server; none without a copy that a "not
// modified" could mean. A copy that should be on disk and is not is fetched again.
func (f *Fetcher) validators(s *slot) validators {
	if s.list != nil && f.opts.Dir != "" {
		return validators{}
	}
	return s.meta.Validators
}

// open returns the good copy, which is read again where it is on disk. It is not
// marked in any way.
func (f *Fetcher) open(src Source, s *slot) (List, error) {
	if s.list != nil {
		list := *s.list
		list.FetchedAt = s.meta.FetchedAt
		return list, nil
	}
	limits := f.limitsFor(src)
	file, err := openFile(context.Background(), textPath(s.base, s.meta), limits.MaxBytes)
	if errors.Is(err, os.ErrNotExist) {
		return List{}, errDamaged
	}
	if err != nil {
		return List{}, err
	}
	defer file.Close()
	sum := sha256.New()
	list, err := parseAll(io.TeeReader(file, sum), src, limits)
	if hex.EncodeToString(sum.Sum(nil)) != s.meta.SHA256 {
		return List{}, errDamaged
	}
	list.FetchedAt = s.meta.FetchedAt
	return list, err
}

// keep makes what was read the good copy.
func (f *Fetcher) keep(s *slot, got reading) List {
	before, now := s.meta, f.opts.Now()
	list := got.list
	list.FetchedAt = now
	s.meta = copyMeta{Key: before.Key, SHA256: got.sha256, Candidates: len(list.Candidates),
		FetchedAt: now, Validators: got.validators}
	inMemory := list
	s.list, s.unusable = &inMemory, nil
	if f.opts.Dir != "" {
		list.CopyErr = got.copyErr
		if list.CopyErr == nil {
			list.CopyErr = f.copies.save(s.base, s.meta, before, got.text, now)
		}
		if list.CopyErr == nil {
			s.list = nil
		}
	}
	list.NotModified = before.SHA256 == got.sha256
	return list
}

// keepAgain makes list, which is the good copy, as good as new.
func (f *Fetcher) keepAgain(s *slot, list List) List {
	now := f.opts.Now()
	s.meta.FetchedAt, s.meta.WaitUntil = now, time.Time{}
	list.FetchedAt, list.NotModified = now, true
	if f.opts.Dir != "" {
		list.CopyErr = f.copies.save(s.base, s.meta, s.meta, nil, now)
	}
	return list
}

// keepWait remembers until when a server is to be left alone. A copy that is not on
// disk is no reason to give up the older one that may be there.
func (f *Fetcher) keepWait(s *slot, until time.Time) error {
	s.meta.WaitUntil = until
	if f.opts.Dir == "" || s.list != nil {
		return nil
	}
	return f.copies.save(s.base, s.meta, s.meta, nil, f.opts.Now())
}
