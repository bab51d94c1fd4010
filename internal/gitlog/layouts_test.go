package gitlog_test

import (
	"fmt"
	"strings"
	"testing"
)

// taskOf returns a task of Backlog.md.
func taskOf(id, status string) string {
	return fmt.Sprintf("---\nid: %s\ntitle: T\nstatus: %s\n---\n\n%s", id, status, strings.Repeat("text "+id+"\n", 20))
}

// TestMovesOfEachLayout are what commits did to boxes, statuses and folders. Those before the last 180 days are read where that
// limit is lifted.
func TestMovesOfEachLayout(t *testing.T) {
	for _, test := range []struct {
		layout    string
		do        func(p *project)
		all, want string
	}{
		{"openspec", func(p *project) {
			p.write("openspec/changes/a/proposal.md", "# A\n")
			p.did(400)
			p.write("openspec/changes/a/tasks.md", "- [ ] one\n- [ ] two\n")
			p.did(300)
			p.write("openspec/changes/a/tasks.md", "- [x] one\n- [ ] two\n")
			p.write("openspec/changes/b/tasks.md", "- [ ] one\n")
			p.write("openspec/changes/c/.openspec.yaml", "schema: spec-driven\n")
			p.did(30)
			p.write("openspec/changes/a/tasks.md", "- [x] one, said better\n- [ ] two\n")
			p.did(25)
			p.write("openspec/changes/a/tasks.md", "- [x] one\n- [x] two\n")
			p.did(20)
			p.git("mv", "openspec/changes/a", "openspec/changes/archive/2026-01-02-a")
			p.did(10)
			p.git("rm", "-rq", "openspec/changes/b")
			p.did(5)
			p.write("openspec/changes/c/proposal.md", "# C\n")
			p.did(4)
			p.git("mv", "openspec/changes/c", "openspec/changes/archive/c")
			p.did(3)
		}, "a →1_draft 400, a 1_draft→2_planned 300, ", "a 2_planned→3_doing 30, b →2_planned 30, c →1_draft 30, a 3_doing→4_done 20, a 4_done→5_archived 10, c 1_draft→5_archived 3"},
		{"spec-kit", func(p *project) {
			p.write("specs/001-a/spec.md", "# A\n")
			p.did(200)
			p.write("specs/001-a/plan.md", "plan\n")
			p.did(30)
			p.write("specs/001-a/tasks.md", "- [X] T001\n- [ ] T002\n")
			p.did(20)
		}, "001-a →1_draft 200, ", "001-a 1_draft→2_planned 30, 001-a 2_planned→3_doing 20"},
		{"kiro", func(p *project) {
			p.write(".kiro/specs/a/requirements.md", "# A\n")
			p.did(200)
			p.write(".kiro/specs/a/tasks.md", "- [-] 1. one\n- [ ]* 2. two\n")
			p.did(30)
			p.write(".kiro/specs/a/tasks.md", "- [x] 1. one\n- [ ]* 2. two\n")
			p.did(20)
		}, "a →1_draft 200, ", "a 1_draft→3_doing 30, a 3_doing→4_done 20"},
		{"backlog.md", func(p *project) {
			p.write("backlog/config.yml", "statuses: [To Do, Doing, Done]\n")
			p.write("backlog/tasks/b-1 - old title.md", taskOf("B-1", "To Do"))
			p.did(200)
			p.write("backlog/tasks/b-1 - old title.md", taskOf("B-1", "doing"))
			p.did(40)
			p.git("mv", "backlog/tasks/b-1 - old title.md", "backlog/tasks/b-1 - new title.md")
			p.did(35)
			p.write("backlog/tasks/b-1 - new title.md", taskOf("B-1", "Won't Do"))
			p.did(30)
			p.write("backlog/tasks/b-1 - new title.md", taskOf("B-1", "Done"))
			p.did(20)
			p.git("mv", "backlog/tasks/b-1 - new title.md", "backlog/completed/b-1 - new title.md")
			p.did(10)
			p.write("backlog/tasks/b-2.md", taskOf("B-2", "Won't Do")) // so that there is such a column today
			p.did(5)
			p.write("backlog/archive/tasks/b-2 - of the same id.md", taskOf("B-2", "Done")) // the one in tasks counts
			p.did(3)
		}, "B-1 →2_to_do 200, ", "B-1 2_to_do→3_doing 40, B-1 3_doing→7_won_t_do 30, B-1 7_won_t_do→4_done 20, B-1 4_done→5_completed 10, B-2 →7_won_t_do 5"},
		{"task-master", func(p *project) {
			const tasks = ".taskmaster/tasks/tasks.json"
			p.write(tasks, `{"tasks": [{"id": 1, "status": "pending"}]}`) // as earlier versions of the tool have it
			p.did(200)
			p.write(tasks, `{"master": {"tasks": [{"id": 1, "status": "in-progress"}, {"id": 2, "status": "pending"}]}}`)
			p.did(40)
			p.write(tasks, `{"master": {"tasks": [{"id": 1, "status": "do`)
			p.did(35)
			p.write(tasks, `{"master": {"tasks": [{"id": 1, "status": "completed"}, {"id": 2, "status": "pending"}]}}`)
			p.did(30)
		}, "1 →1_pending 200, ", "1 1_pending→2_in_progress 40, 2 →1_pending 40, 1 2_in_progress→4_done 30"},
		{"bmad", func(p *project) {
			const status = "_bmad-output/artifacts/sprint-status.yaml"
			p.write(status, "development_status:\n  epic-1: backlog\n  1-1-a: drafted\n")
			p.did(200)
			p.write(status, "development_status:\n  epic-1: in-progress\n  1-1-a: in-progress\n  1-2-b: backlog\n")
			p.did(40)
			p.write("_bmad-output/artifacts/1-1-a.md", "# A\n")
			p.did(35)
			p.write(status, "development_status:\n  epic-1: in-progress\n  1-1-a: done # at last\n  1-2-b: backlog\n")
			p.did(30)
		}, "1-1-a →2_ready_for_dev 200, ", "1-1-a 2_ready_for_dev→3_in_progress 40, 1-2-b →1_backlog 40, 1-1-a 3_in_progress→5_done 30"},
	} {
		for want, days := range map[string]int{test.want: 180, test.all + test.want: 10_000} {
			t.Run(fmt.Sprint(test.layout, " ", days), func(t *testing.T) {
				p := newProject(t)
				p.write("openspec/changes/archive/.keep", "") // git mv makes no directories
				p.write("backlog/completed/.keep", "")
				test.do(p)
				p.onLayout(".", test.layout)
				p.log.SetDays(days)
				p.run()
				p.wantMoves(want)
			})
		}
	}
}

// TestWhatTheWorkTreeSaysIsNoMove until it is committed.
func TestWhatTheWorkTreeSaysIsNoMove(t *testing.T) {
	p := newProject(t)
	p.write("openspec/changes/a/tasks.md", "- [ ] one\n")
	p.did(30)
	p.write("openspec/changes/a/tasks.md", "- [x] one\n")
	p.onLayout(".", "openspec")
	p.run()
	p.wantMoves("a →2_planned 30")
	p.did(10)
	p.wantMoves("a →2_planned 30, a 2_planned→4_done 10")
}
