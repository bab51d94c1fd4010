//go:build unix

package agentrun_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/agentrun"
	"switchyard/internal/waittest"
)

// TestADaemonDoesNotHoldTheAgentUp: a process that left the group keeps the command's output open.
func TestADaemonDoesNotHoldTheAgentUp(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	stop := run(t, g, filepath.Join(dir, "state"), "sh", "-c", `setsid sh -c 'echo $$ >> "$0"; exec sleep 1000' "$0" & while ! test -s "$0"; do sleep 0.01; done`, work)
	t.Cleanup(func() {
		for _, pid := range pids(work) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	g.assign("alpha")
	g.said(t, "the end is reported", func(b beat) bool { return b.Detail == "exit status 0" })
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestACommandThatIgnoresSIGTERMIsKilledAfterTenSeconds(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	work := filepath.Join(dir, "work")
	run(t, g, filepath.Join(dir, "state"), "sh", "-c", `trap '' TERM; echo $$ >> "$0"; while :; do sleep 1; done`, work)
	g.assign("alpha")
	waittest.Until(t, "the command runs", func() bool { return len(pids(work)) == 1 })
	began := time.Now()
	g.assign("")
	waittest.Until(t, "the command is killed", func() bool { return !runs(pids(work)[0]) })
	if took := time.Since(began); took < 9*time.Second/agentrun.Faster {
		t.Errorf("killed after %v, want %v", took, 10*time.Second/agentrun.Faster)
	}
}

// TestAnAgentThatEndsHasLessPatience: its own process has only ten seconds.
func TestAnAgentThatEndsHasLessPatience(t *testing.T) {
	t.Parallel()
	for name, unassigned := range map[string]bool{"while the command runs": false, "while it is being stopped": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, dir := newFakeGateway(t), t.TempDir()
			work, told := filepath.Join(dir, "work"), filepath.Join(dir, "told")
			stop := run(t, g, filepath.Join(dir, "state"), "sh", "-c",
				`trap 'echo 1 > "$1"' TERM; echo $$ >> "$0"; while :; do sleep 0.1; done`, work, told)
			g.assign("alpha")
			waittest.Until(t, "the command runs", func() bool { return len(pids(work)) == 1 })
			least := 6 * time.Second / agentrun.Faster
			if unassigned {
				asked := time.Now()
				g.assign("")
				waittest.Until(t, "the command is told", func() bool { return len(pids(told)) == 1 })
				least = min(least, 9*time.Second/agentrun.Faster-time.Since(asked)) // it has ten in all
			}
			began := time.Now()
			err := stop()
			if took := time.Since(began); err != nil || took < least || runs(pids(work)[0]) {
				t.Errorf("it ended after %v: %v; the command runs: %v", took, err, runs(pids(work)[0]))
			}
			if beats := g.seen(); beats[len(beats)-1].State != "stopped" {
				t.Errorf("the last heartbeat is %+v", beats[len(beats)-1])
			}
		})
	}
}

func TestHowLongACommandMayTakeToStop(t *testing.T) {
	for name, c := range map[string]struct {
		ends time.Duration // of the agent, after its command was asked to stop
		want time.Duration
	}{
		"the agent goes on":   {time.Hour, 10 * time.Second},
		"the agent ends too":  {0, 7 * time.Second},
		"the agent ends soon": {time.Second, 8 * time.Second},
		"the agent ends late": {9 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, end := context.WithTimeout(t.Context(), c.ends/agentrun.Faster)
				defer end()
				grace, done := agentrun.GraceOf(ctx)
				defer done()
				<-grace.Done()
				if took := time.Since(began) * agentrun.Faster; took != c.want {
					t.Errorf("it may take %v, want %v", took, c.want)
				}
			})
		})
	}
}

func TestStoppedIsSaidAtTheEnd(t *testing.T) {
	t.Parallel()
	g, dir := newFakeGateway(t), t.TempDir()
	stop := run(t, g, filepath.Join(dir, "state"))
	g.said(t, "it is there", func(b beat) bool { return b.State == "idle" })
	if err := stop(); err != nil {
		t.Error(err)
	}
	if beats := g.seen(); beats[len(beats)-1].State != "stopped" || beats[len(beats)-1].wait != "" {
		t.Errorf("the last heartbeat is %+v", beats[len(beats)-1])
	}
	run(t, g, filepath.Join(dir, "state"))
	before := len(g.seen())
	waittest.Until(t, "it is back", func() bool { return len(g.seen()) > before })
	if g.joins != 1 {
		t.Errorf("joined %d times, want once", g.joins)
	}
}
