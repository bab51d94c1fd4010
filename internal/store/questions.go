package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"switchyard/internal/domain"
)

const questionColumns = "id, project, story_id, kind, prompt, detail, options, tool, tool_key, asker, agent_id," +
	" asked_by, asked_at_ms, expires_at_ms, state, value, text, answered_by, via, ended_at_ms"

// Texts of questions are returned as they came, but engines store no NUL.
var (
	escapeNUL   = strings.NewReplacer("\x00", "\ufffe0", "\ufffe", "\ufffe1")
	unescapeNUL = strings.NewReplacer("\ufffe0", "\x00", "\ufffe1", "\ufffe")
)

func withNUL(text string) string { return Text(escapeNUL.Replace(text)) }

func scanQuestion(row Row) (q domain.Question, err error) {
	var options, tool string
	var a domain.Answer
	err = row.Scan(&q.ID, &q.Project, &q.StoryID, &q.Kind, &q.Prompt, &q.Detail, &options, &tool, &q.ToolKey, &q.Asker,
		&q.AgentID, &q.By, (*Milli)(&q.AskedAt), (*Milli)(&q.Expires), &q.State, &a.Value, &a.Text, &a.By, &a.Via,
		(*Milli)(&q.Ended))
	if err != nil {
		return q, err
	}
	for _, text := range []*string{&q.Prompt, &q.Detail, &a.Value, &a.Text} {
		*text = unescapeNUL.Replace(*text)
	}
	if q.State == domain.QuestionAnswered {
		a.At = q.Ended
		q.Answer = &a
	}
	if tool != "" {
		q.Tool = &domain.ToolUse{}
		if err := json.Unmarshal([]byte(tool), q.Tool); err != nil {
			return q, err
		}
	}
	return q, json.Unmarshal([]byte(options), &q.Options)
}

// AddQuestion stores a question and returns it with its id. If the asker has asked for the same use of a tool already,
// and that is open, it returns that one. It returns RateLimited when the asker, or all together, have too many open.
func (db questions) AddQuestion(
	ctx context.Context, e *domain.AuditEntry, q domain.Question,
) (added domain.Question, err error) {
	tool := ""
	if q.Tool != nil {
		text, err := json.Marshal(q.Tool)
		if err != nil {
			return q, domain.Errorf(domain.Invalid, "the tool's input must be JSON")
		}
		tool = string(text)
	}
	same := false
	err = db.Tx(ctx, topics{domain.TopicQuestions}, func(ctx context.Context, tx *sql.Tx) error {
		if q.ToolKey != "" {
			err := Exec(ctx, tx, `UPDATE questions SET state = 'expired', ended_at_ms = expires_at_ms
				WHERE asker = $1 AND tool_key = $2 AND state = 'open' AND expires_at_ms <= $3`,
				q.Asker, q.ToolKey, q.AskedAt.UnixMilli())
			if err != nil {
				return err
			}
		}
		var all, own, ended int
		err := tx.QueryRowContext(ctx, `SELECT COUNT(CASE WHEN ended_at_ms = 0 AND expires_at_ms > $2 THEN 1 END),
			COUNT(CASE WHEN ended_at_ms = 0 AND expires_at_ms > $2 AND asker = $1 THEN 1 END),
			COUNT(CASE WHEN ended_at_ms > $3 AND asker = $1 THEN 1 END) FROM questions
			WHERE ended_at_ms = 0 OR ended_at_ms > $3`, q.Asker, q.AskedAt.UnixMilli(),
			q.AskedAt.Add(-time.Minute).UnixMilli()).Scan(&all, &own, &ended)
		if err != nil {
			return err
		}
		if q.ToolKey != "" {
			added, err = scanQuestion(tx.QueryRowContext(ctx, "SELECT "+questionColumns+
				" FROM questions WHERE asker = $1 AND tool_key = $2 AND state = 'open'", q.Asker, q.ToolKey))
			if same = err == nil; same || unlessMissing(err) != nil {
				return unlessMissing(err)
			}
		}
		switch {
		case own >= domain.MaxOpenQuestions:
			return domain.Errorf(domain.RateLimited,
				"you have %d open questions already; wait for answers, or withdraw some", own)
		case all >= domain.MaxAllOpenQuestions:
			return domain.Errorf(domain.RateLimited,
				"%d questions are open here already, which is all that may be; wait until some have ended", all)
		case ended >= domain.MaxEndedQuestions:
			return domain.Errorf(domain.RateLimited, "%d of your questions ended within a minute; ask more slowly", ended)
		}
		added = q
		err = tx.QueryRowContext(ctx, `INSERT INTO questions (project, story_id, kind, prompt, detail, options, tool,
			tool_key, asker, agent_id, asked_by, asked_at_ms, expires_at_ms, state, value, text, answered_by, via, ended_at_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'open', '', '', '', '', 0) RETURNING id`,
			q.Project, Text(q.StoryID), q.Kind, withNUL(q.Prompt), withNUL(q.Detail), Text(encoded(q.Options)), Text(tool),
			q.ToolKey, q.Asker, q.AgentID, Text(q.By), q.AskedAt.UnixMilli(), q.Expires.UnixMilli()).Scan(&added.ID)
		if err != nil {
			return err
		}
		return addAudit(e)(ctx, tx)
	})
	return added, err
}

