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
	" asked_by, asked_at_ms, expires_at_ms, state, value, text, answered_by, via, ended_at_ms, session, use_id, lasting," +
	" held_until_ms, reached, answers"

// Texts of questions are returned as they came, but engines store no NUL.
var (
	escapeNUL   = strings.NewReplacer("\x00", "\ufffe0", "\ufffe", "\ufffe1")
	unescapeNUL = strings.NewReplacer("\ufffe0", "\x00", "\ufffe1", "\ufffe")
)

func withNUL(text string) string { return Text(escapeNUL.Replace(text)) }

func scanQuestion(row Row) (q domain.Question, err error) {
	var options, tool, answers string
	var lasting int64
	var a domain.Answer
	err = row.Scan(&q.ID, &q.Project, &q.StoryID, &q.Kind, &q.Prompt, &q.Detail, &options, &tool, &q.Key, &q.Asker,
		&q.AgentID, &q.By, (*Milli)(&q.AskedAt), (*Milli)(&q.Expires), &q.State, &a.Value, &a.Text, &a.By, &a.Via,
		(*Milli)(&q.Ended), &q.Session, &q.UseID, &lasting, (*Milli)(&q.HeldUntil), &q.Reached,
		&answers)
	if err != nil {
		return q, err
	}
	q.Lasting = lasting != 0
	for _, text := range []*string{&q.Prompt, &q.Detail, &a.Value, &a.Text} {
		*text = unescapeNUL.Replace(*text)
	}
	if q.State == domain.QuestionAnswered {
		a.At = q.Ended
		q.Answer = &a
	}
	if answers != "" && q.Answer != nil {
		if err := json.Unmarshal([]byte(unescapeNUL.Replace(answers)), &a.Answers); err != nil {
			return q, err
		}
	}
	if tool != "" {
		q.Tool = &domain.ToolUse{}
		if err := json.Unmarshal([]byte(tool), q.Tool); err != nil {
			return q, err
		}
	}
	return q, json.Unmarshal([]byte(options), &q.Options)
}

// AddQuestion stores a question asked by a channel, and returns it with its id. One that has already been asked it
// returns instead, with Again set: while it is open or, once answered, if the answer has reached nobody, or has just
// reached somebody by another channel. It returns RateLimited if the asker, or all together, have too many open.
func (db questions) AddQuestion(
	ctx context.Context, e *domain.AuditEntry, q domain.Question, way string, most domain.QuestionLimits,
) (added domain.Question, err error) {
	tool := ""
	if q.Tool != nil {
		text, err := json.Marshal(q.Tool)
		if err != nil {
			return q, domain.Errorf(domain.Invalid, "the tool's input must be JSON")
		}
		tool = string(text)
	}
	// One at a time, on all gateways, so that none is asked twice and no limit is exceeded.
	alone := Do("INSERT INTO state (key, value) VALUES ('asking', '') ON CONFLICT (key) DO UPDATE SET value = ''")
	err = db.Tx(ctx, topics{domain.TopicQuestions}, alone, func(ctx context.Context, tx *sql.Tx) (err error) {
		if added, err = findOpenQuestion(ctx, tx, q, way); err == nil || !IsMissing(err) {
			return err
		}
		if err := mayAsk(ctx, tx, q, len(tool), most); err != nil {
			return err
		}
		added = q
		err = tx.QueryRowContext(ctx, `INSERT INTO questions (project, story_id, kind, prompt, detail, options, tool,
			tool_key, session, use_id, asker, agent_id, asked_by, asked_at_ms, expires_at_ms, lasting, held_until_ms,
			state, value, text, answered_by, via, ended_at_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, 'open', '', '', '', '', 0)
			RETURNING id`,
			q.Project, Text(q.StoryID), q.Kind, withNUL(q.Prompt), withNUL(q.Detail), Text(encoded(q.Options)), Text(tool),
			q.Key, Text(q.Session), Text(q.UseID), q.Asker, q.AgentID, Text(q.By), q.AskedAt.UnixMilli(),
			q.Expires.UnixMilli(), number(q.Lasting), ToMilli(q.HeldUntil)).Scan(&added.ID)
		if err != nil {
			return err
		}
		return addAudit(e)(ctx, tx)
	})
	return added, err
}

