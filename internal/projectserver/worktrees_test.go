package projectserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchyard/internal/board"
	"switchyard/internal/domain"
	"switchyard/internal/feed"
	"switchyard/internal/gittest"
	"switchyard/internal/waittest"
	"switchyard/internal/wire"
)

// shop is a project server of a repository with work trees beside its own.
type shop struct {
	*stories
	beside string // where they are
}

func newShop(t *testing.T, o board.Options) shop {
	t.Helper()
	s := newRepository(t)
	o.Dir, o.AllowWrites = s.dir, true
	s.openBoard(o)
	return s
}

// newRepository returns one that no server reads yet.
func newRepository(t *testing.T) shop {
	t.Helper()
	s := shop{&stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now), trees: true}, t.TempDir()}
	for _, stage := range []string{"1_backlog", "2_current", "3_qa", "4_done"} {
		s.write(stage+"/.keep", "")
	}
	for id := range 4 {
		s.write(fmt.Sprintf("1_backlog/%d_story.md", id), fmt.Sprintf("---\nname: Story %d\n---\n\n%d unlike the others %[1]d\n", id, id))
	}
	s.write("code", "a\nb\nc\n")
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("commit", "-qm", "board")
	return s
}

func (s shop) git(args ...string) string { s.t.Helper(); return gittest.Git(s.t, s.dir, args...) }

// in runs git in a work tree, which is made on a branch of that name if it is new.
func (s shop) in(tree string, args ...string) string {
	s.t.Helper()
	path := filepath.Join(s.beside, tree)
	if _, err := os.Stat(path); err != nil {
		s.git("worktree", "add", "-q", "-b", tree, path)
	}
	return gittest.Git(s.t, path, args...)
}

// item returns what the pipeline says of a story, and its stage.
func (s shop) item(id string) (item wire.Item, stage string) {
	s.t.Helper()
	_, answer, _ := s.ask("GET", "/api/pipeline", "")
	var pipeline wire.Pipeline
	if err := json.Unmarshal([]byte(answer), &pipeline); err != nil {
		s.t.Fatal(err)
	}
	found := 0
	for _, st := range pipeline.Stages {
		for _, it := range st.Items {
			if it.StoryID == id {
				item, stage = it, st.Name
				found++
			}
		}
	}
	if found > 1 {
		s.t.Fatalf("%s stands in %d places", id, found)
	}
	return item, stage
}

// stands waits until a story stands in a stage, in a work tree or on a branch.
func (s shop) stands(id, stage, worktree, branch string) {
	s.t.Helper()
	if worktree != "" {
		worktree = filepath.Join(s.beside, worktree)
	}
	waittest.Until(s.t, id+" in "+stage, func() bool {
		item, is := s.item(id)
		return is == stage && wire.Text(item.Worktree) == worktree && wire.Text(item.Branch) == branch
	})
}

func (s shop) events() (events []string) {
	s.t.Helper()
	_, answer, _ := s.ask("GET", "/api/events?since=0", "")
	var list []map[string]any
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		s.t.Fatal(err)
	}
	for _, e := range list {
		events = append(events, fmt.Sprintf("%v %v>%v", e["story_id"], e["from_stage"], e["to_stage"]))
	}
	return events
}

func (s shop) work(id string) []wire.Work { s.t.Helper(); return s.details(id).Work }

func (s shop) details(id string) (story wire.Story) {
	s.t.Helper()
	_, answer, _ := s.ask("GET", "/api/stories/"+id, "")
	if err := json.Unmarshal([]byte(answer), &story); err != nil {
		s.t.Fatal(err)
	}
	return story
}

