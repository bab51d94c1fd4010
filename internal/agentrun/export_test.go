package agentrun

import (
	"context"
	"io"
	"time"
)

// Group names a process group as the state file does.
type Group = processGroup

// GroupOf returns the name of the process group that a process leads.
func GroupOf(pid int) Group {
	started, _ := startOf(pid)
	return Group{PGID: pid, Started: started}
}

// GraceOf returns what ends when a command that is asked to stop now has had its time; ctx is the agent's.
func GraceOf(ctx context.Context) (grace context.Context, done func()) { return graceOf(ctx) }

// StopLeftover is what an agent does with the group in its state file.
func StopLeftover(g Group, agentID string) bool {
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return stopLeftover(grace, g, agentID)
}

// PrepareOnly starts a command up to where it waits to be recorded, and lets the agent die there. It returns when
// that has ended.
func PrepareOnly(argv []string) error {
	p, err := prepare(argv, nil, io.Discard)
	if err != nil {
		return err
	}
	p.release.Close()
	<-p.exited
	return nil
}

// Tail returns what is reported of an output.
func Tail(output ...string) string {
	var t tail
	for _, part := range output {
		_, _ = t.Write([]byte(part))
	}
	return t.String()
}
