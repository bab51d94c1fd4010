package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/service"
	"switchyard/internal/store/storetest"
	"switchyard/internal/waittest"
)

// flowSite is a gateway with the board alpha.
type flowSite struct {
	*service.Service
	testing.TB
	stages []domain.Stage
	layout string
}

// newFlowSite returns one whose board has these stages; a story is added by putting it into one of them.
func newFlowSite(t testing.TB, store service.Store, stages ...string) *flowSite {
	s := &flowSite{TB: t}
	for _, name := range stages {
		s.stages = append(s.stages, domain.Stage{Name: name})
	}
	var err error
	s.Service, err = service.New(context.Background(), service.Options{Store: store, Projects: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Projects.Add(t.Context(), "alpha", "http://127.0.0.1:1", nil); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *flowSite) Pipeline(context.Context, domain.Project, *domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
	digest := uint64(len(fmt.Sprint(s.stages))) // stories are only added
	return &domain.PipelineAnswer{Digest: digest, Raw: []byte("[]"), Stages: s.stages, Board: domain.BoardPlace{Layout: s.layout}}, nil
}

// moves records that a story went through stages, each at a time so many days ago.
func (s *flowSite) moves(story string, steps ...any) {
	s.Helper()
	now := time.Now()
	for i := 0; i+2 < len(steps); i += 2 {
		at := now.AddDate(0, 0, -steps[i+1].(int))
		if err := s.Events.Record(s.Context(), went(s, "alpha", story, steps[i].(string), steps[i+2].(string), at)); err != nil {
			s.Fatal(err)
		}
	}
}

// puts puts a story on the board.
func (s *flowSite) puts(story, stage string, since time.Time) {
	i := slices.IndexFunc(s.stages, func(s domain.Stage) bool { return s.Name == stage })
	s.stages[i].Items = append(s.stages[i].Items, domain.Item{StoryID: story, StoryName: story, Since: since})
}

func (s *flowSite) report(days int) *domain.FlowReport {
	s.Helper()
	s.Pipelines.Boards(s.Context(), 0)
	r, err := s.Flow.Report(s.Context(), domain.FlowQuery{Days: days, Ahead: 14, Zone: time.UTC})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func TestAStoryOfMoreThanAYearKeepsItsStart(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "3_qa", "5_done")
	s.moves("old", "1_backlog", 380, "2_current", 370, "3_qa", 1, "5_done")
	if r := s.report(30); len(r.Stories) != 1 || r.Stories[0].Days != 380 {
		t.Errorf("%+v", r.Stories)
	}
}

// TestStagesThatLeftTheBoardStillCount: by their word if that is one for done, else by their number.
func TestStagesThatLeftTheBoardStillCount(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "5_done")
	s.moves("reviewed", "1_backlog", 9, "2_current", 8, "3_review", 3, "5_done")
	s.moves("only", "0_inbox", 9, "1_backlog", 7, "3_review", 3, "5_done")
	s.moves("renamed", "2_current", 20, "6_shipped", 2, "5_done") // it was finished in a stage with another name
	s.moves("waited", "1_backlog", 9, "0_inbox", 2, "2_current")
	s.puts("waited", "2_current", time.Time{})
	r := s.report(30)
	var took []string
	for _, story := range r.Stories {
		took = append(took, fmt.Sprint(story.StoryID, " ", story.Days))
	}
	slices.Sort(took)
	if want := []string{"only 5", "renamed 1", "reviewed 7"}; !slices.Equal(took, want) {
		t.Errorf("finished: %v, want %v", took, want)
	}
	if len(r.Ageing) != 1 || r.Ageing[0].Days != 3 {
		t.Errorf("in work: %+v", r.Ageing)
	}
	if n := r.Days[30-1-5].Work["3_review"]; n != 2 {
		t.Errorf("%d in the stage that left, five days ago", n)
	}
}

// TestTheCumulativeFlowCountsEachStoryOnce, so that what came and is not finished is in work, and no line falls.
func TestTheCumulativeFlowCountsEachStoryOnce(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "3_qa", "5_done")
	s.moves("before", "1_backlog", 50, "2_current", 40, "5_done")                                 // neither came nor was finished
	s.moves("across", "1_backlog", 50, "2_current", 10, "5_done")                                 // came before
	s.moves("within", "1_backlog", 12, "2_current", 3, "5_done")                                  // came and was finished
	s.moves("back", "1_backlog", 12, "2_current", 9, "5_done", 5, "2_current", 4, "5_done")       // once
	s.moves("again", "1_backlog", 60, "2_current", 50, "5_done", 5, "2_current")                  // in work once more
	s.moves("gone", "1_backlog", 60, "2_current", 50, "1_backlog")                                // not in work
	s.moves("idea", "0_draft", 9, "1_backlog")                                                    // it only waits
	s.moves("new", "1_backlog", 4, "2_current", 2, "3_qa", 1, "2_current")                        // in work, and came further
	s.moves("reopened", "1_backlog", 20, "2_current", 15, "5_done", 10, "1_backlog", 3, "5_done") // once
	s.puts("again", "2_current", time.Time{})
	s.puts("new", "2_current", time.Time{})
	r := s.report(30)
	arrived, finished, reached := 0, 0, []int{0, 0}
	for i, d := range r.Days {
		if d.Arrived < 0 || d.Finished < 0 || d.Reached[0] < reached[0] || d.Reached[1] < reached[1] {
			t.Errorf("day %d falls", i)
		}
		arrived, finished, reached = arrived+d.Arrived, finished+d.Finished, d.Reached
		if arrived < reached[0] || reached[0] < reached[1] || reached[1] < finished {
			t.Errorf("day %d: %d came, %v came into each stage, %d are finished", i, arrived, reached, finished)
		}
	}
	if !slices.Equal(r.Work, []string{"2_current", "3_qa"}) || !slices.Equal(reached, []int{6, 5}) {
		t.Errorf("%v came into %v", reached, r.Work)
	}
	if arrived != 6 || finished != 4 || len(r.Ageing) != 2 || r.Days[0].Arrived != 2 {
		t.Errorf("%d came, %d before; %d are finished, %d in work", arrived, r.Days[0].Arrived, finished, len(r.Ageing))
	}
}

