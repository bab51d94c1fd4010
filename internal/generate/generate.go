// Package generate generates a merged stream of any length, the same each time, for benchmarks and tests.
package generate

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const (
	// active is how many stories of a project are active at the same time.
	active = 8
	// steps is how many events a story has.
	steps = 7
	// start is the time of the first event, and every the time between two, in milliseconds.
	start = 1_700_000_000_000
	every = 1500
)

var stages = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}

var words = strings.Fields(`account address alert archive avatar badge basket board branch budget calendar card cart
	chart chat checkout column comment commit config console contract cookie coupon currency customer dashboard
	deadline delivery device digest directory discount document download draft editor email embed endpoint error event
	export feature feedback field file filter folder font form gallery gateway graph group header history hook icon
	image import inbox index invite invoice job keyboard label language layout license limit link list locale lock
	login map member memory menu message metric migration mobile model network note notice number offer option order
	owner page panel parser password path payment permission phone picture pipeline plan player plugin poll portal
	preview price printer profile project prompt proxy query queue quota rate receipt record refund region release
	report request retry review role route rule runner sandbox schedule schema scope script search secret session
	setting shadow share signup slot snapshot socket sort source stage status step stock storage story stream style
	summary support switch table tag task team template tenant term test theme thread ticket timeline timer token tool
	topic tour track transfer trash trigger tunnel type update upload user vendor version video view voucher wallet
	warning webhook widget window worker workspace zone`)

// Project returns the name of the n-th project, from 0.
func Project(n int) string { return fmt.Sprintf("project-%05d", n) }

// Read returns the n-th event, from 0, of a stream of so many projects, as a read of its project's feed.
func Read(n, projects int) domain.FeedRead {
	project, nth := n%projects, n/projects // nth counts the project's events
	round := nth / (active * steps)
	story, step := round*active+nth%active, nth/active%steps
	stamp := start + int64(n)*every
	fields := map[string]any{
		"story_id": fmt.Sprintf("%d_story_%s", story+1, strings.ReplaceAll(name(project, story), " ", "_")),
		// Each story is named by people.
		"story_name": strings.ToUpper(name(project, story)[:1]) + name(project, story)[1:], "timestamp_ms": stamp,
	}
	switch {
	case step == 3 && story%3 == 0:
		fields["type"], fields["reason"] = domain.StoryBlocked,
			"waits for the "+word(project, story, 7)+" of "+word(project, story, 8)
	case step == 4 && story%5 == 0:
		fields["type"], fields["reason"] = domain.MergeFailure,
			"conflict in "+word(project, story, 9)+"/"+word(project, story, 10)+".go"
	default:
		fields["type"], fields["from_stage"], fields["to_stage"] = domain.StageTransition, stages[step%5], stages[step%5+1]
	}
	text, _ := json.Marshal(fields) // texts and numbers always encode
	record, err := domain.ParseRecord(text)
	if err != nil {
		panic(err) // the fields above are an event's
	}
	cursor := domain.FeedCursor{
		Project: Project(project), URL: "http://127.0.0.1:9/", Instance: "generated", Since: stamp,
		Sequence: int64(nth) + 1,
	}
	return domain.FeedRead{Cursor: cursor, Records: []domain.Record{record}, ReceivedAt: time.UnixMilli(stamp + 3)}
}

// Reads returns the events from from to to, exclusively, of such a stream.
func Reads(from, to, projects int) []domain.FeedRead {
	reads := make([]domain.FeedRead, 0, to-from)
	for n := from; n < to; n++ {
		reads = append(reads, Read(n, projects))
	}
	return reads
}

// name returns four words for a story.
func name(project, story int) string {
	return strings.Join([]string{
		word(project, story, 1), word(project, story, 2), word(project, story, 3),
		word(project, story, 4),
	}, " ")
}

func word(project, story, nth int) string {
	h := uint64(project)*0x9e3779b97f4a7c15 + uint64(story)*0xbf58476d1ce4e5b9 + uint64(nth)*0x94d049bb133111eb
	h ^= h >> 31
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return words[h%uint64(len(words))]
}
