//go:build stress

package stress

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	soakers = 3
	// workWithSoak is what the agents do for each story. About some they ask, and of some the first try fails.
	workWithSoak = `say() { echo "$1 $SWITCHYARD_STORY_ID $SWITCHYARD_AGENT_ID $(date +%s%3N) ${SWITCHYARD_ANSWER-}" >>"$0/log"; }
n=${SWITCHYARD_STORY_ID#TASK-}
say begun
sleep 0.$((n % 10))
if [ $((n % 5)) = 0 ] && [ -z "${SWITCHYARD_ANSWER-}" ]; then echo "which colour?"; exit 3; fi
if [ $((n % 8)) = 0 ] && mkdir "$0/$n" 2>/dev/null; then echo "needs a key"; exit 1; fi
say ended`
	soakConfig = "project_name: Soak\nstatuses: [\"To Do\", \"In Progress\", \"Done\"]\nremote_operations: false\ncheck_active_branches: false\n"
	// soakRests is how soon everything must be done after the last fault: an agent may have been told to wait for a minute.
	soakRests = 3 * time.Minute
)

// TestASoakLosesNothing: three agents work on a board to which its own tool adds stories and notes, while gateway, project server and
// agents are killed and put to sleep in turn. It takes as long as the variable SOAK says, by default a minute.
func TestASoakLosesNothing(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("SOAK"), "1m"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSoak(t)
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var tool, people sync.WaitGroup
	attended, leave := context.WithCancel(t.Context())
	defer people.Wait()
	defer leave()
	tool.Go(func() { s.useTool(ctx) })
	people.Go(func() { s.attend(attended) })
	s.disturb(ctx, length)
	tool.Wait()
	if !until(soakRests, func() bool { return s.rests() }) {
		t.Errorf("after %v not everything is done", soakRests)
	}
	leave()
	people.Wait()
	s.check()
}

// soak is a gateway with one board, those who work on it, and what they saw.
type soak struct {
	t                *testing.T
	dir              string // of the repository; the agents' log is beside it
	gateway, project *server
	agents           []*soaker

	made, completed     int
	notes               map[string][]string // by story, what the tool has added
	kills, sleeps       int
	answered, unblocked int
}

