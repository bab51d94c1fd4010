package board

import (
	"regexp"
	"strings"
	"testing"

	"switchyard/internal/waittest"
)

const bmadStatus = "_bmad-output/implementation/sprint-status.yaml"

func bmadBoard() map[string]string {
	return map[string]string{
		bmadStatus: "# last_updated: kept\ngenerated: 05-06-2025 21:30\nlast_updated: 05-06-2025 21:30\nstory_location: \"{project-root}/docs/stories\"\n\n" +
			"development_status:\n  epic-1: in-progress\n  1-1-log-in: done # at last\n  '1-2-log-out': drafted\r\n  1-3-register:   backlog\n" +
			"  1-4-forget: on-hold\n  epic-1-retrospective: optional\n  epic-1a: done\naction_items:\n  - 1-3-register: open\n",
		"docs/stories/1-2-log-out.md":     "# Story 1.2: Log out\n\n## Tasks\n- [x] a\n- [ ] b\n",
		"docs/stories/other.md":           "# No story\n",
		"_bmad-output/epics.md":           "# Epics\n",
		"_bmad-output/other/1-3-x/no.yml": "",
	}
}

func TestBMADStoriesStandWhereTheStatusFileSays(t *testing.T) {
	files := bmadBoard()
	files[bmadStatus] = strings.Replace(files[bmadStatus], "on-hold", "On hold", 1)
	b := openLayout(t, "bmad", files)
	if d, err := b.Read("1-4-forget"); err != nil || d.Label != "On hold" {
		t.Errorf("not the board's own word: %+v, %v", d, err)
	}
	want := "1_backlog: 1-3-register (1 3 register)\n2_ready_for_dev: 1-2-log-out (Story 1.2: Log out) 1/2\n" +
		"5_done: 1-1-log-in (1 1 log in)\n6_on_hold: 1-4-forget (1 4 forget)"
	if b.shows() != want {
		t.Fatalf("got\n%s\nwant\n%s", b.shows(), want)
	}
	b.write(bmadStatus, "development_status:\n  1-1-log-in") // half written
	b.write(bmadStatus, strings.Replace(files[bmadStatus], "   backlog", " in-progress", 1))
	waittest.Until(t, "the move", func() bool { return b.moved() != "" })
	if b.moved() != "1-3-register 1_backlog 3_in_progress" {
		t.Errorf("moves: %s", b.moved())
	}
	b.write("docs/stories/1-3-register.md", "# Register\n- [x] a\n")
	waittest.Until(t, "the new text", func() bool { return strings.Contains(b.shows(), "1-3-register (Register) 1/1") })
}

// TestABMADStoryIsMovedOnItsLine, with the time of the change, and nothing else changes.
func TestABMADStoryIsMovedOnItsLine(t *testing.T) {
	b := openLayout(t, "bmad", bmadBoard())
	before := b.content(bmadStatus)
	review, done := "4_review", "5_done"
	if err := b.change("1-2-log-out", Change{Stage: &review}); err != nil {
		t.Fatal(err)
	}
	if err := b.change("1-3-register", Change{Stage: &done}); err != nil {
		t.Fatal(err)
	}
	date := regexp.MustCompile(`(?m)^last_updated: \d\d-\d\d-\d{4} \d\d:\d\d$`)
	want := strings.NewReplacer("drafted\r\n", "review\r\n", "   backlog", "   done").Replace(before)
	got := b.content(bmadStatus)
	if date.ReplaceAllString(got, "") != date.ReplaceAllString(want, "") || strings.Contains(got, "\nlast_updated: 05-06-2025") {
		t.Errorf("%q", got)
	}
	text := "docs/stories/1-2-log-out.md"
	if err := b.change("1-2-log-out", Change{Task: &TaskChange{Line: 5, Done: true}}); err != nil || !strings.Contains(b.content(text), "- [x] b") {
		t.Errorf("%v: %s", err, b.content(text))
	}
	if b.content(bmadStatus) != got {
		t.Error("a box changed the file with the statuses")
	}
	d, err := b.Read("1-2-log-out")
	if err != nil || d.Path != text || string(d.FrontMatter) != `{"status":"review"}` || d.Stage != review {
		t.Errorf("%+v, %v", d, err)
	}
	if err := b.change("1-2-log-out", Change{Stage: &done, Version: "x"}); err == nil {
		t.Error("a change of another version was made")
	}
}

// TestABMADStatusThatNoLineHasIsLeftAlone, and what makes the file invalid is never written.
func TestABMADStatusThatNoLineHasIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"in one line":  "development_status: {1-1-a: done, 1-2-b: backlog}\n",
		"over lines":   "development_status:\n  1-2-b: >\n    backlog\n",
		"with anchors": "development_status:\n  1-1-a: &x done\n  1-2-b: *x\n",
		"behind a key": "development_status:\n  ? 1-2-b\n  : backlog\n",
	} {
		b := openLayout(t, "bmad", map[string]string{"docs/sprint-status.yaml": content})
		review := "4_review"
		err := b.change("1-2-b", Change{Stage: &review})
		if name == "with anchors" { // the alias goes, the other stays
			content = strings.Replace(content, "*x", "review", 1)
		} else if err == nil || !strings.Contains(err.Error(), "by hand") {
			t.Errorf("%s: %v", name, err)
		}
		if got := b.content("docs/sprint-status.yaml"); got != content {
			t.Errorf("%s: %q", name, got)
		}
	}
}