// A story stands where it has moved to, from the moment that a tree moves it until long after its merge: each move is
// one event, whatever git does with it.
func TestAStoryStandsWhereItHasMovedTo(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("login", "status")
	s.in("pay", "status")
	waittest.Until(t, "both trees", func() bool {
		_, a, _ := s.ask("GET", "/api/pipeline", "")
		return strings.Contains(a, "/login") && strings.Contains(a, "/pay")
	})
	s.in("login", "mv", "1_backlog/1_story.md", "2_current/")
	s.stands("1_story", "2_current", "login", "login")
	s.in("login", "commit", "-qm", "begin")
	s.in("pay", "mv", "1_backlog/1_story.md", "3_qa/")
	s.stands("1_story", "3_qa", "pay", "pay")
	s.stands("2_story", "1_backlog", "", "main")
	for id, base := range map[string]string{"1_story": "1_backlog", "2_story": ""} {
		if story := s.details(id); wire.Text(story.BaseStage) != base {
			t.Errorf("DIR has %s in %q", id, wire.Text(story.BaseStage))
		}
	}
	s.in("pay", "commit", "-qam", "further")
	s.in("pay", "checkout", "-q", "--detach", "main") // is no move
	s.stands("1_story", "2_current", "login", "login")
	s.in("login", "mv", "2_current/1_story.md", "4_done/")
	s.stands("1_story", "4_done", "login", "login")
	s.in("login", "commit", "-qm", "done")
	s.git("merge", "-q", "--no-ff", "login")
	s.stands("1_story", "4_done", "", "main")
	s.git("worktree", "remove", filepath.Join(s.beside, "login"))
	s.git("mv", "1_backlog/3_story.md", "2_current/")
	s.stands("3_story", "2_current", "", "main")
	want := []string{"1_story 1_backlog>2_current", "1_story 2_current>3_qa", "1_story 2_current>4_done", "3_story 1_backlog>2_current"}
	if got := s.events(); !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Files of stories that have not moved in a tree are not read until somebody asks for them: here one has moved there once
// the base has had its move and not the one after that, and one is to be changed there.
func TestAStoryThatHasMovedByAMergeOfTheBaseHasItsText(t *testing.T) {
	s := newShop(t, board.Options{})
	lane := filepath.Join(s.beside, "lane")
	s.in("lane", "mv", "1_backlog/1_story.md", "2_current/")
	s.in("lane", "commit", "-qm", "begin")
	s.stands("1_story", "2_current", "lane", "lane")
	s.in("lane", "mv", "2_current/1_story.md", "1_backlog/")
	s.stands("1_story", "1_backlog", "", "main")
	s.put("lane", "1_backlog/1_story.md", "---\nname: Begun again\nblocked: a key\n---\n")
	s.put("lane", "1_backlog/2_story.md", "---\nname: [\n---\n")
	s.git("merge", "-q", "lane")
	s.stands("1_story", "1_backlog", "lane", "lane")
	if item, _ := s.item("1_story"); item.StoryName != "Begun again" || wire.Text(item.Blocked) != "a key" {
		t.Errorf("%+v", item)
	}
	status, answer, _ := s.ask("PATCH", "/api/stories/2_story",
		fmt.Sprintf(`{"version":%q,"stage":"2_current","worktree":%q}`, s.version("2_story"), lane))
	if status != 409 || !strings.Contains(answer, "cannot be read") {
		t.Errorf("a file that cannot be read is moved there: %d %s", status, answer)
	}
}

// What the base has taken over as one commit of its own is merged, and its move counts no more where the base goes on.
func TestASquashIsAMerge(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("lane", "mv", "1_backlog/1_story.md", "2_current/")
	s.put("lane", "code", "lane\n")
	s.in("lane", "commit", "-qam", "begin")
	s.stands("1_story", "2_current", "lane", "lane")
	s.git("merge", "-q", "--squash", "lane")
	s.git("commit", "-qm", "squashed")
	s.stands("1_story", "2_current", "", "main")
	waittest.Until(t, "the merge", func() bool { list := s.work("1_story"); return len(list) == 1 && list[0].Merged })
	if work := s.work("1_story")[0]; work.Ahead != 1 || work.Behind != 1 {
		t.Errorf("%+v", work)
	}
	s.git("mv", "2_current/1_story.md", "1_backlog/")
	s.stands("1_story", "1_backlog", "", "main")
}

// A branch that has merged the base is read to its end.
func TestABranchWithAMergeIsAsGitSays(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("third", "commit", "-q", "--allow-empty", "-m", "for 2_story")
	s.write("code", "main\n")
	s.git("commit", "-qam", "beside it")
	s.in("third", "merge", "-q", "--no-edit", "main")
	waittest.Until(t, "the merge", func() bool { list := s.work("2_story"); return len(list) == 1 && list[0].Ahead == 2 })
	work := s.work("2_story")[0]
	if at := fmt.Sprint(work.AtMS / 1000); work.Author != "Ada" || at != s.git("log", "-1", "--format=%ct", "third") || work.Link != "commit" {
		t.Errorf("%+v", work)
	}
}

// What is said of the work on a story is what git says.
func TestTheWorkOnAStoryIsAsGitSays(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("task-2_story", "mv", "1_backlog/2_story.md", "2_current/")
	tree := filepath.Join(s.beside, "task-2_story")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("code", "A\nb\nc\nd\n")
	s.in("task-2_story", "commit", "-qam", "some work")
	s.write("code", "main\nb\nc\n")
	s.git("commit", "-qam", "in the way")
	s.git("branch", "other", "main~1")
	s.in("third", "commit", "-q", "--allow-empty", "-m", "for 2_story")
	write("code", "A\nb\nc\nd\ne\n")
	write("new", "1\n")
	s.in("task-2_story", "mv", "2_current/2_story.md", "3_qa/")
	s.git("branch", "squashed", "third")
	waittest.Until(t, "two places", func() bool {
		list := s.work("2_story")
		return len(list) == 3 && list[0].Uncommitted == 3 && wire.Text(list[0].Stage) == "3_qa"
	})
	list := s.work("2_story")
	first := list[0]
	stood, _ := s.item("2_story")
	if clash, left := stood.Work.Clash, stood.Work.Unmerged; clash == nil || clash.Place != "task-2_story" || clash.SinceMS < first.AtMS ||
		clash.Count != 1 || !reflect.DeepEqual([]string(clash.Files), []string{"code"}) || left == nil || left.Ahead != first.Ahead {
		t.Errorf("clash %+v, unmerged %+v", clash, left)
	}
	if first.Link != "moved" || wire.Text(first.Worktree) != tree || wire.Text(first.Branch) != "task-2_story" ||
		first.Author != "Ada" || first.Merged || !reflect.DeepEqual([]string(first.Conflicts), []string{"code"}) {
		t.Errorf("%+v", first)
	}
	if second := list[1]; second.Link != "commit" || second.Ahead != 1 || len(second.Conflicts) != 0 || second.Conflicts == nil {
		t.Errorf("%+v", second)
	}
	if got, want := fmt.Sprintf("%d\t%d", first.Behind, first.Ahead), s.git("rev-list", "--left-right", "--count", "main...task-2_story"); got != want {
		t.Errorf("behind and ahead %q, git says %q", got, want)
	}
	files, added, removed := 0, 0, 0
	for line := range strings.Lines(s.in("task-2_story", "diff", "--numstat", s.git("merge-base", "main", "task-2_story"))) {
		var a, r int
		if n, _ := fmt.Sscanf(line, "%d\t%d\t", &a, &r); n == 2 {
			files, added, removed = files+1, added+a, removed+r
		}
	}
	if first.Files != files || first.Added != added || first.Removed != removed || files != 2 {
		t.Errorf("%+v, git says %d files, +%d -%d", first, files, added, removed)
	}
	item, _ := s.item("2_story")
	if item.Work == nil || *item.Work.Conflicts != 1 || item.Work.Added != added || item.Work.Places != 3 {
		t.Errorf("%+v", item.Work)
	}
}

// A change is written where the story stands, or where it is asked for, and DIR stays clean.
func TestAChangeIsWrittenWhereTheStoryStands(t *testing.T) {
	s := newShop(t, board.Options{CommitMoves: true})
	s.in("login", "mv", "1_backlog/1_story.md", "2_current/")
	s.stands("1_story", "2_current", "login", "login")
	s.in("login", "commit", "-qm", "begin")
	patch := func(id, body string) (int, string) {
		status, answer, _ := s.ask("PATCH", "/api/stories/"+id, fmt.Sprintf(`{"version":%q,%s}`, s.version(id), body))
		return status, answer
	}
	if status, answer := patch("1_story", `"stage":"3_qa"`); status != 200 || !strings.Contains(answer, `"worktree":"`+filepath.Join(s.beside, "login")) {
		t.Errorf("%d %s", status, answer)
	}
	if got := s.in("login", "log", "-1", "--format=%s"); got != "1_story: 2_current → 3_qa" {
		t.Errorf("committed %q", got)
	}
	if status, answer := patch("2_story", `"stage":"2_current","worktree":"`+filepath.Join(s.beside, "login")+`"`); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	s.stands("2_story", "2_current", "login", "login")
	if status, answer := patch("1_story", `"stage":"2_current","worktree":"`+s.dir+`"`); status != 409 || !strings.Contains(answer, "/login") {
		t.Errorf("a move that changes nothing on the board: %d %s", status, answer)
	}
	for _, refused := range []string{`"stage":"2_current","worktree":"/tmp"`, `"stage":""`, `"stage":"1_gone"`, `"stage":"1_gone","worktree":"` + s.dir + `"`} {
		if status, answer := patch("1_story", refused); status != 400 {
			t.Errorf("%s: %d %s", refused, status, answer)
		}
	}
	s.in("sparse", "rm", "-q", "3_qa/.keep") // git keeps no empty directories
	s.in("sparse", "commit", "-qm", "no empty stages")
	if status, answer := patch("3_story", `"stage":"3_qa","worktree":"`+filepath.Join(s.beside, "sparse")+`"`); status != 200 {
		t.Errorf("to a stage that has no directory there: %d %s", status, answer)
	}
	if got := s.in("sparse", "show", "--format=%s", "--name-status", "-M"); got != "3_story: 1_backlog → 3_qa\n\nR100\t1_backlog/3_story.md\t3_qa/3_story.md" {
		t.Errorf("committed %q", got)
	}
	s.stands("3_story", "3_qa", "sparse", "sparse")
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("DIR is not clean: %s", got)
	}
	s.in("login", "status")
	s.git("worktree", "remove", filepath.Join(s.beside, "login"))
	s.git("branch", "-m", "login", "story/1_story")
	s.stands("1_story", "3_qa", "", "story/1_story")
	if status, answer := patch("1_story", `"stage":"4_done"`); status != 409 || !strings.Contains(answer, "story/1_story") {
		t.Errorf("on a branch: %d %s", status, answer)
	}
	story := s.story("GET", "/api/stories/1_story", "")
	if story["writable"] != false || story["branch"] != "story/1_story" || !strings.Contains(story["body"].(string), "unlike") {
		t.Errorf("%v", story)
	}
}

