package postgres

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// HoldStream runs fn in a transaction that holds the stream's lock.
func (db *DB) HoldStream(fn func()) error {
	return pgx.BeginFunc(context.Background(), db.leader, func(tx pgx.Tx) error {
		if _, err := tx.Exec(context.Background(), "SELECT last_id FROM stream FOR UPDATE"); err != nil {
			return err
		}
		fn()
		return nil
	})
}

// Statement is a recorded statement.
type Statement struct {
	SQL  string
	Args []any
}

// Recorder records statements, each once.
type Recorder struct {
	mu         sync.Mutex
	Statements map[string]Statement
}

// OpenRecorded opens a database that notes its statements.
func OpenRecorded(t *testing.T, url string) (*DB, *Recorder) {
	t.Helper()
	r := &Recorder{Statements: map[string]Statement{}}
	db, err := open(t.Context(), url, r.record)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db, r
}

func (r *Recorder) record(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(args) > 0 {
		if _, ok := args[0].(pgx.QueryExecMode); ok {
			args = args[1:]
			continue
		}
		if _, ok := args[0].(pgx.QueryResultFormats); ok {
			args = args[1:]
			continue
		}
		break
	}
	r.Statements[strings.TrimSpace(sql)] = Statement{sql, args}
}
