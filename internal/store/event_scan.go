package store

import (
	"context"
	"database/sql"
	"slices"
)

// scan finds events with a common text by reading all events in order, in at most times batches. It returns false if that did
// not suffice.
func (f eventFilter) scan(ctx context.Context, tx *sql.Tx, p *pageReader, times int) (done bool, err error) {
	matching, err := f.matchingSets(ctx, tx)
	if err != nil {
		return false, err
	}
	q, runs := p.query, f.runs(f.kinds)
	for ; !p.page.More; times-- {
		if times == 0 {
			return false, nil
		}
		ids, err := p.mergeRuns(ctx, tx, runs, q, scanned)
		if err != nil || len(ids) == 0 {
			return err == nil, err
		}
		found, err := matching.among(ctx, tx, ids)
		if err != nil {
			return false, err
		}
		if q.Backward {
			slices.Reverse(found)
		}
		if err := p.readIDs(ctx, tx, found[:min(len(found), p.missing())]); err != nil {
			return false, err
		}
		if q.Before = ids[len(ids)-1]; !q.Backward {
			q.After = q.Before
		}
	}
	return true, nil
}

// matchingSets are the projects, kinds and texts that contain a folded text.
type matchingSets struct {
	text            string
	kinds, projects map[int64]bool
	texts           map[int64]bool // those that have been checked
}

func (f eventFilter) matchingSets(ctx context.Context, tx *sql.Tx) (*matchingSets, error) {
	m := &matchingSets{text: f.text, kinds: map[int64]bool{}, projects: map[int64]bool{}, texts: map[int64]bool{0: false}}
	kinds, err := f.matchingKinds(ctx, tx)
	if err != nil {
		return nil, err
	}
	projects, err := f.matchingProjects(ctx, tx)
	for _, id := range kinds {
		m.kinds[id] = true
	}
	for _, id := range projects {
		m.projects[id] = true
	}
	return m, err
}

// among returns those of the events that contain the text, by increasing id.
func (m *matchingSets) among(ctx context.Context, tx *sql.Tx, ids []int64) (found []int64, err error) {
	type event struct{ id, text int64 }
	var events []event // those that depend on their text
	rows, err := tx.QueryContext(ctx, "SELECT id, project_id, kind_id, text_id FROM events WHERE id IN ("+List(ids)+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var unknown []int64
	for rows.Next() {
		var e event
		var project, kind int64
		if err := rows.Scan(&e.id, &project, &kind, &e.text); err != nil {
			return nil, err
		}
		matches, known := m.texts[e.text]
		switch {
		case matches, m.projects[project], m.kinds[kind]:
			found = append(found, e.id)
			continue
		case !known:
			m.texts[e.text] = false
			unknown = append(unknown, e.text)
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(unknown) > 0 {
		err = eachText(ctx, tx, func(id int64, t EventText) bool {
			m.texts[id] = t.holds(m.text)
			return true
		}, "SELECT id, story_id, story_name, more FROM event_texts WHERE id IN ("+List(unknown)+")")
	}
	for _, e := range events {
		if m.texts[e.text] {
			found = append(found, e.id)
		}
	}
	slices.Sort(found)
	return found, err
}
