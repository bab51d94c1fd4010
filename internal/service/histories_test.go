package service_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// TestAHostileHistoryIsBounded has as many stories and stages as are read, and changes all the time.
func TestAHostileHistoryIsBounded(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b, now := &boardServer{}, time.UnixMilli(time.Now().UnixMilli())
	b.show(t, "http://alpha", fmt.Sprintf(
		`[{"name":"1_a","items":[]},{"name":"2_b","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":%d}]}]`, now.UnixMilli()))
	s := overBoard(t, db, b)
	for _, name := range []string{"alpha", "beta"} {
		if _, err := s.Projects.Add(t.Context(), name, "http://alpha", nil); err != nil {
			t.Fatal(err)
		}
	}
	alpha, _ := s.Projects.Registry().Find("alpha")
	raw(t, s, "2_b")
	waittest.Until(t, "the board is known", func() bool {
		_, err := s.Histories.Last(t.Context(), alpha)
		return err == nil
	})
	stories := 2000
	var moves []domain.Move
	for i := range stories {
		moves = append(moves, domain.Move{StoryID: fmt.Sprint("made up ", i), To: fmt.Sprintf("%d_made_up", i), At: now.AddDate(0, 0, -i%500)})
	}
	moves = append(moves, domain.Move{StoryID: "1", To: "2_b", At: now.Add(time.Hour)}, domain.Move{StoryID: "1", To: "1_a", At: now.Add(-time.Hour)})
	if err := s.Histories.Merge(t.Context(), 0, alpha, "one", moves); err != nil {
		t.Fatal(err)
	}
	found, err := db.ProjectVisits(t.Context(), []string{"alpha", "beta"}, 1000)
	if err != nil || found["alpha"].Past.ID != "one" || found["beta"].Past.ID != "" {
		t.Errorf("%+v, %v", found, err)
	}
	known, err := db.GitStories(t.Context(), "alpha")
	if err != nil || len(known) > 101 {
		t.Errorf("%d stories in over 100 stages, %v", len(known), err)
	}
	if past, err := db.Past(t.Context(), "alpha"); err != nil || now.Sub(past.Since) > 401*24*time.Hour {
		t.Errorf("since %v, %v", past.Since, err)
	}
	raw(t, s, `"name":"2_b","items":[{"story_id":"1"`)
	visits, err := s.Visits.Story(t.Context(), "alpha", "1")
	if err != nil || len(visits) != 2 || visits[1].From.After(time.Now()) {
		t.Errorf("%+v, %v", visits, err)
	}

	// What a project's histories change is limited; other projects have their own limit.
	service.SpendMerges(s, "alpha", 10*domain.MaxMoves)
	moves[0].StoryID = "another"
	if err := s.Histories.Merge(t.Context(), 0, alpha, "two", moves); domain.CodeOf(err) != domain.TooLarge {
		t.Errorf("without limit: %v", err)
	}
	if past, err := db.Past(t.Context(), "alpha"); err != nil || past.ID != "one" {
		t.Errorf("a history that is not merged whole counts: %+v, %v", past, err)
	}
}