// A board to which a link leads out of a work tree is not that tree's, whenever the link came.
func TestALinkOutOfAWorkTreeIsNotFollowed(t *testing.T) {
	s := shop{&stories{t: t, dir: t.TempDir(), feed: feed.New(time.Now), trees: true}, t.TempDir()}
	s.write("work/1_backlog/1_story.md", "# One\n")
	s.write("work/2_current/.keep", "")
	s.git("init", "-q", "-b", "main")
	s.git("add", ".")
	s.git("commit", "-qm", "board")
	link := func(tree string) {
		path := filepath.Join(s.beside, tree, "work")
		if err := os.Rename(path, path+"~"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(s.dir, "work"), path); err != nil {
			t.Fatal(err)
		}
	}
	s.in("early", "status")
	link("early")
	s.in("late", "status")
	s.openBoard(board.Options{Dir: filepath.Join(s.dir, "work"), AllowWrites: true})
	patch := func(tree string) int {
		status, _, _ := s.ask("PATCH", "/api/stories/1_story", fmt.Sprintf(`{"version":%q,"blocked":"a key","worktree":%q}`,
			s.version("1_story"), filepath.Join(s.beside, tree)))
		return status
	}
	if status := patch("late"); status != 200 {
		t.Errorf("before there is a link: %d", status)
	}
	link("late")
	for tree, want := range map[string]int{"early": 404, "late": 503} {
		if status := patch(tree); status != want {
			t.Errorf("%s: %d", tree, status)
		}
	}
	if got := s.git("status", "--porcelain"); got != "" {
		t.Errorf("DIR has %s", got)
	}
	// A stage directory that a tree lacks is not made behind a link either.
	s.in("moved", "mv", "work/1_backlog/1_story.md", "work/2_current/")
	s.stands("1_story", "2_current", "moved", "moved")
	outside, version, path := t.TempDir(), s.version("1_story"), filepath.Join(s.beside, "moved", "work")
	if err := errors.Join(os.Rename(path, path+"~"), os.Symlink(outside, path)); err != nil {
		t.Fatal(err)
	}
	s.ask("PATCH", "/api/stories/1_story", fmt.Sprintf(`{"version":%q,"stage":"1_backlog"}`, version))
	if made, err := os.ReadDir(outside); len(made) > 0 || err != nil {
		t.Errorf("behind a link there are %v, %v", made, err)
	}
}