// findOpenQuestion returns the question that q repeats, and notes that. It returns sql.ErrNoRows if there is none.
func findOpenQuestion(
	ctx context.Context, tx *sql.Tx, q domain.Question, way string,
) (same domain.Question, err error) {
	const ofSession = " FROM questions WHERE asker = $1 AND (session = '' OR $2 = '' OR session = $2)"
	now := q.AskedAt.UnixMilli()
	same, err = scanQuestion(tx.QueryRowContext(ctx, "SELECT "+questionColumns+ofSession+` AND tool_key = $3
		AND (state = 'open' AND expires_at_ms > $4 OR state = 'answered' AND ended_at_ms > $5)
		ORDER BY ended_at_ms > 0, id DESC LIMIT 1`,
		q.Asker, q.Session, q.Key, now, q.AskedAt.Add(-domain.AnswerLife).UnixMilli()))
	if q.UseID != "" && (IsMissing(err) || err == nil && same.State != domain.QuestionOpen) {
		open, byID := scanQuestion(tx.QueryRowContext(ctx, "SELECT "+questionColumns+ofSession+` AND use_id = $3
			AND ended_at_ms = 0 AND expires_at_ms > $4`, q.Asker, q.Session, q.UseID, now))
		if byID == nil {
			same, err = open, nil
		} else if !IsMissing(byID) {
			return same, byID
		}
	}
	if err != nil {
		return same, err
	}
	same.Again = true
	if same.State == domain.QuestionOpen {
		same.Lasting, same.HeldUntil = same.Lasting || q.Lasting, domain.Later(same.HeldUntil, q.HeldUntil)
		return same, Exec(ctx, tx, `UPDATE questions SET lasting = $2, held_until_ms = $3,
			session = CASE WHEN session = '' THEN $4 ELSE session END,
			use_id = CASE WHEN use_id = '' THEN $5 ELSE use_id END WHERE id = $1`,
			same.ID, number(same.Lasting), ToMilli(same.HeldUntil), Text(q.Session), Text(q.UseID))
	}
	isSameUse := q.UseID != "" && q.UseID == same.UseID ||
		q.Tool != nil && q.AskedAt.Sub(same.AskedAt) <= domain.OtherWay
	if same.Reached != "" && (same.HasReached(way) || !isSameUse) {
		return same, sql.ErrNoRows
	}
	return same, Exec(ctx, tx, reachStatement, same.ID, way+" ")
}

// mayAsk returns RateLimited if the asker, or all together, have asked too much.
func mayAsk(ctx context.Context, tx *sql.Tx, q domain.Question, bytes int, most domain.QuestionLimits) error {
	var all, own, ended, inputs int
	err := tx.QueryRowContext(ctx, `SELECT
		(SELECT COUNT(*) FROM questions WHERE ended_at_ms = 0 AND expires_at_ms > $2),
		(SELECT COUNT(*) FROM questions WHERE asker = $1 AND ended_at_ms = 0 AND expires_at_ms > $2),
		(SELECT COUNT(*) FROM questions WHERE asker = $1 AND ended_at_ms > $3),
		(SELECT COALESCE(SUM(octet_length(tool)), 0) FROM questions WHERE asker = $1 AND ended_at_ms = 0)`,
		q.Asker, q.AskedAt.UnixMilli(), q.AskedAt.Add(-time.Minute).UnixMilli()).Scan(&all, &own, &ended, &inputs)
	switch {
	case err != nil:
		return err
	case own >= most.Own:
		return domain.Errorf(domain.RateLimited,
			"you have %d open questions already; wait for answers, or withdraw some", own)
	case all >= most.All:
		return domain.Errorf(domain.RateLimited,
			"%d questions are open here already, which is all that may be; wait until some have ended", all)
	case ended >= most.Ended:
		return domain.Errorf(domain.RateLimited, "%d of your questions ended within a minute; ask more slowly", ended)
	case inputs+bytes > most.Inputs:
		return domain.Errorf(domain.RateLimited,
			"your open questions are about %d MiB of inputs already; wait for answers", inputs>>20)
	}
	return nil
}

