package main

import (
	"os/exec"
	"testing"

	"switchyard/internal/pgtest"
	"switchyard/internal/waittest"
)

// engine is where a gateway stores its data: the address of a PostgreSQL database, "" for SQLite.
type engine string

// onEachEngine runs a test on SQLite and on PostgreSQL, both at the same time.
func onEachEngine(t *testing.T, test func(t *testing.T, on engine)) {
	t.Helper()
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, "")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, engine(pgtest.Database(t)))
	})
}

// start starts a gateway or switchyard up with the engine, and returns when it is ready.
func (e engine) start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.Env = append(cmd.Env, "SWITCHYARD_DATABASE="+string(e))
	p := start(t, cmd)
	if e != "" { // it serves before it has its database
		waittest.Until(t, "the gateway ready", func() bool {
			status, _ := p.do(t, "GET", "/readyz", "")
			return status == 200
		})
	}
	return p
}
