package board

import (
	"strings"
	"testing"
	"unicode/utf16"

	"switchyard/internal/domain"
)

// utf16LE returns a text as some editors of Windows write it.
func utf16LE(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b.WriteByte(byte(unit))
		b.WriteByte(byte(unit >> 8))
	}
	return b.String()
}

// TestTextsInOtherEncodingsAreReadAndNotWritten, but for a mark before UTF-8, which stays.
func TestTextsInOtherEncodingsAreReadAndNotWritten(t *testing.T) {
	const task = "---\nid: task-1\ntitle: Mend the till\nstatus: To Do\n---\n## Acceptance Criteria\n- [ ] one\n"
	const change, boxes = "# Change: Mend the till\n", "- [ ] one\n- [x] two\n"
	const tags = `{"tasks": [{"id": "1", "title": "Mend the till"}]}`
	const statuses = "development_status:\n  1-till: backlog\n"
	done := Change{Task: &TaskChange{Line: 7, Done: true}}
	first := Change{Task: &TaskChange{Line: 1, Done: true}}
	to := func(stage string) Change { return Change{Stage: &stage} }
	for name, test := range map[string]struct {
		layout, path, text string
		id, title          string
		change             Change
		written            bool
	}{
		"UTF-16":        {domain.LayoutBacklog, "backlog/tasks/1.md", utf16LE(task), "task-1", "Mend the till", done, false},
		"no UTF-8":      {domain.LayoutBacklog, "backlog/tasks/1.md", strings.ReplaceAll(task, "Mend", "M\xe4nd"), "task-1", "M\ufffdnd the till", done, false},
		"a mark":        {domain.LayoutBacklog, "backlog/tasks/1.md", "\ufeff" + task, "task-1", "Mend the till", done, true},
		"JSON, a mark":  {domain.LayoutTaskMaster, taskMasterFile, "\ufeff" + tags, "1", "Mend the till", to("4_done"), true},
		"JSON, UTF-16":  {domain.LayoutTaskMaster, taskMasterFile, utf16LE(tags), "1", "Mend the till", to("4_done"), false},
		"boxes, a mark": {domain.LayoutOpenSpec, "openspec/changes/till/tasks.md", "\ufeff" + boxes, "till", "Till", first, true},
		"boxes, UTF-16": {domain.LayoutOpenSpec, "openspec/changes/till/tasks.md", utf16LE(boxes), "till", "Till", first, false},
		"a proposal":    {domain.LayoutOpenSpec, "openspec/changes/till/proposal.md", utf16LE(change), "till", "Mend the till", Change{}, true},
		"YAML, UTF-16":  {domain.LayoutBMAD, "docs/sprint-status.yaml", utf16LE(statuses), "1-till", "1 till", to("4_review"), false},
		"YAML, a mark":  {domain.LayoutBMAD, "docs/sprint-status.yaml", "\ufeff" + statuses, "1-till", "1 till", to("4_review"), true},
		"stages":        {domain.LayoutStages, "1_a/7_till.md", utf16LE("---\nname: Mend the till\n---\n"), "7_till", "Mend the till", to("2_b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{test.path: test.text}
			switch test.layout {
			case domain.LayoutBacklog:
				files["backlog/config.yml"] = "statuses: [To Do, Done]\n"
			case domain.LayoutStages:
				files["2_b/8_x.md"] = ""
			}
			b := openLayout(t, test.layout, files)
			d, err := b.Read(test.id)
			if err != nil || d.Name != test.title {
				t.Fatalf("%+v, %v", d, err)
			}
			err = b.change(test.id, test.change)
			after := b.content(test.path)
			if test.written && (err != nil || !strings.HasPrefix(after, test.text[:3])) {
				t.Errorf("%q, %v", after, err)
			}
			if !test.written && (domain.CodeOf(err) != domain.Conflict || after != test.text || d.ReadOnly == "") {
				t.Errorf("%q, %v", after, err)
			}
		})
	}
}

func TestATaskInUTF16IsShown(t *testing.T) {
	b := openCase(t, domain.LayoutBacklog, "utf-16")
	if got := b.shows(); got != "2_to_do: task-1 (Mend the till) 1/2" || len(b.View().Faults) > 0 {
		t.Error(got)
	}
}