const reachStatement = "UPDATE questions SET reached = reached || $2 WHERE id = $1"

// ReachQuestion stores that a question's answer has reached whoever asked by a channel.
func (db questions) ReachQuestion(ctx context.Context, id int64, way string) error {
	_, err := db.exec(ctx, nil, reachStatement, id, way+" ")
	return err
}

// HoldQuestions stores a time until which open questions are held at least.
func (db questions) HoldQuestions(ctx context.Context, until time.Time, ids ...int64) error {
	_, err := db.exec(ctx, nil,
		"UPDATE questions SET held_until_ms = $1 WHERE ended_at_ms = 0 AND id IN ("+List(ids)+")", until.UnixMilli())
	return err
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
	if project != "" { // through an index
		args = append(args, project)
		condition += fmt.Sprintf(" AND project = $%d", len(args))
	}
	return selectAll(ctx, db.conn, scanQuestion, "SELECT "+questionColumns+" FROM questions WHERE "+condition+
		" ORDER BY id DESC LIMIT $1", args...)
}

// AnsweredWithin returns the median time to an answer for questions answered after a time; 0 if there are none.
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
		answered_by, via, ended_at_ms, session, use_id, lasting, held_until_ms, reached, ''
		FROM questions WHERE ended_at_ms = 0 OR ended_at_ms > $1 ORDER BY id`,
		domain.MaxText), ended.UnixMilli())
}

// EndQuestion stores how a question ended, and only the beginning of a long input: whoever asked has it. It returns
// NotFound if it is not open, or is held for longer than q says.
func (db questions) EndQuestion(ctx context.Context, e *domain.AuditEntry, q domain.Question) error {
	a := domain.Answer{}
	if q.Answer != nil {
		a = *q.Answer
	}
	answers := ""
	if a.Answers != nil {
		answers = withNUL(string(domain.EncodeJSON(a.Answers)))
	}
	condition, args := "", []any{
		q.ID, q.State, withNUL(a.Value), withNUL(a.Text), Text(a.By), a.Via, q.Ended.UnixMilli(), answers,
	}
	switch {
	case q.State == domain.QuestionWithdrawn && e == nil:
		condition, args = " AND held_until_ms <= $9", append(args, ToMilli(q.HeldUntil))
	case q.State != domain.QuestionExpired:
		condition = " AND expires_at_ms > $7"
	}
	tool := "tool"
	if short := q.Tool.Shorten(); short != q.Tool {
		args = append(args, string(domain.EncodeJSON(short)))
		tool = fmt.Sprintf("$%d", len(args))
	}
	return db.changeOne(ctx, e, topics{domain.TopicQuestions}, `UPDATE questions SET state = $2, value = $3, text = $4,
		answered_by = $5, via = $6, ended_at_ms = $7, answers = $8, tool = `+tool+`
		WHERE id = $1 AND state = 'open'`+condition, args...)
}

// RemoveQuestions removes questions that ended before a time, and all but the most recently ended ones, under the
// leader's fencing token.
func (db questions) RemoveQuestions(ctx context.Context, token int64, before time.Time, keep int) error {
	return db.LeaderTx(ctx, token, nil, Do(`DELETE FROM questions WHERE ended_at_ms > 0 AND (ended_at_ms < $1 OR
		ended_at_ms < (SELECT ended_at_ms FROM questions WHERE ended_at_ms > 0 ORDER BY ended_at_ms DESC LIMIT 1 OFFSET $2))`,
		before.UnixMilli(), max(0, keep-1)))
}
