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

// TestAHistoryWithTooManyStagesHurtsNobody: a story is in a stage that nothing has left, events fill the names that a project may
// have, and then the story is seen to move on.
func TestAHistoryWithTooManyStagesHurtsNobody(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const board = `[{"name":"%s","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,"since_ms":%d}]}]`
	b, now := &boardServer{}, time.Now()
	b.show(t, "http://alpha", fmt.Sprintf(board, "0_new", now.Add(-time.Hour).UnixMilli()))
	s := overBoard(t, db, b)
	for _, name := range []string{"alpha", "beta"} {
		if _, err := s.Projects.Add(t.Context(), name, "http://alpha", nil); err != nil {
			t.Fatal(err)
		}
	}
	raw(t, s, "0_new")
	visits(t, s, 1)

	s = overBoard(t, db, b)
	for i := range 150 {
		recordFeed(t, s, went(t, "alpha", fmt.Sprint("made up ", i), fmt.Sprintf("%d_a", i), fmt.Sprintf("%d_b", i), now.Add(-time.Minute)))
	}
	b.show(t, "http://alpha", fmt.Sprintf(board, "5_b", now.UnixMilli()))
	raw(t, s, `"5_b"`)
	visits(t, s, 2)
	recordFeed(t, s, went(t, "alpha", "1", "5_a", "5_b", now))
	recordFeed(t, s, went(t, "alpha", "1", "5_b", "151_b", now.Add(time.Second)))
	pipelines := []domain.ProjectPipeline{chartPipeline("alpha"), chartPipeline("beta")}
	waittest.Until(t, "charts are drawn", func() bool {
		charts, err := service.Charts(t.Context(), s, pipelines)
		if err != nil {
			t.Fatal(err)
		}
		return charts[0].Days != nil && charts[1].Days != nil
	})
	_ = s.Alerts.List(t.Context())
}

// visits waits until the story 1 of alpha has made so many visits.
func visits(t *testing.T, s *service.Service, n int) {
	t.Helper()
	waittest.Until(t, fmt.Sprint(n, " visits"), func() bool {
		visits, err := s.Visits.Story(t.Context(), "alpha", "1")
		return err == nil && len(visits) >= n
	})
}
