package gitlog_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// A clone's files are of now: of a story that no commit read has moved, git knows that it was there before.
func TestAStoryThatNoCommitHasMovedIsOld(t *testing.T) {
	begin := func(p *project) {
		p.write("work/1_backlog/7.md", "x")
		p.write("work/1_backlog/8.md", "x")
		p.did(300)
		p.mv("work/1_backlog/7.md", "work/2_current/7.md")
		p.did(250)
	}
	for _, test := range []struct {
		name string
		do   func(p *project)
		want string // days at least of 7 in 2_current, 8 in 1_backlog and 2_current
	}{
		{"before the window", func(p *project) {
			begin(p)
			p.write("work/1_backlog/9.md", "x")
			p.did(12)
		}, "180 180 0"},
		{"moved since", func(p *project) {
			begin(p)
			p.mv("work/1_backlog/8.md", "work/2_current/8.md")
			p.did(12)
		}, "180 0 0"},
		{"HEAD is older", begin, "250 250 0"},
		{"a shallow clone", func(p *project) {
			begin(p)
			p.write("other", "x")
			p.did(100)
			p.write("other", "y")
			p.did(50)
			p.write("other", "z")
			p.did(1)
			p.git("clone", "-q", "--depth", "2", "file://"+p.dir, "shallow")
			p.onBoard("shallow/work")
		}, "50 50 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newBoard(t)
			test.do(p)
			p.run()
			waittest.Until(t, "the history", func() bool { return p.log.Moves().Complete })
			days := func(story, stage string) int {
				if at := p.log.Moves().Since(story, stage); !at.IsZero() {
					return int(time.Since(at).Hours() / 24)
				}
				return 0
			}
			got := fmt.Sprint(days("7", "2_current"), days("8", "1_backlog"), days("8", "2_current"))
			if got != test.want {
				t.Errorf("%s days, want %s", got, test.want)
			}
		})
	}
}