func (db questions) Question(ctx context.Context, id int64) (domain.Question, error) {
	return selectOne(ctx, db.conn, scanQuestion, "SELECT "+questionColumns+" FROM questions WHERE id = $1", id)
}

// Questions returns the newest questions, newest first: those of a project, or all for ""; only open ones, or all.
func (db questions) Questions(
	ctx context.Context, project string, open bool, now time.Time, limit int,
) ([]domain.Question, error) {
	condition, args := "TRUE", []any{limit}
	if open {
		condition, args = "ended_at_ms = 0 AND expires_at_ms > $2", append(args, now.UnixMilli())
	}
	if project != "" { // by an index
		args = append(args, project)
		condition += fmt.Sprintf(" AND project = $%d", len(args))
	}
	return selectAll(ctx, db.conn, scanQuestion, "SELECT "+questionColumns+" FROM questions WHERE "+condition+
		" ORDER BY id DESC LIMIT $1", args...)
}

// AnsweredWithin returns the median of the time until questions were answered, of those answered after a time; 0 if
// none was.
func (db questions) AnsweredWithin(ctx context.Context, after time.Time) (time.Duration, error) {
	const answered = " FROM questions WHERE state = 'answered' AND ended_at_ms > $1"
	var ms int64
	err := db.engine.Read.QueryRowContext(ctx, "SELECT ended_at_ms - asked_at_ms"+answered+
		" ORDER BY 1 LIMIT 1 OFFSET (SELECT (COUNT(*) - 1) / 2"+answered+")", after.UnixMilli()).Scan(&ms)
	return time.Duration(ms) * time.Millisecond, db.Translate(unlessMissing(err))
}

// RecentQuestions returns the questions that are open or ended after a time, oldest first, with the beginnings of their
// prompts and answers, and without details, options and tools: there may be thousands.
func (db questions) RecentQuestions(ctx context.Context, ended time.Time) ([]domain.Question, error) {
	return selectAll(ctx, db.conn, scanQuestion, fmt.Sprintf(`SELECT id, project, story_id, kind, substr(prompt, 1, %[1]d),
		'', '[]', '', tool_key, asker, agent_id, asked_by, asked_at_ms, expires_at_ms, state, substr(value, 1, %[1]d), '',
		answered_by, via, ended_at_ms FROM questions WHERE ended_at_ms = 0 OR ended_at_ms > $1 ORDER BY id`,
		domain.MaxText), ended.UnixMilli())
}

// EndQuestion stores how a question ended. It returns NotFound if it is not open.
func (db questions) EndQuestion(ctx context.Context, e *domain.AuditEntry, q domain.Question) error {
	a := domain.Answer{}
	if q.Answer != nil {
		a = *q.Answer
	}
	condition, args := "", []any{
		q.ID, q.State, withNUL(a.Value), withNUL(a.Text), Text(a.By), a.Via, q.Ended.UnixMilli(),
	}
	if q.State != domain.QuestionExpired {
		condition = " AND expires_at_ms > $7"
	}
	return db.changeOne(ctx, e, topics{domain.TopicQuestions}, `UPDATE questions SET state = $2, value = $3, text = $4,
		answered_by = $5, via = $6, ended_at_ms = $7 WHERE id = $1 AND state = 'open'`+condition, args...)
}

// RemoveQuestions removes questions that ended before a time, and all but so many that ended last, under the leader's
// fencing token.
func (db questions) RemoveQuestions(ctx context.Context, token int64, before time.Time, keep int) error {
	return db.LeaderTx(ctx, token, nil, Do(`DELETE FROM questions WHERE ended_at_ms > 0 AND (ended_at_ms < $1 OR
		ended_at_ms < (SELECT ended_at_ms FROM questions WHERE ended_at_ms > 0 ORDER BY ended_at_ms DESC LIMIT 1 OFFSET $2))`,
		before.UnixMilli(), max(0, keep-1)))
}