// What was merged is known to be a story's after a restart, too, whatever linked it before.
func TestWhatWasMergedIsKnownAfterARestart(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("first", "commit", "-q", "--allow-empty", "-m", "for 1_story")
	s.in("second", "mv", "1_backlog/2_story.md", "2_current/")
	s.in("second", "commit", "-qm", "begin")
	s.in("third", "status")
	s.git("merge", "-q", "--no-ff", "first")
	s.git("merge", "-q", "--no-ff", "second")
	s.openBoard(board.Options{Dir: s.dir})
	for _, id := range []string{"1_story", "2_story"} {
		waittest.Until(t, id, func() bool { list := s.work(id); return len(list) == 1 && list[0].Merged && list[0].Link == "commit" })
	}
	if list := s.work("3_story"); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	s.in("second", "-c", "sequence.editor=echo break >", "rebase", "-qi", "main~2")
	waittest.Until(t, "a rebase", func() bool { list := s.work("2_story"); return len(list) == 1 && list[0].Branch == nil })
	if list := s.work("2_story"); list[0].Merged {
		t.Errorf("a tree in which a rebase is under way: %+v", list)
	}
}

// A story that is sent back to where it waits is still what its place is for, until that is merged and goes on to
// something else.
func TestAPlaceIsAStorysAfterItHasMovedBack(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("lane", "mv", "1_backlog/1_story.md", "2_current/")
	s.in("lane", "commit", "-qm", "begin")
	s.stands("1_story", "2_current", "lane", "lane")
	link := func(id string) func() bool {
		return func() bool { list := s.work(id); return len(list) == 1 && list[0].Link == "moved" }
	}
	waittest.Until(t, "the link", link("1_story"))
	s.story("PATCH", "/api/stories/1_story", fmt.Sprintf(`{"version":%q,"stage":"1_backlog"}`, s.version("1_story")))
	s.stands("1_story", "1_backlog", "", "main")
	s.in("lane", "add", ".")
	s.in("lane", "commit", "-qm", "sent back")
	head := s.in("lane", "rev-parse", "HEAD")
	waittest.Until(t, "the commit", func() bool { return link("1_story")() && s.work("1_story")[0].Head == head })
	if work := s.work("1_story")[0]; work.Ahead != 2 || wire.Text(work.Stage) != "1_backlog" {
		t.Errorf("%+v", work)
	}
	s.git("merge", "-q", "lane")
	waittest.Until(t, "the merge", func() bool { list := s.work("1_story"); return len(list) == 1 && list[0].Ahead == 0 })
	s.in("lane", "mv", "1_backlog/2_story.md", "2_current/")
	s.in("lane", "commit", "-qm", "next")
	waittest.Until(t, "the next one", func() bool { return link("2_story")() && len(s.work("1_story")) == 0 })
}

