package domain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
)

// TestGitSaysWhoMovedWhatNobodyMovedThroughTheGateway, and what happened before the project was followed.
func TestGitSaysWhoMovedWhatNobodyMovedThroughTheGateway(t *testing.T) {
	live := time.UnixMilli(1_700_000_000_000)
	at := func(minutes int) time.Time { return live.Add(time.Duration(minutes) * time.Minute) }
	event := func(id int64, minutes int, story, to, by string) domain.PastEvent {
		text := fmt.Sprintf(`{"story_id":%q,"to_stage":%q}`, story, to)
		e := domain.PastEvent{Event: domain.Event{ID: id, Project: "alpha", Record: domain.Record{
			Type: domain.StageTransition, At: at(minutes), JSON: []byte(text),
		}}}
		if by != "" {
			e.By, e.Via = by, domain.ChannelMCP
		}
		return e
	}
	past := domain.Past{Live: live, Latest: []domain.Move{
		{StoryID: "0", To: "1_a", At: at(-300), Author: "Old"},
		{StoryID: "1", To: "1_a", At: at(-200), Author: "Ada"},
		{StoryID: "2", From: "1_a", To: "2_b", At: at(-100), Author: "Ben"},
		{StoryID: "3", From: "1_a", To: "2_b", At: at(12), Author: "Cid"},
		{StoryID: "4", From: "1_a", To: "2_b", At: at(20), Author: "Dan"},
		{StoryID: "5", From: "1_a", To: "2_b", At: at(200), Author: "Eve"}, // long after what it may have committed
	}}
	events := []domain.PastEvent{
		event(7, 10, "3", "2_b", ""), event(8, 15, "4", "2_b", "builder"), event(9, 30, "5", "2_b", ""),
	}
	board := domain.ProjectPipeline{Project: "alpha", Stages: []domain.Stage{{Items: []domain.Item{{StoryID: "2", StoryName: "Two"}}}}}
	both := []domain.PastEvent{event(7, 10, "3", "2_b", ""), event(7, 10, "3", "2_b", "")}
	both[1].Project = "beta"
	domain.Credit(both, func(project string) domain.Past { return map[string]domain.Past{"beta": past}[project] })
	if both[0].By != "" || both[1].By != "Cid" {
		t.Errorf("%q and %q moved it", both[0].By, both[1].By)
	}
	var list []string
	for _, e := range past.WithGit(board, events, 5) {
		d := e.Details()
		list = append(list, strings.TrimSpace(fmt.Sprint(e.ID, e.Project, d.StoryID, d.StoryName, d.FromStage, d.ToStage, e.By, e.Via)))
	}
	want := "-5alpha11_aAdagit|-4alpha2Two1_a2_bBengit|7alpha32_bCidgit|8alpha42_bbuildermcp|9alpha52_b"
	if got := strings.Join(list, "|"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestGitNamesWhoeverCommittedLast: of a story that came to a stage twice, only the last move is listed.
func TestGitNamesWhoeverCommittedLast(t *testing.T) {
	live := time.UnixMilli(1_700_000_000_000)
	at := func(minutes int) time.Time { return live.Add(time.Duration(minutes) * time.Minute) }
	moved := func(minutes int, to string) domain.PastEvent {
		return domain.PastEvent{Event: domain.Event{Project: "alpha", Record: domain.Record{
			Type: domain.StageTransition, At: at(minutes), JSON: []byte(fmt.Sprintf(`{"story_id":"1","to_stage":%q}`, to)),
		}}}
	}
	past := domain.Past{Live: live, Latest: []domain.Move{
		{StoryID: "1", From: "1_a", To: "2_b", At: at(10), Author: "Ada"},
		{StoryID: "1", From: "2_b", To: "1_a", At: at(20), Author: "Ben"},
		{StoryID: "1", From: "1_a", To: "2_b", At: at(30), Author: "Cid"},
	}}
	all := []domain.PastEvent{moved(9, "2_b"), moved(19, "1_a"), moved(29, "2_b")}
	for first, want := range []string{"Ada Ben Cid", "Ben Cid", "Cid"} {
		var by []string
		for _, e := range past.WithGit(domain.ProjectPipeline{Project: "alpha"}, append([]domain.PastEvent(nil), all[first:]...), 5) {
			by = append(by, e.By)
		}
		if got := strings.Join(by, " "); got != want {
			t.Errorf("from %d: %s, want %s", first, got, want)
		}
	}
}

// TestAMoveWithATextThatIsNoStagesNameIsNotKept: it would be kept with the project, and be on its page.
func TestAMoveWithATextThatIsNoStagesNameIsNotKept(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	long := strings.Repeat("a", 1<<20)
	moves := []domain.Move{
		{StoryID: "1", To: long, At: now},
		{StoryID: "1", From: long, To: "2_b", At: now},
		{StoryID: "1", From: "1_a", To: "2_b", At: now},
	}
	if kept := domain.MovesByStory(moves, now, now)["1"]; len(kept) != 1 || kept[0].From != "1_a" {
		t.Errorf("%d moves are kept", len(kept))
	}
}
