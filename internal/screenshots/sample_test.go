package screenshots_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store/sqlite"
)

var (
	stageNames = []string{"1_backlog", "2_current", "3_qa", "4_merge", "5_done", "6_archived"}
	names      = []string{"webshop", "billing", "mobile-app", "search", "identity", "warehouse", "docs-site", "data-pipeline"}
	subjects   = []string{
		"Log in by a link in a mail", "Search in spite of typos", "Export orders as CSV", "Pay by card", "Dark theme",
		"Resize pictures on upload", "Retry failed webhooks", "Audit log for administrators", "Faster first page",
		"Undo for deleted carts", "Show stock by store", "Rate limit for the API", "Remember the language",
		"Import contacts from a file", "Round totals like the bank", "Health checks for workers",
		"Sign out everywhere", "Print labels in batches", "Cache of the five hundred best sellers", "Weekly report by mail",
	}
)

// yardSample is a set of projects with their stories and the events of the last two weeks. It is the same on each run.
type yardSample struct {
	testing.TB
	url      string
	dir      string
	projects []*projectSample
	dice     *rand.Rand
}

type projectSample struct {
	name    string
	stories []*storySample
}

type storySample struct {
	number  int
	name    string
	stage   int
	came    time.Time
	extra   string // of its front matter
	text    string // in Markdown; only of the blocked story whose page is shown
	blocked time.Time
	moves   []time.Time
}

func (s *storySample) id() string {
	words := strings.Fields(strings.ToLower(s.name))
	return fmt.Sprintf("%d_story_%s", s.number, strings.Join(words[:2], "_"))
}

func dataDir(dir string) string { return filepath.Join(dir, "data") }

func newYard(t testing.TB, dir string, count int) *yardSample {
	y := &yardSample{TB: t, dir: dir, dice: rand.New(rand.NewPCG(8, 2))}
	now := time.Now()
	for i := range count {
		p := &projectSample{name: names[i%len(names)]}
		if i >= len(names) {
			p.name += fmt.Sprintf("-%d", i/len(names)+1)
		}
		busy := []int{26, 18, 14, 12, 8, 6, 3, 3}[i%8]
		if i >= len(names) {
			busy /= 3
		}
		for n := range busy + 8 {
			s := &storySample{number: n + 1 + i, name: subjects[(n*7+i*3)%len(subjects)]}
			began := now.Add(-time.Duration(y.dice.IntN(15*24*60)) * time.Minute)
			s.came, s.stage = began, 0
			for s.stage < 4 {
				stay := time.Duration(1+y.dice.ExpFloat64()*float64([]int{60, 40, 14, 3}[s.stage])*60) * time.Minute
				if s.came.Add(stay).After(now.Add(-2 * time.Minute)) {
					break
				}
				s.came = s.came.Add(stay)
				s.moves = append(s.moves, s.came)
				s.stage++
			}
			if s.stage == 4 && y.dice.IntN(3) > 0 {
				s.stage = 5 // finished long ago
			}
			p.stories = append(p.stories, s)
		}
		y.projects = append(y.projects, p)
	}
	y.trouble(0, 2, "blocked: true\nblocked_reason: waiting for the payment provider's API key")
	y.projects[0].stories[1].addHistory(now)
	y.trouble(1, 3, `merge_failure: "conflict in go.mod"`)
	y.trouble(3, 1, "blocked: true\nblocked_reason: which of the two indexes is to stay?")
	for _, p := range y.projects {
		for _, s := range p.stories {
			y.write(p, s)
		}
	}
	return y
}

// trouble puts a story of a project into a stage, with front matter that says what is wrong.
func (y *yardSample) trouble(project, stage int, front string) {
	if project >= len(y.projects) {
		return
	}
	s := y.projects[project].stories[1]
	s.stage, s.extra, s.came = stage, front+"\n", time.Now().Add(-time.Duration(30+y.dice.IntN(200))*time.Minute)
	s.moves = nil
}

func (y *yardSample) path(p *projectSample, s *storySample) string {
	return filepath.Join(y.dir, "src", p.name, "work", stageNames[s.stage], s.id()+".md")
}

func (y *yardSample) write(p *projectSample, s *storySample) {
	y.Helper()
	for _, stage := range stageNames {
		if err := os.MkdirAll(filepath.Join(y.dir, "src", p.name, "work", stage), 0o755); err != nil {
			y.Fatal(err)
		}
	}
	text := fmt.Sprintf("---\nname: %s\n%s---\n\n%s", s.name, s.extra, s.text)
	if err := os.WriteFile(y.path(p, s), []byte(text), 0o644); err != nil {
		y.Fatal(err)
	}
	if err := os.Chtimes(y.path(p, s), s.came, s.came); err != nil {
		y.Fatal(err)
	}
}

