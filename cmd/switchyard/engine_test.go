package main

import (
	"os/exec"
	"testing"

	"switchyard/internal/pgtest"
)

// engine is what a gateway keeps its data in: PostgreSQL at an address, or SQLite where that is "".
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

// database has a gateway or switchyard up keep its data in the engine.
func (e engine) database(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "SWITCHYARD_DATABASE="+string(e))
	return cmd
}
