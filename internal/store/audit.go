package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/fold"
)

// repeatTime is how long a repeated change is counted in the entry of the first.
const repeatTime = time.Minute

// addAudit stores an entry and sets its ID and Times. If it repeats one of the last minute it is counted there. One
// with an ID is already stored, and only its Detail is updated.
func addAudit(e *domain.AuditEntry) Step {
	return func(ctx context.Context, tx *sql.Tx) error {
		if e.ID != 0 {
			return Must("UPDATE audit SET detail = $2 WHERE id = $1", e.ID, e.Detail)(ctx, tx)
		}
		account := ""
		if e.Times > 0 {
			account = e.Account
			err := tx.QueryRowContext(ctx, `UPDATE audit SET times = times + 1 WHERE id = (SELECT max(id) FROM audit
				WHERE times > 0 AND account = $1 AND at_ms > $2 AND action = $3 AND who = $4 AND role = $5) RETURNING times`,
				account, e.At.Add(-repeatTime).UnixMilli(), e.Action, e.Who, e.Role).Scan(&e.Times)
			if !IsMissing(err) {
				return err
			}
		}
		return tx.QueryRowContext(ctx, insertAudit+" RETURNING id", auditArgs(*e, account)...).Scan(&e.ID)
	}
}

const insertAudit = `INSERT INTO audit (at_ms, who, via, role, action, subject, detail, request_id, account, times)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`

func auditArgs(e domain.AuditEntry, account string) []any {
	return []any{
		e.At.UnixMilli(), e.Who, string(e.Via), string(e.Role), string(e.Action), e.Subject, e.Detail, e.RequestID, account,
		e.Times,
	}
}

func (db audit) AddAudit(ctx context.Context, e domain.AuditEntry) error {
	return db.change(ctx, &e, nil)
}

// auditChunk is how many entries are read at once when searching for a text.
const auditChunk = 500

// AuditPage returns the first q.Limit entries that match q, newest first. It returns Unavailable when a search for a
// text takes too long.
func (db audit) AuditPage(ctx context.Context, q domain.AuditQuery) (page domain.AuditPage, err error) {
	if q.Before == 0 {
		q.Before = math.MaxInt64
	}
	text, chunk := fold.Text(q.Text), auditChunk
	in := db.search
	if text == "" {
		chunk = q.Limit + 1 // one more shows whether others follow
		in = db.Snapshot
	}
	err = in(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for read := chunk; read == chunk && !page.More; {
			read = 0
			err := eachAuditEntry(ctx, tx, q, chunk, func(e domain.AuditEntry) bool {
				read, q.Before = read+1, e.ID
				if !strings.Contains(fold.Text(e.Who+" "+e.Subject+" "+e.Detail), text) {
					return true
				}
				if page.More = len(page.Entries) == q.Limit; !page.More {
					page.Entries = append(page.Entries, e)
				}
				return !page.More
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return page, db.Translate(err)
}

// eachAuditEntry calls yield with the first limit entries that match q apart from its text, until yield returns false.
func eachAuditEntry(ctx context.Context, tx *sql.Tx, q domain.AuditQuery, limit int,
	yield func(domain.AuditEntry) bool,
) error {
	statement, args := "SELECT id, at_ms, who, via, role, action, subject, detail, request_id, times FROM audit WHERE "+
		"id < $1", []any{q.Before}
	where := func(wanted bool, condition string, value any) {
		if wanted {
			args = append(args, value)
			statement += fmt.Sprintf(" AND %s $%d", condition, len(args))
		}
	}
	where(q.Who != "", "who =", q.Who)
	where(q.Action != "", "action =", string(q.Action))
	where(q.From > 0, "at_ms >=", q.From)
	where(q.To > 0, "at_ms <", q.To)
	args = append(args, limit)
	return EachRow(ctx, tx, func(row Row) (e domain.AuditEntry, err error) {
		err = row.Scan(&e.ID, (*Milli)(&e.At), &e.Who, &e.Via, &e.Role, &e.Action, &e.Subject, &e.Detail, &e.RequestID,
			&e.Times)
		return e, err
	}, yield, fmt.Sprintf("%s ORDER BY id DESC LIMIT $%d", statement, len(args)), args...)
}

// AuditAuthors returns who made the newest entries, looking at that many, by name.
func (db audit) AuditAuthors(ctx context.Context, newest int) ([]string, error) {
	return selectAll(ctx, db.conn, ScanOne[string],
		"SELECT DISTINCT who FROM (SELECT who FROM audit ORDER BY id DESC LIMIT $1) AS newest ORDER BY who", newest)
}

// RemoveAuditBefore removes the oldest entries, at most limit: those made before then or, for changes that repeat,
// before repeated. It returns how many it removed.
func (db audit) RemoveAuditBefore(ctx context.Context, then, repeated time.Time, limit int) (removed int64, err error) {
	result, err := db.exec(ctx, nil, `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at_ms < $1
		UNION SELECT id FROM audit WHERE times > 0 AND at_ms < $2 ORDER BY 1 LIMIT $3)`,
		then.UnixMilli(), repeated.UnixMilli(), limit)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