func (y *yardSample) dirs() (dirs []string) {
	for _, p := range y.projects {
		dirs = append(dirs, filepath.Join(y.dir, "src", p.name, "work"))
	}
	return dirs
}

// history stores the events from before the gateway starts.
func (y *yardSample) history() {
	y.Helper()
	if err := os.MkdirAll(dataDir(y.dir), 0o700); err != nil {
		y.Fatal(err)
	}
	db, err := sqlite.Open(y.Context(), dataDir(y.dir))
	if err != nil {
		y.Fatal(err)
	}
	defer db.Close()
	var reads []domain.FeedRead
	for _, p := range y.projects {
		for _, s := range p.stories {
			for i, at := range s.moves {
				reads = append(reads, y.read(p, s, at, map[string]any{"type": domain.StageTransition, "from_stage": stageNames[i], "to_stage": stageNames[i+1]}))
			}
			if s.text != "" {
				reads = append(reads, y.read(p, s, s.blocked, map[string]any{"type": domain.StoryBlocked, "reason": "waiting for the payment provider's API key"}))
			}
		}
	}
	slices.SortFunc(reads, func(a, b domain.FeedRead) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	if _, err := db.AppendEvents(context.Background(), reads); err != nil {
		y.Fatal(err)
	}
}

// read returns a read with one event of a story.
func (y *yardSample) read(p *projectSample, s *storySample, at time.Time, event map[string]any) domain.FeedRead {
	y.Helper()
	event["story_id"], event["story_name"], event["timestamp_ms"] = s.id(), s.name, at.UnixMilli()
	record, err := domain.ParseRecord(encode(y, event))
	if err != nil {
		y.Fatal(err)
	}
	return domain.FeedRead{Cursor: domain.FeedCursor{Project: p.name}, Records: []domain.Record{record}, ReceivedAt: at}
}

// live makes some events happen while the gateway runs.
func (y *yardSample) live() {
	y.Helper()
	if len(y.projects) > 4 {
		y.post("/api/gateway/projects", `{"name":"legacy-crm","url":"http://127.0.0.1:9"}`)
	}
	for i, agent := range []struct{ label, state, detail string }{
		{"builder-1", "running", y.projects[0].stories[1].id() + "\nstep 41: go test ./audit … ok\nstep 42: go vet ./... … ok\nstep 43: waiting for a key"},
		{"builder-2", "idle", ""},
		{"mac-mini", "failed", "exit status 2: missing signing certificate"},
	} {
		var token struct{ Token string }
		y.decode(y.post("/gateway/tokens", ""), &token)
		var joined struct {
			Agent  struct{ ID string }
			Secret string
		}
		y.decode(y.post("/gateway/agents", string(encode(y, map[string]any{"token": token.Token, "label": agent.label, "version": "0.1.0"}))), &joined)
		if i < len(y.projects) {
			y.post("/gateway/agents/"+joined.Agent.ID+"/assign", string(encode(y, map[string]any{"project": y.projects[i].name})))
		}
		request, err := http.NewRequest(http.MethodPost, y.url+"/gateway/agents/"+joined.Agent.ID+"/heartbeat",
			bytes.NewReader(encode(y, map[string]any{"state": agent.state, "detail": agent.detail})))
		if err != nil {
			y.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+joined.Secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil || response.StatusCode != http.StatusOK {
			y.Fatal(response, err)
		}
		response.Body.Close()
	}
	before := y.lastEvent()
	moved := 0
	for _, p := range y.projects[:min(3, len(y.projects))] {
		for _, s := range p.stories {
			if s.stage == 1 && s.extra == "" {
				from := y.path(p, s)
				s.stage++
				if err := os.Rename(from, y.path(p, s)); err != nil {
					y.Fatal(err)
				}
				moved++
				break
			}
		}
	}
	deadline := time.Now().Add(time.Minute)
	for y.lastEvent() < before+moved {
		if time.Now().After(deadline) {
			y.Fatalf("of %d moves not all have come", moved)
		}
	}
}

// lastEvent returns the id of the newest event.
func (y *yardSample) lastEvent() int {
	y.Helper()
	response, err := http.Get(y.url + "/api/gateway/events?before=&limit=1")
	if err != nil {
		y.Fatal(err)
	}
	defer response.Body.Close()
	var page struct{ Events []struct{ ID int } }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		y.Fatal(err)
	}
	if len(page.Events) == 0 {
		return 0
	}
	return page.Events[0].ID
}

func (y *yardSample) decode(text string, v any) {
	y.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		y.Fatal(text, err)
	}
}

func encode(t testing.TB, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