// A tree in which a bisect is under way stays as it was, with the story's object as its card, until that is over.
func TestATreeStaysAsItWasDuringABisect(t *testing.T) {
	s := newShop(t, board.Options{})
	s.in("login", "mv", "1_backlog/1_story.md", "2_current/")
	s.in("login", "commit", "-qm", "begin")
	s.in("login", "commit", "-q", "--allow-empty", "-m", "more")
	s.stands("1_story", "2_current", "login", "login")
	was := s.details("1_story")
	s.in("login", "bisect", "start")
	s.in("login", "bisect", "bad")
	s.in("login", "bisect", "good", "main")
	s.in("login", "checkout", "-q", "main~0")
	waittest.Until(t, "a detached HEAD", func() bool { list := s.work("1_story"); return len(list) == 1 && list[0].Branch == nil })
	now := s.details("1_story")
	if wire.Text(now.Stage) != "2_current" || wire.Text(now.Worktree) != wire.Text(was.Worktree) || wire.Text(now.Version) != wire.Text(was.Version) ||
		now.Writable || wire.Text(now.Body) != "" {
		t.Errorf("%+v", now)
	}
	if item, stage := s.item("1_story"); stage != "2_current" || wire.Text(item.Worktree) != wire.Text(was.Worktree) {
		t.Errorf("%s %+v", stage, item)
	}
	status, answer, _ := s.ask("PATCH", "/api/stories/1_story", fmt.Sprintf(`{"version":%q,"stage":"3_qa"}`, s.version("1_story")))
	if status != 409 || !strings.Contains(answer, "bisect") {
		t.Errorf("%d %s", status, answer)
	}
	s.in("login", "bisect", "reset")
	waittest.Until(t, "its text", func() bool { return wire.Text(s.details("1_story").Body) == wire.Text(was.Body) })
	if events := s.events(); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

// A review of a commit holds for what only moves of ours have made of it, and for nothing that pretends to be one.
func TestMovesOfOursCarryAReviewOn(t *testing.T) {
	s := newShop(t, board.Options{CommitMoves: true})
	s.in("story/1_story", "mv", "1_backlog/1_story.md", "2_current/")
	s.in("story/1_story", "commit", "-qm", "work")
	head := s.in("story/1_story", "rev-parse", "HEAD")
	s.stands("1_story", "2_current", "story/1_story", "story/1_story")
	for _, stage := range []string{"3_qa", "4_done"} {
		s.story("PATCH", "/api/stories/1_story", fmt.Sprintf(`{"version":%q,"stage":%q}`, s.version("1_story"), stage))
	}
	place := func() *domain.Place { return domain.PlaceWith(wire.Works(s.work("1_story")).Places(), head) }
	moved := s.in("story/1_story", "rev-parse", "HEAD")
	waittest.Until(t, "the moves", func() bool { p := place(); return p != nil && p.Head == moved })
	s.put("story/1_story", "code", "other\n")
	s.in("story/1_story", "-c", "user.name=switchyard", "-c", "user.email=switchyard@localhost", "commit", "-qam", "1_story: 4_done → 3_qa")
	waittest.Until(t, "other work", func() bool { return place() == nil })
}
