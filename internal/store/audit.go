package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// addAudit stores the audit entry of the change that tx makes, where ctx has one.
func addAudit(ctx context.Context, tx *sql.Tx) error {
	e, audited := domain.AuditOf(ctx)
	if !audited {
		return nil
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO audit (at_ms, who, via, role, action, subject, detail, request_id)"+
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		e.At.UnixMilli(), e.Who, e.Via, e.Role, e.Action, e.Subject, e.Detail, e.RequestID)
	return err
}

// execAudited executes a statement that writes, with the audit entry of its change: both or neither. What changes no row is no
// change.
func (db *Tables) execAudited(ctx context.Context, about topics, statement string, args ...any) (result sql.Result, err error) {
	err = db.Tx(ctx, about, func(tx *sql.Tx) error {
		if result, err = tx.ExecContext(ctx, statement, args...); err != nil {
			return err
		}
		return changed(result)
	})
	if domain.CodeOf(err) == domain.NotFound {
		return result, nil
	}
	return result, err
}

// AddAudit stores the entry of a change that was made elsewhere.
func (db *Tables) AddAudit(ctx context.Context, e domain.AuditEntry) error {
	return db.Tx(domain.WithAudit(ctx, e), nil, func(*sql.Tx) error { return nil })
}

// AuditPage returns the entries that q asks for, the newest first.
func (db *Tables) AuditPage(ctx context.Context, q domain.AuditQuery) (page domain.AuditPage, err error) {
	if q.Before == 0 {
		q.Before = math.MaxInt64
	}
	conditions, args := []string{"id < $1"}, []any{q.Before}
	where := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, fmt.Sprintf(condition, len(args)))
	}
	if q.Who != "" {
		where("who = $%d", q.Who)
	}
	if q.Action != "" {
		where("action = $%d", q.Action)
	}
	if q.Text != "" {
		where(`lower(who || ' ' || subject || ' ' || detail) LIKE $%d ESCAPE '\'`, Pattern(strings.ToLower(q.Text)))
	}
	args = append(args, q.Limit+1) // one more tells whether others follow
	rows, err := db.engine.Read.QueryContext(ctx, fmt.Sprintf("SELECT id, at_ms, who, via, role, action, subject, detail, request_id FROM audit"+
		" WHERE %s ORDER BY id DESC LIMIT $%d", strings.Join(conditions, " AND "), len(args)), args...)
	if err != nil {
		return page, db.Translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var e domain.AuditEntry
		if err := rows.Scan(&e.ID, (*Milli)(&e.At), &e.Who, &e.Via, &e.Role, &e.Action, &e.Subject, &e.Detail, &e.RequestID); err != nil {
			return page, db.Translate(err)
		}
		page.Entries = append(page.Entries, e)
	}
	if page.More = len(page.Entries) > q.Limit; page.More {
		page.Entries = page.Entries[:q.Limit]
	}
	return page, db.Translate(rows.Err())
}

// RemoveAuditBefore removes the oldest entries of those from before then, at most limit, and returns how many.
func (db *Tables) RemoveAuditBefore(ctx context.Context, then time.Time, limit int) (removed int64, err error) {
	result, err := db.exec(ctx, nil, "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)", then.UnixMilli(), limit)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Pattern is what LIKE takes, with the backslash as its ESCAPE, for a text that is anywhere in another.
func Pattern(text string) string { return "%" + likeEscaper.Replace(text) + "%" }
