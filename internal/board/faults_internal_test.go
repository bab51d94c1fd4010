package board

import (
	"strings"
	"testing"

	"switchyard/internal/domain"
	"switchyard/internal/waittest"
)

// TestWhatCannotBeReadIsAFault: at a start at once, and on a running board its stories stay as they were.
func TestWhatCannotBeReadIsAFault(t *testing.T) {
	t.Parallel()
	b := openCase(t, domain.LayoutBacklog, "title-with-a-colon")
	const window, path = "2_to_do: task-1 (Shop window) 1/2\n", "backlog/tasks/task-1 - Window.md"
	const till = "3_in_progress: task-2 (Mend the till) 1/2"
	b.until(till)
	told := func() bool {
		faults := b.View().Faults
		return len(faults) == 1 && faults[0].Kind == domain.FaultUnreadable && faults[0].Path == path && strings.HasPrefix(faults[0].Text, path+" cannot be read: yaml")
	}
	if !told() {
		t.Errorf("%+v", b.View().Faults)
	}
	broken := b.content(path)
	b.write(path, strings.Replace(broken, "window: cakes to the left", "window", 1))
	b.until(window + till)
	waittest.Until(t, "the fault to end", func() bool { return len(b.View().Faults) == 0 })
	b.write(path, strings.Replace(broken, "To Do", "Done", 1))
	waittest.Until(t, "the fault", told)
	d, err := b.Read("task-1")
	if b.shows() != window+till || err != nil || d.Fault == "" || d.ReadOnly == "" || d.Path != path || d.Stage != "2_to_do" {
		t.Errorf("%s, %+v, %v", b.shows(), d, err)
	}
	done := "4_done"
	if err := b.change("task-1", Change{Stage: &done}); domain.CodeOf(err) != domain.Conflict || !strings.Contains(err.Error(), "yaml") {
		t.Error(err)
	}
	b.write(path, strings.NewReplacer("window: cakes to the left", "window", "To Do", "Done").Replace(broken))
	waittest.Until(t, "the move", func() bool { return b.moved() == "task-1 2_to_do 4_done" })
	if len(b.View().Faults) > 0 || b.View().Stages[1].Stories != nil && len(b.View().Stages[1].Stories) > 0 {
		t.Errorf("%+v", b.View())
	}
}

// unreadableFiles are good and bad files of each layout.
var unreadableFiles = map[string]struct{ layout, path, good, bad, id, why string }{
	"a merge":           {domain.LayoutTaskMaster, taskMasterFile, `{"tasks": [{"id": 1, "title": "A"}]}`, "{\"tasks\": [\n<<<<<<< HEAD\n{\"id\": 1}]}", "1", "not JSON"},
	"a merge in a task": {domain.LayoutTaskMaster, taskMasterFile, `{"tasks": [{"id": 1, "title": "A"}]}`, "{\"tasks\": [{\n<<<<<<< HEAD\n\"id\": 1}]}", "1", "not JSON"},
	"beside the tasks": {
		domain.LayoutTaskMaster, taskMasterFile, `{"master": {"tasks": [{"id": 1, "title": "A"}]}}`,
		"{\"master\": {\"tasks\": [{\"id\": 1, \"title\": \"A\"}], \"metadata\": {\n<<<<<<< HEAD\n\"a\": 1}}}", "1", "not JSON",
	},
	"two values":       {domain.LayoutTaskMaster, taskMasterFile, `{"tasks": [{"id": 1, "title": "A"}]}`, `{"tasks": [{"id": 1}]} {}`, "1", "not JSON"},
	"a list":           {domain.LayoutBMAD, "docs/sprint-status.yaml", "development_status:\n  1-a: done\n", "development_status:\n- 1-a\n", "1-a", "is not a mapping"},
	"a key twice":      {domain.LayoutBMAD, "docs/sprint-status.yaml", "development_status:\n  1-a: done\n", "development_status:\n  1-a: done\n  1-a: review\n", "1-a", "twice"},
	"no end":           {domain.LayoutBacklog, "backlog/tasks/1.md", "---\nid: 1-a\nstatus: Done\n---\n", "---\nid: 1-a\nstatus: Done\n", "1-a", "not closed"},
	"markers above":    {domain.LayoutBacklog, "backlog/tasks/1.md", "---\nid: 1-a\nstatus: Done\n---\n", "<<<<<<< HEAD\n---\nid: 1-a\n---\n", "1-a", "merge"},
	"too large":        {domain.LayoutOpenSpec, "openspec/changes/1-a/tasks.md", "- [ ] a\n", strings.Repeat("- [ ] a\n", 1<<18), "1-a", "larger than 1 MiB"},
	"too large a text": {domain.LayoutOpenSpec, "openspec/changes/1-a/proposal.md", "# A\n", "# B\n" + strings.Repeat("x", 1<<20), "1-a", "larger than 1 MiB"},
	"of stages":        {domain.LayoutStages, "1_todo/1-a.md", "---\nname: A\n---\n", "---\nname: A: B\n---\n", "1-a", "yaml"},
	"large of stages":  {domain.LayoutStages, "1_todo/1-a.md", "# A\n", "# B\n" + strings.Repeat("x", 1<<20), "1-a", "larger than 1 MiB"},
}

// TestNothingThatCannotBeReadVanishes, whatever the layout.
func TestNothingThatCannotBeReadVanishes(t *testing.T) {
	for name, test := range unreadableFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{test.path: test.good}
			if test.layout == domain.LayoutBacklog {
				files["backlog/config.yml"] = ""
			}
			check := func(when string, b *layoutBoard) {
				t.Helper()
				waittest.Until(t, "the fault "+when, func() bool { return len(b.View().Faults) == 1 })
				f := b.View().Faults[0]
				if f.Path != test.path || !strings.HasPrefix(f.Text, f.Path+" cannot be read: ") || !strings.Contains(f.Text, test.why) || f.Since.IsZero() {
					t.Errorf("%s: %+v", when, f)
				}
			}
			b := openLayout(t, test.layout, files)
			shown := b.shows()
			b.write(test.path+".new", test.bad)
			b.rename(test.path+".new", test.path)
			check("of a running board", b)
			story, _, _ := b.View().Find(test.id)
			d, err := b.Read(test.id)
			if b.shows() != shown || !strings.Contains(story.Fault, test.why) || err != nil || d.Fault != story.Fault || d.ReadOnly == "" {
				t.Errorf("%s: %+v; %+v, %v", b.shows(), story, d, err)
			}
			if err := b.change(test.id, Change{Blocked: new("x")}); domain.CodeOf(err) != domain.Conflict || !strings.Contains(err.Error(), test.why) {
				t.Error(err)
			}
			b.write(test.path, test.good)
			waittest.Until(t, "the end of the fault", func() bool { return len(b.View().Faults) == 0 })
			if story, _, _ := b.View().Find(test.id); b.shows() != shown || story.Fault != "" || b.moved() != "" {
				t.Errorf("%s: %+v, %s", b.shows(), story, b.moved())
			}
			files[test.path] = test.bad
			check("of a start", openLayout(t, test.layout, files))
		})
	}
}

func TestAMergeLeftInTheOnlyFileIsAnEmptyBoardWithAFault(t *testing.T) {
	b := openCase(t, domain.LayoutTaskMaster, "merge-left-in-tasks-json")
	if faults := b.View().Faults; b.shows() != "" || len(faults) != 1 || faults[0].Path != taskMasterFile || faults[0].StoryID != "" {
		t.Errorf("%s, %+v", b.shows(), faults)
	}
}