func newSoak(t *testing.T) *soak {
	program, dir := build(t), t.TempDir()
	s := &soak{t: t, dir: filepath.Join(dir, "repository"), notes: map[string][]string{}}
	for _, folder := range []string{"tasks", "completed"} { // the tool makes the second one only when it makes the board
		if err := os.MkdirAll(filepath.Join(s.dir, "backlog", folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "backlog/config.yml"), []byte(soakConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	runIn(t, s.dir, "git", "init", "-q")
	s.project = newServer(t, "project", loopback(t, 40), program, "project", "--name", "alpha", "--work", s.dir, "--allow-writes")
	s.project.start()
	s.gateway = newServer(t, "gateway", loopback(t, 1), program, "gateway", "--data", filepath.Join(dir, "data"))
	s.gateway.start()
	must(t, "POST", s.gateway.url+"/api/gateway/projects", map[string]string{"name": "alpha", "url": s.project.url}, nil)
	for i := range soakers {
		s.agents = append(s.agents, newSoaker(t, program, s.gateway.url, dir, fmt.Sprint("builder-", i)))
	}
	return s
}

// useTool adds a story or a note, or completes a story that is done, until ctx ends.
func (s *soak) useTool(ctx context.Context) {
	for ctx.Err() == nil {
		if out, err := backlog(s.dir, "task", "create", fmt.Sprint("Story ", s.made+1)); err != nil {
			s.t.Errorf("%v: %s", err, out)
			return
		}
		s.made++
		id, note := fmt.Sprint("TASK-", 1+rand.N(s.made)), fmt.Sprintf("note %d of the tool", s.made)
		if _, err := backlog(s.dir, "task", "edit", id, "--append-notes", note); err == nil { // it may be completed, or locked by us
			s.notes[id] = append(s.notes[id], note)
		}
		for _, path := range s.files("tasks") {
			if done, _ := os.ReadFile(path); strings.Contains(string(done), "\nstatus: Done\n") && rand.N(3) == 0 {
				id, _, _ := strings.Cut(filepath.Base(path), " ")
				if _, err := backlog(s.dir, "task", "complete", id); err == nil {
					s.completed++
				}
				break
			}
		}
		pause(ctx, 500*time.Millisecond)
	}
}

// colour is the answer to a question about a story.
func colour(id string) string { return "blue-" + id }

// attend answers questions and unblocks stories until ctx ends.
func (s *soak) attend(ctx context.Context) {
	for ; ctx.Err() == nil; pause(ctx, 300*time.Millisecond) {
		for _, q := range s.questions() {
			status, err := call(ctx, "POST", s.gateway.url+"/api/gateway/questions/"+q.ID+"/answer", "", map[string]string{"value": colour(q.StoryID)}, nil)
			if err == nil && status == http.StatusOK {
				s.answered++
			}
		}
		for _, item := range s.items() {
			if item.Blocked == "" {
				continue
			}
			if item.Blocked != "needs a key" {
				s.t.Errorf("%s is blocked: %s", item.StoryID, item.Blocked)
			}
			address := s.gateway.url + "/api/gateway/projects/alpha/stories/" + item.StoryID
			var story struct{ Version string }
			if status, err := call(ctx, "GET", address, "", nil, &story); err != nil || status != http.StatusOK {
				continue
			}
			status, err := call(ctx, "PATCH", address, "", map[string]any{"version": story.Version, "blocked": nil}, nil)
			if err == nil && status == http.StatusOK {
				s.unblocked++
			}
		}
	}
}

type soakQuestion struct {
	ID      string
	StoryID string `json:"story_id"`
}

// questions returns those that are open, none while the gateway is down.
func (s *soak) questions() []soakQuestion {
	var open struct{ Questions []soakQuestion }
	_, _ = call(s.t.Context(), "GET", s.gateway.url+"/api/gateway/questions", "", nil, &open)
	return open.Questions
}

type soakItem struct {
	StoryID string `json:"story_id"`
	Blocked string
	Claim   *struct{ By string }
	stage   string
}

// items returns the stories of the board, none while the gateway is down.
func (s *soak) items() (all []soakItem) {
	var board struct {
		Projects map[string]struct {
			Stages []struct {
				Name  string
				Items []soakItem
			}
		}
	}
	_, _ = call(s.t.Context(), "GET", s.gateway.url+"/api/gateway/pipeline", "", nil, &board)
	for _, stage := range board.Projects["alpha"].Stages {
		for _, item := range stage.Items {
			item.stage = stage.Name
			all = append(all, item)
		}
	}
	return all
}

// rests reports whether all stories are done and nobody claims one.
func (s *soak) rests() bool {
	done := 0
	for _, item := range s.items() {
		if item.Claim == nil && (strings.HasSuffix(item.stage, "_done") || strings.HasSuffix(item.stage, "_completed")) {
			done++
		}
	}
	return done == s.made && len(s.questions()) == 0
}

// disturb kills and puts to sleep until ctx ends, more often in a short soak.
func (s *soak) disturb(ctx context.Context, length time.Duration) {
	between := min(20*time.Second, length/12)
	for n := 0; ctx.Err() == nil; n++ {
		pause(ctx, between/2+rand.N(between))
		away := time.Second + rand.N(min(10*time.Second, length/15))
		if n%20 == 19 && length > 10*time.Minute {
			away = 90 * time.Second // a laptop that was shut
		}
		a := s.agents[rand.N(soakers)]
		switch n % 6 {
		case 0, 3:
			a.kill()
			pause(ctx, away)
			a.start()
		case 1, 4:
			killed := []*server{s.gateway, s.project}[n%6/3]
			killed.kill()
			pause(ctx, away)
			killed.start()
		case 2:
			a.sleep(ctx, away)
		case 5:
			frozen := []*server{s.gateway, s.project}[n/6%2]
			signal(frozen.current.Process.Pid, stopSignal)
			pause(ctx, away)
			signal(frozen.current.Process.Pid, wakeSignal)
		}
		if n%3 == 2 {
			s.sleeps++
		} else {
			s.kills++
		}
	}
}

// check holds what the agents say and what the files have to what was made.
func (s *soak) check() {
	for _, item := range s.items() {
		if item.Claim != nil {
			s.t.Errorf("%s is still claimed by %s in %s", item.StoryID, item.Claim.By, item.stage)
		}
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(s.dir), "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	by, ended, asked, again := map[string]string{}, map[string]time.Time{}, 0, 0
	for line := range strings.Lines(string(text)) {
		said := append(strings.Fields(line), "") // what, story, agent, when, the answer
		id, agent := said[1], said[2]
		if by[id] = cmp.Or(by[id], agent); by[id] != agent {
			s.t.Errorf("%s was worked on by %s and by %s", id, by[id], agent)
		}
		if said[0] != "ended" {
			continue
		}
		ms, _ := strconv.ParseInt(said[3], 10, 64)
		if before, twice := ended[id]; twice {
			again++
			killed := slices.IndexFunc(s.agents, func(a *soaker) bool { return a.id == agent && a.wasAway(before) })
			if killed < 0 {
				s.t.Errorf("%s was done twice, and its agent was not killed when it was done first", id)
			}
		}
		ended[id] = time.UnixMilli(ms)
		if n, _ := strconv.Atoi(strings.TrimPrefix(id, "TASK-")); n%5 == 0 {
			if asked++; said[4] != colour(id) {
				s.t.Errorf("%s was done with the answer %q", id, said[4])
			}
		}
	}
	files := append(s.files("tasks"), s.files("completed")...)
	if len(ended) != s.made || len(files) != s.made {
		s.t.Errorf("of %d stories %d were done, and %d are there", s.made, len(ended), len(files))
	}
	notes := 0
	for _, path := range files {
		content, _ := os.ReadFile(path)
		id, _, _ := strings.Cut(filepath.Base(path), " ")
		for _, note := range s.notes[strings.ToUpper(id)] {
			if notes++; strings.Count(string(content), note) != 1 {
				s.t.Errorf("%s is lost in %s", note, path)
			}
		}
	}
	s.t.Logf("%d stories done by %d agents beside %d kills and %d sleeps; the tool made them, completed %d and added %d notes; %d questions "+
		"answered, %d stories unblocked; %d done again after a kill", len(ended), soakers, s.kills, s.sleeps, s.completed, notes, s.answered, s.unblocked, again)
	if asked == 0 || notes == 0 || s.unblocked == 0 || s.completed == 0 {
		s.t.Error("nobody asked, was blocked, added notes or completed a story")
	}
}
