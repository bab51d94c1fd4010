package bot

import (
	"context"
	"slices"
	"time"

	"switchyard/internal/domain"
)

// Up to burstEvents events within burstWindow are posted one by one; more become one digest.
// Events wait until there has been no other for quietTime, to see whether they are a burst.
const (
	burstEvents = 5
	burstWindow = 10 * time.Second
	quietTime   = time.Second
)

// wait returns when it is time to post: with all events that are due, or, if they are too many to be posted one by one,
// with the first of them and true. A digest follows its burst at once, unless the last one is younger than burstWindow.
func (n *notifier) wait(ctx context.Context) ([]domain.Event, bool, error) {
	var first, last time.Time // when new events were noticed
	seen := n.outbox.Cursor
	for {
		changed := n.gateway.Events.Changed()
		now := time.Now()
		if newest := n.gateway.Events.LastID(); newest > seen {
			seen, last = newest, now
			if first.IsZero() {
				first = now
			}
		}
		due := first.Add(burstWindow)
		if quiet := last.Add(quietTime); quiet.Before(due) {
			due = quiet
		}
		var again <-chan time.Time
		switch {
		case first.IsZero():
		case now.Before(due):
			again = time.After(due.Sub(now))
		default:
			page, err := n.gateway.Events.Page(ctx, domain.EventQuery{After: n.outbox.Cursor, Limit: burstEvents + 1})
			if err != nil {
				return nil, false, err
			}
			events := page.Events
			n.posted = slices.DeleteFunc(n.posted, func(at time.Time) bool { return now.Sub(at) >= burstWindow })
			rest := n.digested.Add(burstWindow).Sub(now)
			switch {
			case len(events) == 0:
				first = time.Time{}
			case rest > 0: // more of the burst may follow
				again = time.After(rest)
			case len(events) > burstEvents:
				return events, true, nil
			case len(events)+len(n.posted) <= burstEvents:
				return events, false, nil
			default: // with what has been posted they may yet become a burst
				again = time.After(n.posted[0].Add(burstWindow).Sub(now))
			}
		}
		select {
		case <-ctx.Done():
			return nil, false, ctx.Err()
		case <-changed:
		case <-again:
		}
	}
}
