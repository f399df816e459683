package alloc

import (
	"context"
	"fmt"
	"time"
)

// Offer is a candidate that a source named.
type Offer struct {
	Endpoint string // canonical text, the same for the same proxy always
	Record   []byte // the first record, JSON; stored unread
}

// Offer puts candidates that are new into the pool's record and queue, to be probed at due, and
// tells how many were new. Known ones are left as they are. They go in scripts of 500; after an
// error some may have been added, and offering them again is harmless.
func (p *Pool) Offer(ctx context.Context, offers []Offer, due time.Time) (added int, err error) {
	keys := []string{p.keys.record, p.keys.due, p.keys.meta}
	for len(offers) > 0 {
		some := offers[:min(len(offers), maxPerCall)]
		offers = offers[len(some):]
		args := make([]any, 0, 1+2*len(some))
		args = append(args, due.UnixMilli())
		for _, offer := range some {
			args = append(args, offer.Endpoint, "1|"+string(offer.Record))
		}
		reply, err := p.run(ctx, p.store.scripts.offer, keys, args...)
		if err != nil {
			return added, err
		}
		n, ok := reply.(int64)
		if !ok {
			return added, fmt.Errorf("offer in pool %s: unexpected reply of type %T", p.name, reply)
		}
		added += int(n)
	}
	return added, nil
}
