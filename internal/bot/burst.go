package bot

import (
	"context"
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
// with the first of them and true.
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
		var again <-chan time.Time
		if !first.IsZero() {
			due := first.Add(burstWindow)
			if quiet := last.Add(quietTime); now.Before(quiet) && now.Before(due) {
				again = time.After(min(quiet.Sub(now), due.Sub(now)))
			} else {
				page, err := n.gateway.Events.Page(ctx, domain.EventQuery{After: n.outbox.Cursor, Limit: burstEvents + 1})
				if err != nil {
					return nil, false, err
				}
				events := page.Events
				n.forget(now)
				switch {
				case len(events) == 0:
					first = time.Time{}
				case len(events)+len(n.posted) <= burstEvents:
					return events, false, nil
				case len(events) > burstEvents && (len(n.posted) == 0 || !now.Before(due)):
					return events, true, nil
				default: // part of the burst has been posted already: collect the rest
					again = time.After(n.posted[0].Add(burstWindow).Sub(now))
				}
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

// forget drops the events posted before the window that ends now.
func (n *notifier) forget(now time.Time) {
	for len(n.posted) > 0 && !now.Before(n.posted[0].Add(burstWindow)) {
		n.posted = n.posted[1:]
	}
}