func TestAgeingWorkHasOneOrder(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "3_qa", "5_done")
	midnight := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5)
	s.puts("b", "3_qa", midnight)
	s.puts("c", "2_current", midnight)
	s.puts("first", "3_qa", midnight.Add(-time.Minute))
	s.puts("a", "3_qa", midnight)
	s.puts("unknown", "2_current", time.Time{})
	s.puts("later", "2_current", midnight.Add(time.Hour))
	var got []string
	for _, age := range s.report(30).Ageing {
		got = append(got, age.Item.StoryID)
	}
	if want := []string{"first", "a", "b", "c", "later", "unknown"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestWhatComesFromTomorrowWasToday: the clock of a project server is ahead, and it is about midnight.
func TestWhatComesFromTomorrowWasToday(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "5_done")
	now := time.Now().UTC()
	ahead := now.Add(domain.MaxClockSkew / 2)
	read := went(t, "alpha", "quick", "1_backlog", "2_current", ahead)
	read.Records = append(read.Records, went(t, "alpha", "quick", "2_current", "5_done", ahead.Add(time.Millisecond)).Records...)
	read.ReceivedAt = now
	if err := s.Events.Record(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	second := now.Hour()*3600 + now.Minute()*60 + now.Second()
	zone := time.FixedZone("late", 24*3600-int((domain.MaxClockSkew/4).Seconds())-second) // soon it is midnight
	s.Pipelines.Boards(t.Context(), 0)
	r, err := s.Flow.Report(t.Context(), domain.FlowQuery{Days: 7, Ahead: 14, Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Stories) != 1 || r.Stories[0].Days != 1 || r.Days[6].Finished != 1 || r.Days[6].Stages["5_done"] != 1 {
		t.Errorf("%+v, %+v", r.Stories, r.Days[6])
	}
}

// TestAStageIsWorkByItsBoard: the last stage of one board may be one of work on another.
func TestAStageIsWorkByItsBoard(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "idea", "draft", "review", "published")
	s.moves("one", "idea", 9, "draft", 5, "review")
	s.moves("two", "idea", 9, "draft", 5, "review", 2, "published")
	r := s.report(30)
	if want := []string{"draft", "review"}; !slices.Equal(r.Work, want) {
		t.Errorf("stages of work: %v, want %v", r.Work, want)
	}
	if today := r.Days[29]; today.Stages["published"] != 1 || !reflect.DeepEqual(today.Work, map[string]int{"review": 1}) {
		t.Errorf("today: %+v", today)
	}
}

// TestTheArchiveOfOpenSpecFinishesWhatIsNotFinished: it does so in no other layout, and not twice.
func TestTheArchiveOfOpenSpecFinishesWhatIsNotFinished(t *testing.T) {
	for layout, want := range map[string][]string{
		"openspec": {"came done 2 2", "done 9 6", "past it 7 5"}, "stages": {"done 9 6"},
	} {
		s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_draft", "2_planned", "3_doing", "4_done", "5_archived")
		s.layout = layout
		s.moves("done", "1_draft", 9, "3_doing", 6, "4_done", 2, "5_archived")
		s.moves("past it", "1_draft", 7, "3_doing", 5, "5_archived")
		s.moves("came done", "4_done", 2, "5_archived")
		s.moves("is done", "5_archived", 3, "4_done")
		var got []string
		now := time.Now()
		for _, story := range s.report(30).Stories {
			ago := func(at time.Time) int { return int(now.Sub(at).Hours()) / 24 }
			got = append(got, fmt.Sprint(story.StoryID, " ", ago(story.Started), " ", ago(story.Finished)))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q", layout, got)
		}
	}
}

// TestFinishedIsTheSameEverywhere: a story that goes past the done stage is not finished, one that came back is open.
func TestFinishedIsTheSameEverywhere(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "3_merged", "5_live", "6_attic")
	s.moves("done", "1_backlog", 2, "2_current", 1, "5_live", 0, "6_attic")
	s.moves("past it", "1_backlog", 2, "2_current", 1, "6_attic")
	s.moves("back", "1_backlog", 2, "2_current", 1, "5_live", 0, "2_current")
	if r := s.report(30); len(r.Stories) != 1 || r.Stories[0].StoryID != "done" {
		t.Errorf("flow has %+v", r.Stories)
	}
	boards, finished := s.Pipelines.Boards(t.Context(), 0), 0
	for _, day := range boards.Together.Days {
		finished += day.Finished
	}
	if finished != 1 || boards.Together.ToDone.Visits != 1 {
		t.Errorf("charts have %d, %+v", finished, boards.Together.ToDone)
	}
	page, err := s.Events.Page(t.Context(), domain.EventQuery{Type: domain.StageTransition, Finished: true, Limit: 100})
	if err != nil || len(page.Events) != 2 { // that of the story that came back, too
		t.Errorf("%d events, %v", len(page.Events), err)
	}
	all, err := s.Events.Page(t.Context(), domain.EventQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	told, err := s.Events.WithAuthors(t.Context(), all.Events)
	for _, e := range told {
		if d := e.Details(); e.Finished != (d.ToStage == "5_live") {
			t.Errorf("%s → %s: %t, %v", d.FromStage, d.ToStage, e.Finished, err)
		}
	}
}

// brokenFlow is a store with a fault in what it reads for Flow.
type brokenFlow struct{ service.Store }

func (brokenFlow) StoryNames(context.Context, []domain.StoryKey) (map[domain.StoryKey]domain.NamedStory, error) {
	panic("no such luck")
}

// TestAPanicInASharedReadIsAnError of those who ask, and does not end the gateway.
func TestAPanicInASharedReadIsAnError(t *testing.T) {
	s := newFlowSite(t, brokenFlow{openStore(t, storetest.Dir(t))}, "1_backlog", "2_current", "5_done")
	if said, err := s.Flow.Sentence(t.Context(), time.UTC, "alpha"); err == nil {
		t.Errorf("said %q", said)
	}
}

// slowWhole is a store that reads all visits of a project only when it is released.
type slowWhole struct {
	service.Store
	let chan struct{}
}

func (s slowWhole) ProjectVisits(ctx context.Context, projects []string, newest int) (map[string]*domain.ProjectVisits, error) {
	if newest > 1000 {
		<-s.let
	}
	return s.Store.ProjectVisits(ctx, projects, newest)
}

// TestTheFlowTellsWhatIsKnownUntilAllIsRead: the newest visits after a start, and then all, with what came meanwhile.
func TestTheFlowTellsWhatIsKnownUntilAllIsRead(t *testing.T) {
	const finished = 1200
	store := slowWhole{openStore(t, storetest.Dir(t)), make(chan struct{})}
	before := newFlowSite(t, store, "1_backlog", "2_current", "5_done")
	for from := 0; from < finished; from += 100 {
		read := went(t, "alpha", fmt.Sprint(from), "2_current", "5_done", time.Now())
		for n := 1; n < 100; n++ {
			read.Records = append(read.Records, went(t, "alpha", fmt.Sprint(from+n), "2_current", "5_done", time.Now()).Records...)
		}
		if err := before.Events.Record(t.Context(), read); err != nil {
			t.Fatal(err)
		}
	}
	s := &flowSite{TB: t, stages: before.stages}
	var err error
	if s.Service, err = service.New(t.Context(), service.Options{Store: store, Projects: s, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	told := func() int { r := s.report(30); return len(r.Stories) + r.More }
	waittest.Until(t, "the newest are told", func() bool { return told() == 1000 })
	s.moves("new", "2_current", 0, "5_done")
	if n := told(); n != 1001 {
		t.Errorf("%d were finished", n)
	}
	close(store.let)
	waittest.Until(t, "all are told", func() bool { return told() == finished+1 })
}

// TestTheFlowIsToldInSentences, as the bot and MCP tell it.
func TestTheFlowIsToldInSentences(t *testing.T) {
	s := newFlowSite(t, openStore(t, storetest.Dir(t)), "1_backlog", "2_current", "5_done")
	told := func(items int) (sentence, forecast string) {
		t.Helper()
		s.Pipelines.Boards(t.Context(), 0)
		sentence, err := s.Flow.Sentence(t.Context(), time.UTC, "alpha")
		if err != nil {
			t.Fatal(err)
		}
		if forecast, err = s.Flow.Forecast(t.Context(), "alpha", items); err != nil {
			t.Fatal(err)
		}
		return sentence, forecast
	}
	sentence, forecast := told(0)
	if sentence != "0 stories finished in 90 days, too few to say how long a story takes; 0 in work." ||
		forecast != "No forecast: 0 stories were finished in 0 days so far; it needs 10 of each." {
		t.Errorf("%s\n%s", sentence, forecast)
	}
	for n := range 20 { // one on each of the 20 days before today
		s.moves(fmt.Sprint(n), "1_backlog", n+2, "2_current", n+1, "5_done")
	}
	s.moves("last", "1_backlog", 1, "2_current")
	s.puts("last", "2_current", time.Time{})
	sentence, forecast = told(5)
	if sentence != "20 stories finished in 90 days: half within 2 days, 85 % within 2 days; 1 in work." {
		t.Error(sentence)
	}
	// Of the 21 days since the first move, 20 had one: six days are enough for five.
	date := time.Now().UTC().AddDate(0, 0, 6).Format("2 January")
	if forecast != "5 stories: 85 % by "+date+". In 14 days, 85 %: 13 or more." {
		t.Error(forecast)
	}
	if all, err := s.Flow.Sentence(t.Context(), time.UTC); err != nil || all != sentence {
		t.Error(all, err)
	}
}

// TestGatewaysTellTheSameFlow on one database, the one that saw the moves and the other.
func TestGatewaysTellTheSameFlow(t *testing.T) {
	peers := severalGateways(t, 2)
	board := answerFunc(func(*domain.PipelineAnswer) (*domain.PipelineAnswer, error) {
		return &domain.PipelineAnswer{Raw: []byte("[]"), Stages: chartPipeline("alpha").Stages}, nil
	})
	for _, p := range peers {
		p.boards.set("http://alpha", board)
	}
	peers[0].project("alpha", "http://alpha")
	now := time.Now()
	for n := range 30 {
		id := fmt.Sprint(n)
		for i, move := range [][2]string{{"1_backlog", "2_current"}, {"2_current", "3_qa"}, {"3_qa", "5_done"}} {
			at := now.Add(-time.Duration(2*n+7-i) * 20 * time.Hour)
			if err := peers[0].Events.Record(t.Context(), went(t, "alpha", id, move[0], move[1], at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	report := func(p *peer) *domain.FlowReport {
		p.Pipelines.Boards(t.Context(), 0)
		r, err := p.Flow.Report(t.Context(), domain.FlowQuery{Projects: []string{"alpha"}, Days: 60, Ahead: 14, Items: 12, Zone: time.UTC})
		if err != nil && domain.CodeOf(err) != domain.NotFound {
			t.Fatal(err)
		}
		return r
	}
	want := report(peers[0])
	if len(want.Stories) < 20 || want.HowMany == nil || len(want.Graded) == 0 {
		t.Fatalf("%+v", want)
	}
	waittest.Until(t, "the other gateway tells the same", func() bool { return reflect.DeepEqual(report(peers[1]), want) })
	// One more, which the other gateway is told of.
	if err := peers[0].Events.Record(t.Context(), went(t, "alpha", "more", "2_current", "5_done", now)); err != nil {
		t.Fatal(err)
	}
	if want = report(peers[0]); want.Stories[0].StoryID != "more" {
		t.Errorf("%+v", want.Stories[0])
	}
	waittest.Until(t, "the other gateway knows it too", func() bool { return reflect.DeepEqual(report(peers[1]), want) })
}
