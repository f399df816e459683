package alloc

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// fate is what an error proves about a script.
type fate string

const (
	// fateNone: there was no error.
	fateNone fate = "ran"
	// fateRefused: the script answered with an error. Scripts refuse before they write.
	fateRefused fate = "refused"
	// fateBusy: it did not run; Redis is there and asks to come back.
	fateBusy fate = "did not run, Redis is busy"
	// fateAway: it did not run; no connection was to be had.
	fateAway fate = "did not run, Redis is away"
	// fateNotRun: it did not run, and trying again at once would not help.
	fateNotRun fate = "did not run"
	// fateUnknown: it was sent, and no reply came.
	fateUnknown fate = "unknown"
)

// didNotRun says that the script changed nothing and may be sent again.
func (f fate) didNotRun() bool { return f == fateBusy || f == fateAway || f == fateNotRun }

// fateOf decides what became of a script that ended with err. sent says whether its bytes may have
// left. This is the whole list: an error that is not on it is unknown once the script was sent.
func fateOf(err error, sent bool) fate {
	switch {
	case err == nil:
		return fateNone
	case errors.Is(err, redis.ErrClosed):
		return sentOr(sent, fateNotRun)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return sentOr(sent, fateBusy)
	}
	var replied redis.Error
	if errors.As(err, &replied) {
		return fateOfReply(err)
	}
	switch {
	case sent:
		// EOF, reset, timeout, cancelled, an unreadable reply.
		return fateUnknown
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fateNotRun
	}
	// A refused dial, or a connection that ended while greeting.
	return fateAway
}

func sentOr(sent bool, otherwise fate) fate {
	if sent {
		return fateUnknown
	}
	return otherwise
}

// fateOfReply decides by the error that Redis replied with.
func fateOfReply(err error) fate {
	for _, word := range []string{
		"LOADING",     // reads its data from disk
		"READONLY",    // a replica: refuses a script's first write
		"MASTERDOWN",  // a replica without its master
		"CLUSTERDOWN", // a cluster without all its slots
		"TRYAGAIN",    // a slot that is being moved
		"BUSY",        // a script is running for long
		"NOSCRIPT",    // neither by hash nor, oddly, by text
		"MOVED",       // the slot is elsewhere
		"ASK",         // the slot is elsewhere for now
	} {
		if hasWord(err, word) {
			return fateBusy
		}
	}
	if redis.HasErrorPrefix(err, "max number of clients reached") {
		return fateAway
	}
	for _, word := range []string{
		"NOAUTH",     // no password was given
		"WRONGPASS",  // a wrong one
		"OOM",        // maxmemory: refuses a script's first write
		"MISCONF",    // cannot save to disk: likewise
		"NOREPLICAS", // too few replicas: likewise
	} {
		if hasWord(err, word) {
			return fateNotRun
		}
	}
	return fateRefused
}

// wrap gives an error its meaning for callers.
func (f fate) wrap(err error) error {
	switch f {
	case fateBusy, fateAway, fateNotRun:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case fateUnknown:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	switch {
	case hasWord(err, "POOLLOST"):
		return ErrPoolLost
	case hasWord(err, "WRONGTYPE"):
		return fmt.Errorf("%w: %w", ErrWrongType, err)
	case hasWord(err, "SCHEMA"):
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return err
}

// read gives the error of a command that changes nothing its meaning. Its reply lost, it can be
// asked again: no outcome is unknown.
func readError(err error) error {
	if err == nil {
		return nil
	}
	f := fateOf(err, true)
	if f == fateUnknown {
		f = fateNotRun
	}
	return f.wrap(err)
}
