package feed_test

import (
	"fmt"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/feed"
)

// A reader takes what it has, remembers the greatest stamp, and waits until there is more.
func ExampleRing() {
	midnight := time.UnixMilli(1_767_225_600_000)
	ring := feed.New(func() time.Time { return midnight })
	before := ring.Snapshot()
	ring.Record(
		feed.Notification{Type: domain.StageTransition, StoryID: "7", Name: "Pay", FromStage: "1_backlog", ToStage: "2_current"},
		feed.Notification{Type: domain.StoryBlocked, StoryID: "7", Name: "Pay", Reason: "no key"},
	)
	<-before.Replaced()
	head, tail := ring.Snapshot().After(1_767_225_600_000)
	fmt.Printf("%s%s\n", head, tail)
	// Output: [{"type":"story_blocked","story_id":"7","story_name":"Pay","reason":"no key","timestamp_ms":1767225600001}]
}
