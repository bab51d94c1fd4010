package service_test

import (
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

func TestClockThatIsAheadIsSaidByEveryGateway(t *testing.T) {
	url, b := pgtest.Database(t), &boardServer{}
	one := newSaver(t, url, "one", b)
	other := newSaver(t, url, "other", b)
	now := time.Now().Truncate(time.Millisecond)
	read := func(ahead time.Time) domain.FeedRead {
		return domain.FeedRead{Cursor: domain.FeedCursor{Project: "alpha", URL: "http://alpha"}, ReceivedAt: now, Ahead: ahead}
	}
	one.lead()
	recordFeed(t, one.Service, read(now.Add(48*time.Hour)))
	for _, s := range []*saver{one, other, newSaver(t, url, "third", b)} {
		waittest.Until(t, "it is ahead", func() bool {
			ahead := s.Events.Ahead()
			return len(ahead) == 1 && ahead[0].Project == "alpha" && ahead[0].Since.Equal(now)
		})
	}
	one.token.Store(0)
	other.lead()
	recordFeed(t, other.Service, read(time.Time{}))
	for _, s := range []*saver{one, other} {
		waittest.Until(t, "it is right again", func() bool { return len(s.Events.Ahead()) == 0 })
	}
}
