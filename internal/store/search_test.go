package store_test

import (
	"fmt"
	"slices"
	"testing"

	"switchyard/internal/domain"
)

// TestCommonAndRareTextsAreFoundAlike compares results from the index of words with those of scanning all events, also with too many
// matches for the index.
func TestCommonAndRareTextsAreFoundAlike(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		stories := 700
		reads := make([]domain.FeedRead, 0, stories)
		for n := range stories {
			reads = append(reads, feedRead([]string{"alpha", "beta"}[n%2], eventRecord(t, fmt.Sprintf(
				`{"type":"%s","story_id":"%d_common","story_name":"Common %d","reason":"because of %d","timestamp_ms":%d}`,
				[]string{"story_blocked", "merge_failure"}[n/2%2], n, n, n%7, n))))
		}
		// At the beginning of a long stream, so that reading the newest events does not find it.
		reads = slices.Insert(reads, 50, feedRead("beta", eventRecord(t, `{"type":"story_blocked","story_id":"x","story_name":"x","reason":"jazz!","timestamp_ms":1}`)))
		for some := range slices.Chunk(reads, 1000) {
			appendEvents(t, db, some...)
		}
		for _, q := range []domain.EventQuery{
			{Text: "common"},
			{Text: "common", Project: "beta"},
			{Text: "common", Type: domain.MergeFailure, Project: "alpha"},
			{Text: "because of 3", Type: domain.StoryBlocked},
			{Text: "common 17"},
			{Text: "17"},
			{Text: "o"},
			{Text: "blocked"},
			{Text: "bet"},
			{Text: "bet", Type: domain.MergeFailure},
			{Text: "a"},
			{Text: "common 99999"},
			{Text: "zz"},
			{Text: "ß"},
			{Text: "!"},
			{Text: "z!", Project: "alpha"},
			{Text: "z!", Project: "beta", Type: domain.StoryBlocked},
		} {
			for _, from := range []int64{0, 100, int64(stories) - 100} {
				for _, backward := range []bool{false, true} {
					if q.Backward, q.Limit, q.After, q.Before = backward, 30, from, 0; backward {
						q.After, q.Before = 0, from
					}
					want := selected(q, reads)
					page, err := db.Events(t.Context(), q)
					if err != nil || !slices.Equal(ids(page.Events), want[:min(len(want), q.Limit)]) || page.More != (len(want) > q.Limit) {
						t.Errorf("%+v: %v, more: %t, %v, want %v", q, ids(page.Events), page.More, err, want[:min(len(want), q.Limit)])
					}
				}
			}
		}
	})
}

func TestATextCannotPassForOneOfAnotherProject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		for _, project := range []string{"alpha", "beta"} { // numbers 1 and 2
			appendEvents(t, db, feedRead(project, eventRecord(t, `{"type":"note","text":"weather \ue000\ue000\ue001 \ue000\ue000\ue002 `+project+`","timestamp_ms":1}`)))
		}
		for i, project := range []string{"alpha", "beta"} {
			page, err := db.Events(t.Context(), domain.EventQuery{Project: project, Text: "weather", Limit: 10})
			if err != nil || !slices.Equal(ids(page.Events), []int64{int64(i + 1)}) {
				t.Errorf("in %s: %v, %v", project, ids(page.Events), err)
			}
		}
	})
}

func TestManyStagesAndTypesAreFoundToo(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		var records []domain.Record
		for n := range 300 { // more than are kinds of their own
			records = append(records, eventRecord(t, fmt.Sprintf(
				`{"type":"stage_transition","story_id":"1_story","story_name":"Story","from_stage":"%d_from","to_stage":"%d_to","timestamp_ms":%d}`, n, n+1, n)))
		}
		appendEvents(t, db, feedRead("alpha", records...))
		for _, n := range []int{7, 299} {
			page, err := db.Events(t.Context(), domain.EventQuery{Text: fmt.Sprintf("%d_from", n), Type: domain.StageTransition, Limit: 100})
			if err != nil || len(page.Events) == 0 || page.Events[len(page.Events)-1].ID < int64(n) {
				t.Errorf("stage %d: found %v, %v", n, ids(page.Events), err)
			}
		}
		page, err := db.Events(t.Context(), domain.EventQuery{Type: domain.StageTransition, Limit: 1000})
		if err != nil || len(page.Events) != len(records) {
			t.Fatalf("%d events, %v", len(page.Events), err)
		}
		for i, e := range page.Events {
			if string(e.JSON) != string(records[i].JSON) {
				t.Errorf("%s was stored as %s", records[i].JSON, e.JSON)
			}
		}
	})
}

func TestStoriesAreFoundByAShortWordAmongManyThatHaveTheLongOne(t *testing.T) {
	onEachEngine(t, func(t *testing.T, db database) {
		var records []domain.Record
		for n := range 500 {
			name := "Common"
			if n == 0 || n == 7 || n == 250 {
				name = "Common zq"
			}
			records = append(records, eventRecord(t, fmt.Sprintf(
				`{"type":"story_blocked","story_id":"%d_story","story_name":"%s","reason":"rain","timestamp_ms":%d}`, n, name, n)))
		}
		appendEvents(t, db, feedRead("alpha", records...))
		for limit, want := range map[int][]string{2: {"250_story", "7_story"}, 5: {"250_story", "7_story", "0_story"}} {
			found, err := db.FindStories(t.Context(), []string{"common", "zq"}, limit)
			var ids []string
			for _, s := range found {
				ids = append(ids, s.ID)
			}
			if err != nil || !slices.Equal(ids, want) {
				t.Errorf("of %d: found %v, %v, want %v", limit, ids, err, want)
			}
		}
	})
}
