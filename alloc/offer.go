package alloc

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Offer is a candidate that a source named.
type Offer struct {
	Endpoint string // canonical text, the same for the same proxy always
	Record   []byte // the first record, JSON; stored unread
}

// Offered is what became of offers.
type Offered struct {
	New  int     // were not known, and are now
	Left []Offer // are not known either, since there was no room; in the order offered
}

// offersAtOnce is how many scripts of one Offer are under way: while Redis works on one, the next is
// written. More would only keep others from their turn.
const offersAtOnce = 3

// Offer puts candidates that are new into the pool's record and queue, to be probed at due, and
// tells how many were new. Of known ones it is only noted that something speaks for them now: see
// Unnamed. They go in scripts of 500; after an error some may have been added, and offering them
// again is harmless. Those of one script are due together, a millisecond before the next.
func (p *Pool) Offer(ctx context.Context, offers []Offer, due time.Time) (added int, err error) {
	offered, err := p.OfferUpTo(ctx, offers, due, 0)
	return offered.New, err
}

// OfferUpTo is Offer as long as no more than so many proxies are known, members aside; 0 is any
// number. What then finds no room it gives back; which of them do is decided by their order, about:
// scripts are run side by side.
func (p *Pool) OfferUpTo(ctx context.Context, offers []Offer, due time.Time, most int) (Offered, error) {
	batches := slices.Collect(slices.Chunk(offers, maxPerCall))
	results := make([]Offered, len(batches))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(offersAtOnce)
	for i, batch := range batches {
		// Equal times are decided by the endpoints' bytes, which would bring the whole of a network
		// up at once. The last batch is due when the caller says.
		at := due.Add(-time.Duration(len(batches)-1-i) * time.Millisecond)
		group.Go(func() (err error) {
			results[i], err = p.offer(ctx, batch, at, most)
			return err
		})
	}
	err := group.Wait()
	var out Offered
	for _, r := range results {
		out.New += r.New
		out.Left = append(out.Left, r.Left...)
	}
	return out, err
}

// offer runs the script once.
func (p *Pool) offer(ctx context.Context, offers []Offer, due time.Time, most int) (Offered, error) {
	k := p.keys
	args := make([]any, 0, 3+2*len(offers))
	args = append(args, due.UnixMilli(), p.store.now().UnixMilli(), most)
	for _, offer := range offers {
		args = append(args, offer.Endpoint, "1|"+string(offer.Record))
	}
	reply, err := p.run(ctx, p.store.scripts.offer, []string{k.record, k.due, k.named, k.eligible, k.meta}, args...)
	if err != nil {
		return Offered{}, err
	}
	numbers, err := wholes(reply)
	if err != nil || len(numbers) == 0 {
		return Offered{}, fmt.Errorf("offer in pool %s: %d numbers: %w", p.name, len(numbers), err)
	}
	out := Offered{New: int(numbers[0])}
	for _, at := range numbers[1:] {
		if at < 0 || at >= int64(len(offers)) {
			return out, fmt.Errorf("offer in pool %s: unexpected place %d", p.name, at)
		}
		out.Left = append(out.Left, offers[at])
	}
	return out, nil
}
