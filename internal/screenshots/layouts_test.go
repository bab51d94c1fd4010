package screenshots_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/browsertest"
)

// repositorySample is a repository with a board in another layout than stages.
type repositorySample struct {
	commits []commitSample
}

// commitSample is a commit: what git fast-import is told to do.
type commitSample struct {
	at     time.Time
	change string
}

func (r *repositorySample) commit(hours float64, change string) {
	at := time.Now().Add(-time.Duration(hours * float64(time.Hour)))
	r.commits = append(r.commits, commitSample{at, change})
}

// write commits a file so many hours ago.
func (r *repositorySample) write(hours float64, name, text string) {
	r.commit(hours, fmt.Sprintf("M 644 inline %s\ndata %d\n%s\n", name, len(text), text))
}

// create makes the repository.
func (r *repositorySample) create(t testing.TB, dir string) string {
	t.Helper()
	slices.SortStableFunc(r.commits, func(a, b commitSample) int { return a.at.Compare(b.at) })
	var stream strings.Builder
	for _, c := range r.commits {
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 1\nx\n%s", c.at.Unix(), c.change)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main", dir}, {"-C", dir, "fast-import", "--quiet"}, {"-C", dir, "reset", "-q", "--hard"}} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+filepath.Dir(dir))
		if args[2] == "fast-import" {
			cmd.Stdin = strings.NewReader(stream.String())
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// boxes returns a list with so many boxes ticked.
func boxes(done, total int, prefix string) string {
	var b strings.Builder
	for i := range total {
		mark := " "
		if i < done {
			mark = "x"
		}
		fmt.Fprintf(&b, "- [%s] %s%d %s\n", mark, prefix, i+1, []string{"It is tested", "It is documented", "It fits a phone", "It works by keyboard"}[i%4])
	}
	return b.String()
}

// backlog fills a repository with a board of Backlog.md.
func (r *repositorySample) backlog() {
	r.write(700, "backlog/config.yml", "project_name: harbour-cli\nstatuses: [\"To Do\", \"In Progress\", \"In Review\", \"Done\"]\n")
	statuses := []string{"To Do", "In Progress", "In Review", "Done"}
	task := func(n, done, total int, status string) string {
		return fmt.Sprintf("---\nid: HARB-%d\ntitle: %s\nstatus: %s\nassignee: []\n---\n\n## Acceptance Criteria\n<!-- AC:BEGIN -->\n%s<!-- AC:END -->\n",
			400+n, subjects[n%len(subjects)], status, boxes(done, total, "#"))
	}
	for n, at := range []int{0, 1, 1, 2, 0, 3, 1, 3, 2, 3, 0, 3, 3, 0, 3, 3, 3, 0, 3, 3} {
		total, came := 3+n*5%7, 20*n%310+2
		if at == 1 || at == 2 {
			came = 4*n - 2
		}
		for i, status := range statuses[:at+1] {
			done := total * i / 3
			if i == at && at < 3 {
				done = total * (2*i + n%2) / 6
			}
			r.write(float64(came+(at-i)*(20+n*31%60)), fmt.Sprintf("backlog/tasks/harb-%d.md", 400+n), task(n, done, total, status))
		}
	}
	for n := range 26 {
		folder := []string{"completed", "completed", "completed", "drafts", "archive/tasks"}[n%5]
		text := strings.Replace(task(n, 0, 4, "Done"), fmt.Sprint(400+n), fmt.Sprint(300+n), 1)
		r.write(690, fmt.Sprintf("backlog/%s/harb-%d.md", folder, 300+n), text)
	}
	r.write(650, "backlog/tasks/harb-499.md", strings.Replace(task(3, 0, 4, "Won't Do"), "HARB-403", "HARB-499", 1))
}

// openSpec fills a repository with changes of OpenSpec.
func (r *repositorySample) openSpec() {
	for n, c := range []struct {
		id, title   string
		done, total int
		hours       float64
	}{
		{"add-global-install", "One place for what is installed for all", 0, 0, 120},
		{"add-devin-support", "Support for one more agent", 0, 12, 50},
		{"add-qa-smoke", "Smoke checks before a release", 0, 5, 8},
		{"add-dark-mode", "A theme for the night", 7, 8, 3},
		{"fix-local-dates", "Dates in the reader's zone", 9, 22, 26},
		{"add-init-target", "A target for init", 10, 10, 6},
	} {
		r.write(200+float64(n), "openspec/changes/"+c.id+"/proposal.md", "# Change: "+c.title+"\n\nWhy and what.\n")
		for done := 0; c.total > 0 && done <= c.done; done += max(1, c.done/2) {
			part := float64(c.done-done) / float64(max(1, c.done))
			r.write(c.hours+100*part, "openspec/changes/"+c.id+"/tasks.md", "## 1. Do\n\n"+boxes(done, c.total, "1."))
		}
		r.write(c.hours, "openspec/changes/"+c.id+"/tasks.md", "## 1. Do\n\n"+boxes(c.done, c.total, "1."))
	}
	for n := range 14 {
		id := fmt.Sprintf("add-%s", strings.ToLower(strings.Fields(subjects[n])[0])) + fmt.Sprint(n)
		hours := float64(20*n + 10)
		for done, before := range []float64{300, 60 + hours/4, 50, 40, 1} {
			r.write(hours+before, "openspec/changes/"+id+"/tasks.md", boxes(done, 4, "1."))
		}
		archived := time.Now().Add(-time.Duration(hours)*time.Hour).Format("2006-01-02-") + id
		r.commit(hours, "R openspec/changes/"+id+" openspec/changes/archive/"+archived+"\n")
	}
}

func TestScreenshotsOfLayouts(t *testing.T) {
	browsertest.Needed(t)
	dir := *out
	if dir == "" {
		dir = t.TempDir()
	}
	work := t.TempDir()
	var harbour, notes repositorySample
	harbour.backlog()
	notes.openSpec()
	y := &yardSample{TB: t}
	y.url = start(t, work, []string{
		harbour.create(t, filepath.Join(work, "harbour-cli")), notes.create(t, filepath.Join(work, "fieldnotes")),
	})
	y.post("/api/gateway/projects/harbour-cli/stories/claim", `{"story_id":"HARB-401"}`)
	tab := browsertest.Open(t)
	for _, p := range []struct {
		name, path, shows string
		height            int64
	}{
		{"backlog", "/projects/harbour-cli", "from git", 720},
		{"openspec", "/projects/fieldnotes", "from git", 476},
	} {
		tab.Size(1280, p.height)
		tab.Media("prefers-color-scheme", "light", "prefers-reduced-motion", "reduce")
		tab.Goto(y.url + p.path)
		tab.Wait(`document.querySelector('.branch')`)
		tab.WaitText(p.shows)
		path := filepath.Join(dir, p.name+".png")
		tab.Screenshot(path)
		if *out != "" {
			crop(t, path, 1280, p.height)
		}
	}
}
