package store

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"switchyard/internal/domain"
)

type projectPast struct {
	project string
	domain.Past
}

func scanPast(row Row) (p projectPast, err error) {
	var latest string
	err = row.Scan(&p.project, &p.ID, (*Milli)(&p.Since), (*Milli)(&p.Live), &latest)
	return p, cmp.Or(err, json.Unmarshal([]byte(latest), &p.Latest))
}

// Past returns what was read of a project's history, the zero Past if nothing was.
func (db visits) Past(ctx context.Context, project string) (past domain.Past, err error) {
	p, err := scanPast(db.engine.Read.QueryRowContext(ctx, db.sql.pasts, jsonText([][]any{{project}})))
	return p.Past, db.Translate(unlessMissing(err))
}

// SavePast stores what was read of a project's history, once its moves are stored. Live stays what it was; at first it
// is the time of the stream's first move, or else now.
func (db visits) SavePast(ctx context.Context, token int64, project string, p domain.Past, now time.Time) error {
	var first int64
	err := db.engine.Read.QueryRowContext(ctx, `SELECT
		COALESCE(MIN(CASE WHEN from_ms > 0 THEN from_ms ELSE to_ms END), $2)
		FROM stage_visits WHERE project = $1 AND source = ''`, project, now.UnixMilli()).Scan(&first)
	if err != nil {
		return db.Translate(err)
	}
	latest, err := json.Marshal(p.Latest)
	if err != nil {
		return err
	}
	args := []any{Text(project), Text(p.ID), ToMilli(p.Since), min(first, now.UnixMilli()), string(latest)}
	return db.LeaderTx(ctx, token, topics{domain.TopicVisits}, Do(db.sql.savePast, args...))
}

// GitStories returns the ids of a project's stories with visits that are known from git.
func (db visits) GitStories(ctx context.Context, project string) ([]string, error) {
	return selectAll(ctx, db.conn, ScanOne[string], `SELECT story_id FROM stories WHERE id IN (
		SELECT story FROM stage_visits WHERE project = $1 AND source = $2)`, project, string(domain.FromGit))
}

// MergeMoves merges stories' moves in git (none for stories that git no longer knows) into their visits, in one
// transaction. It returns how many visits have changed, and ErrNotLeader once another gateway has taken over.
func (db visits) MergeMoves(
	ctx context.Context, token int64, project string, moves map[string][]domain.Move,
) (changed int, err error) {
	var keys []domain.StoryKey
	for _, id := range slices.Sorted(maps.Keys(moves)) {
		keys = append(keys, domain.StoryKey{Project: project, ID: id})
	}
	var read visitRead
	statements := read.statements(db.sql, db.sql.mergeable, keys)
	err = db.lead(ctx, token, statements, func() (write []Statement, _ topics, err error) {
		counts := domain.VisitCounts{Project: project}
		for _, c := range read.counts {
			counts = c
		}
		stages, stored := len(counts.Stages), map[string][]domain.Visit{}
		for _, v := range read.newest {
			stored[v.StoryID] = append(stored[v.StoryID], v)
		}
		var dropped, names [][]any
		var saved []domain.Visit
		for _, key := range keys {
			merged := counts.MergeMoves(key, stored[key.ID], moves[key.ID])
			for _, v := range stored[key.ID] {
				if !slices.ContainsFunc(merged, func(m domain.Visit) bool { return m.Number == v.Number }) {
					dropped = append(dropped, []any{project, v.StoryID, v.Number})
				}
			}
			for _, v := range merged {
				if !slices.Contains(stored[key.ID], v) {
					saved = append(saved, v)
				}
			}
			names = append(names, storyRows([]domain.StoryRef{{Project: project, ID: key.ID, Name: key.ID}})...)
		}
		if changed = len(saved) + len(dropped); changed == 0 {
			return nil, nil, nil
		}
		write = []Statement{
			{SQL: db.sql.dropVisits, Args: []any{jsonText(dropped)}}, {SQL: db.sql.addStories, Args: []any{jsonText(names)}},
		}
		var counted []domain.VisitCounts
		if len(counts.Stages) > stages {
			counted = append(counted, counts)
		}
		return append(write, saveRows(db.sql, saved, counted)...), nil, nil
	})
	return changed, db.Wrote(err)
}
