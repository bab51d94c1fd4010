package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"switchyard/internal/domain"
)

// spanMilli is the length of the spans of usage_spans, in milliseconds.
const spanMilli = 15 * 60 * 1000

// sumsOf returns the destinations for scanning a row of sums.
func sumsOf(c *domain.CostSum) []any {
	return []any{
		&c.USD, &c.Tokens.Input, &c.Tokens.CacheRead, &c.Tokens.CacheCreation, &c.Tokens.Output, &c.Calls, &c.Unpriced,
	}
}

// orNone returns money in its stored form.
func orNone(m *domain.Micros) int64 {
	if m == nil {
		return -1
	}
	return int64(*m)
}

// AddCalls stores the calls that have never been stored, each once, and returns them. Their digests outlive them.
func (db usage) AddCalls(ctx context.Context, calls []domain.Call) (added []domain.Call, err error) {
	byDigest, digests := map[int64]domain.Call{}, [][]any(nil)
	for _, c := range calls {
		digest := digestOf(c.Key)
		if _, twice := byDigest[digest]; twice {
			continue
		}
		c.StoryID, c.Client = Key(c.StoryID), Text(c.Client)
		c.Model, c.Session = Text(c.Model), Text(c.Session)
		byDigest[digest], digests = c, append(digests, []any{digest})
	}
	// In one order, so that no two gateways wait for each other.
	slices.SortFunc(digests, func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) })
	err = db.Tx(ctx, topics{domain.TopicUsage}, func(ctx context.Context, tx *sql.Tx) error {
		fresh, err := AllRows(ctx, tx, ScanOne[int64], db.sql.freshDigests, jsonText(digests))
		if err != nil || len(fresh) == 0 {
			return err
		}
		var rows [][]any
		for _, digest := range fresh {
			c := byDigest[digest]
			added, rows = append(added, c), append(rows, []any{
				c.Key, c.At.UnixMilli(), c.Project, c.StoryID, c.Holder, c.By, c.AgentID, c.Client, c.Session, c.Model,
				c.Tokens.Input, c.Tokens.CacheRead, c.Tokens.CacheCreation, c.Tokens.Output, orNone(c.Stated), orNone(c.Cost),
			})
		}
		sent := jsonText(rows)
		return All(Do(db.sql.addCalls, sent), Do(db.sql.addSums, sent), Do(db.sql.addSpans, sent),
			Do(db.sql.addSessions, sent))(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// StoryCosts returns what every story costs, and for each project the total of calls without a story.
func (db usage) StoryCosts(ctx context.Context) ([]domain.Spending, error) {
	return selectAll(ctx, db.conn, scanSpent,
		"SELECT project, story_id, CAST(SUM(usd) AS BIGINT), 0 FROM usage_sums GROUP BY project, story_id")
}

// StoryModels returns what a story costs by model, and in how many sessions it was worked on.
func (db usage) StoryModels(
	ctx context.Context, project, id string,
) (models []domain.CostShare, sessions int, err error) {
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		models, err = AllRows(ctx, tx, func(row Row) (c domain.CostShare, err error) {
			return c, row.Scan(append([]any{&c.Name, (*Milli)(&c.First), (*Milli)(&c.Last)}, sumsOf(&c.CostSum)...)...)
		}, "SELECT model, first_ms, last_ms, "+sumColumns+" FROM usage_sums WHERE project = $1 AND story_id = $2",
			project, Key(id))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM usage_sessions WHERE project = $1 AND story_id = $2",
			project, Key(id)).Scan(&sessions)
	})
	return models, sessions, db.Translate(err)
}

