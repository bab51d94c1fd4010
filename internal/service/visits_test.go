package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// boardServer is a project server with one pipeline, which may change.
type boardServer struct {
	servers
}

func (b *boardServer) show(t testing.TB, url, stages string) {
	t.Helper()
	var list []wire.Stage
	if err := json.Unmarshal([]byte(stages), &list); err != nil {
		t.Fatal(err)
	}
	answer := &domain.PipelineAnswer{Raw: json.RawMessage(stages), Stages: wire.Stages("", list)}
	b.set(url, func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) { return answer, nil })
}

// idleBot is a bot that is off.
type idleBot struct{ service.BotRunner }

func (idleBot) Status() domain.BotStatus { return domain.BotStatus{State: domain.BotOff} }

// noStories is a server without single stories.
type noStories struct{ service.StoryServers }

func (noStories) Story(context.Context, domain.Project, string) (domain.Story, error) {
	return domain.Story{}, domain.Errorf(domain.NotFound, "no story")
}

func overBoard(t testing.TB, db service.Store, b *boardServer) *service.Service {
	t.Helper()
	s, err := service.New(t.Context(), service.Options{Store: db, Projects: b, Stories: noStories{}, Bot: idleBot{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	loops.Go(func() { _ = s.Visits.Run(ctx) })
	loops.Go(func() { _ = s.Alerts.Run(ctx) })
	t.Cleanup(func() { cancel(); loops.Wait() })
	return s
}

// raw returns the stages of the only project as soon as they contain text.
func raw(t testing.TB, s *service.Service, text string) string {
	t.Helper()
	var shown string
	waittest.Until(t, text, func() bool {
		_, pipelines := s.Pipelines.All(t.Context(), 0)
		if len(pipelines) == 0 { // another gateway's project has not arrived
			return false
		}
		shown = string(s.Claims.Texts(pipelines)[0])
		return strings.Contains(shown, text)
	})
	return shown
}

func TestAgesSurviveRestartsAndEdits(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &boardServer{}
	now := time.Now().Truncate(time.Millisecond)
	arrived, blocked := now.Add(-5*time.Hour), now.Add(-3*time.Hour)
	const stages = `[{"name":"2_current","color":"red","items":[{"story_id":"1","story_name":"One","blocked":%s,"merge_failure":null,"since_ms":%d,"points":3}]},{"name":"5_done","items":[]}]`
	b.show(t, "http://alpha", fmt.Sprintf(stages, "null", now.UnixMilli()))
	s := overBoard(t, db, b)
	if _, err := s.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	recordFeed(t, s, went(t, "alpha", "1", "1_backlog", "2_current", arrived))
	want := fmt.Sprintf(`[{"name":"2_current","color":"red","items":[{"story_id":"1","story_name":"One","blocked":null,"merge_failure":null,`+
		`"since_ms":%d,"points":3,"blocked_since_ms":null,"claim":null,"cost_usd":null}]},{"name":"5_done","items":[]}]`, arrived.UnixMilli())
	if got := raw(t, s, strconv.FormatInt(arrived.UnixMilli(), 10)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	record, err := domain.ParseRecord(fmt.Appendf(nil, `{"type":"story_blocked","story_id":"1","reason":"key","timestamp_ms":%d}`, blocked.UnixMilli()))
	if err != nil {
		t.Fatal(err)
	}
	recordFeed(t, s, domain.FeedRead{
		Cursor: domain.FeedCursor{Project: "alpha", URL: "http://alpha"}, Records: []domain.Record{record},
		ReceivedAt: time.Now(), // after the board without the block was asked for, which may be compared later
	})
	b.show(t, "http://alpha", fmt.Sprintf(stages, `"key"`, now.UnixMilli()))
	dated := fmt.Sprintf(`"blocked":"key","merge_failure":null,"since_ms":%d,"points":3,"blocked_since_ms":%d`, arrived.UnixMilli(), blocked.UnixMilli())
	raw(t, s, dated)

	b.show(t, "http://alpha", fmt.Sprintf(stages, `"key"`, now.Add(time.Second).UnixMilli())) // edited, and its server restarted
	s = overBoard(t, db, b)
	raw(t, s, dated)
	alerts := s.Alerts.List(t.Context())
	if len(alerts.Items) != 1 || !alerts.Items[0].Since.Equal(blocked) {
		t.Errorf("alerts %+v", alerts)
	}
}

// visitless is a database whose visits cannot be read.
type visitless struct{ service.Store }

func (visitless) ProjectVisits(context.Context, []string, int) (map[string]*domain.ProjectVisits, error) {
	return nil, errors.New("the disk has failed")
}

// TestABoardWithoutVisitsHasItsTimesAndNoClaimOfItsServers: a project server says nothing about who works on a story.
func TestABoardWithoutVisitsHasItsTimesAndNoClaimOfItsServers(t *testing.T) {
	db, err := sqlite.Open(t.Context(), storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &boardServer{}
	b.show(t, "http://alpha", `[{"name":"1_backlog","items":[{"story_id":"1","story_name":"One","since_ms":5000,"claim":{"by":"root"}}]}]`)
	s := overBoard(t, visitless{db}, b)
	if _, err := s.Projects.Add(t.Context(), "alpha", "http://alpha", nil); err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"1_backlog","items":[{"story_id":"1","story_name":"One","since_ms":5000,"claim":null,"blocked_since_ms":null,"cost_usd":null}]}]`
	if got := raw(t, s, "1_backlog"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
