package agentrun

import (
	"context"
	"io"
	"log/slog"
	"time"
)

// Group identifies a process group as in the state file.
type Group = processGroup

// GroupOf returns the group of which a process is the leader.
func GroupOf(pid int) Group {
	started, _ := startOf(pid)
	return Group{PGID: pid, Started: started}
}

// Faster is how many times shorter the graces are in tests.
const Faster = 5

func init() { stopGrace, lastGrace = stopGrace/Faster, lastGrace/Faster }

// GraceOf exports graceOf.
func GraceOf(ctx context.Context) (grace context.Context, done func()) { return graceOf(ctx) }

// StopLeftover stops a group as an agent stops the one in its state file.
func StopLeftover(g Group, agentID string) bool {
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return stopLeftover(grace, g, agentID)
}

// PrepareOnly prepares a command and then acts as if the agent died before recording it. It returns when the process has
// ended.
func PrepareOnly(argv []string) error {
	p, err := prepare(slog.New(slog.DiscardHandler), argv, nil, io.Discard)
	if err != nil {
		return err
	}
	p.group.close()
	<-p.exited
	return nil
}

// Tail returns the reported part of an output.
func Tail(output ...string) string {
	var t tail
	for _, part := range output {
		_, _ = t.Write([]byte(part))
	}
	return t.String()
}