// EachCost calls yield with sums of calls by a sender in a session to a model for a story. Their Span is the one that
// ends at times[Span+1]. Without projects all calls count.
func (db usage) EachCost(
	ctx context.Context, times []time.Time, projects []string, yield func(domain.CallSum),
) error {
	spans := domain.Map(times, func(at time.Time) int64 { return at.UnixMilli() / spanMilli })
	ofSpans, arguments := db.ofSpans(times[0], times[len(times)-1], projects)
	err := db.search(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return Each(ctx, tx, func(row Row) error {
			var c domain.CallSum
			var span int64
			to := append([]any{
				&span, &c.Project, &c.ID, &c.Holder, &c.By, &c.AgentID, &c.Client, &c.Session, &c.Model, (*Milli)(&c.Last),
			}, sumsOf(&c.CostSum)...)
			if err := row.Scan(to...); err != nil {
				return err
			}
			c.Span, _ = slices.BinarySearch(spans[1:], span+1)
			yield(c)
			return nil
		}, `SELECT span, project, story_id, holder, by_whom, agent_id, client, session, model, last_ms, `+sumColumns+ofSpans,
			arguments...)
	})
	return db.Translate(err)
}

// CostBetween returns what calls of projects, or all calls without projects, cost between two times; 0 if none are kept
// from before.
func (db usage) CostBetween(
	ctx context.Context, from, to time.Time, projects []string,
) (usd domain.Micros, err error) {
	ofSpans, arguments := db.ofSpans(from, to, projects)
	err = db.search(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT CAST(CASE WHEN (SELECT MIN(span) FROM usage_spans) <= $1
			THEN COALESCE(SUM(usd), 0) ELSE 0 END AS BIGINT)`+ofSpans, arguments...).Scan(&usd)
	})
	return usd, db.Translate(err)
}

// ofSpans ends a query for the spans of projects, or of all without any, between two times, with these arguments.
func (db usage) ofSpans(from, to time.Time, projects []string) (query string, arguments []any) {
	query = " FROM usage_spans WHERE span >= $1 AND span < $2"
	arguments = []any{from.UnixMilli() / spanMilli, to.UnixMilli() / spanMilli}
	if len(projects) > 0 {
		names := domain.Map(projects, func(name string) []any { return []any{name} })
		query, arguments = query+db.sql.ofProjects, append(arguments, jsonText(names))
	}
	return query, arguments
}

// CostsSince returns the time from which sums of calls are kept, and the prices that they were computed with.
func (db usage) CostsSince(ctx context.Context) (oldest time.Time, prices string, err error) {
	var span int64
	err = db.engine.Read.QueryRowContext(ctx, `SELECT COALESCE((SELECT MIN(span) FROM usage_spans), 0),
		COALESCE((SELECT value FROM state WHERE key = $1), '')`, pricesKey).Scan(&span, &prices)
	return time.UnixMilli(span * spanMilli), prices, db.Translate(err)
}

// StoriesOver returns what the stories over a limit cost, and when they exceeded it.
func (db usage) StoriesOver(ctx context.Context, limit domain.Micros) ([]domain.Spending, error) {
	return selectAll(ctx, db.conn, scanSpent, `WITH dear AS (
		SELECT project, story_id, CAST(SUM(usd) AS BIGINT) AS usd, MAX(last_ms) AS last_ms FROM usage_sums
		WHERE story_id <> '' GROUP BY project, story_id HAVING SUM(usd) > $1)
		SELECT project, story_id, usd, COALESCE((SELECT MIN(at_ms) FROM (SELECT at_ms,
			SUM(CASE WHEN cost < 0 THEN 0 ELSE cost END) OVER (ORDER BY at_ms, key) AS total FROM usage_calls
			WHERE usage_calls.project = dear.project AND usage_calls.story_id = dear.story_id) AS sums
			WHERE total > $1), last_ms) FROM dear`, int64(limit))
}

// SpentBetween returns what each project's calls between two times cost, and when that exceeded a limit.
func (db usage) SpentBetween(ctx context.Context, from, to time.Time, limit domain.Micros) ([]domain.Spending, error) {
	return selectAll(ctx, db.conn, scanSpent, `SELECT project, '', CAST(MAX(total) AS BIGINT),
		COALESCE(MIN(CASE WHEN total > $3 THEN at_ms END), 0) FROM (SELECT project, at_ms,
			SUM(CASE WHEN cost < 0 THEN 0 ELSE cost END) OVER (PARTITION BY project ORDER BY at_ms, key) AS total
			FROM usage_calls WHERE at_ms >= $1 AND at_ms < $2) AS sums GROUP BY project`,
		from.UnixMilli(), to.UnixMilli(), int64(limit))
}

func scanSpent(row Row) (s domain.Spending, err error) {
	return s, row.Scan(&s.Project, &s.ID, &s.USD, (*Milli)(&s.Passed))
}

// RemoveCalls removes calls made before the span that contains a time, at most limit, under the leader's fencing token,
// and returns how many. The sums of stories keep them, at their current prices.
func (db usage) RemoveCalls(ctx context.Context, token int64, before time.Time, limit int) (removed int, err error) {
	err = db.LeaderTx(ctx, token, nil, func(ctx context.Context, tx *sql.Tx) error {
		span := before.UnixMilli() / spanMilli
		result, err := tx.ExecContext(ctx, `DELETE FROM usage_calls WHERE key IN
			(SELECT key FROM usage_calls WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)`, span*spanMilli, limit)
		if err != nil {
			return err
		}
		n, _ := result.RowsAffected() // both engines know
		removed = int(n)
		return Exec(ctx, tx, "DELETE FROM usage_spans WHERE span < $1", span)
	})
	return removed, err
}

// moneyOfCalls are the cost of rows of usage_calls, and how many of them have no price.
const moneyOfCalls = `CAST(SUM(CASE WHEN cost < 0 THEN 0 ELSE cost END) AS BIGINT) AS usd,
				CAST(SUM(CASE WHEN cost < 0 THEN 1 ELSE 0 END) AS BIGINT) AS unpriced`

// pricesKey has the prices with which what is stored was computed.
const pricesKey = "prices"

// Reprice recomputes the costs of all calls that are kept with these prices, unless that has been done.
func (db usage) Reprice(ctx context.Context, prices map[string]domain.Price) error {
	var rows [][]any
	for model, p := range prices {
		rows = append(rows, []any{model, p.Input, p.CacheRead, p.CacheCreation, p.Output})
	}
	slices.SortFunc(rows, func(a, b []any) int { return cmp.Compare(a[0].(string), b[0].(string)) })
	text := jsonText(rows)
	known, err := state(db).State(ctx, pricesKey)
	if err != nil || known == text || known == "" && len(rows) == 0 {
		return err
	}
	// What the kept calls contribute to the sums is subtracted, and then added again.
	add := func(sign string) Step {
		return Do(`UPDATE usage_sums SET usd = usage_sums.usd ` + sign + ` kept.usd,
			unpriced = usage_sums.unpriced ` + sign + ` kept.unpriced FROM (SELECT project, story_id, model,
				` + moneyOfCalls + ` FROM usage_calls WHERE stated < 0 GROUP BY project, story_id, model) AS kept
			WHERE kept.project = usage_sums.project AND kept.story_id = usage_sums.story_id AND kept.model = usage_sums.model`)
	}
	// The row with the prices is changed first, so that one gateway at a time does this.
	return db.Tx(ctx, topics{domain.TopicUsage},
		Do(PutState, pricesKey, text), add("-"), Do(db.sql.reprice, text), add("+"),
		Do(`UPDATE usage_spans SET usd = kept.usd, unpriced = kept.unpriced FROM (
				SELECT at_ms / `+strconv.Itoa(spanMilli)+` AS span, project, story_id, holder, client, session, model,
				`+moneyOfCalls+` FROM usage_calls GROUP BY 1, project, story_id, holder, client, session, model) AS kept
			WHERE (kept.span, kept.project, kept.story_id, kept.holder, kept.client, kept.session, kept.model) =
				(usage_spans.span, usage_spans.project, usage_spans.story_id, usage_spans.holder, usage_spans.client,
				usage_spans.session, usage_spans.model)`))
}
