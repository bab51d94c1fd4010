package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"switchyard/internal/domain"
)

// activeKey is the key of the active project's name in the state table. Without a row there is no active project.
const activeKey = "active_project"

// Registry returns the active project's name, "" if there is none, and the projects, sorted by name, by bytes.
func (db projects) Registry(ctx context.Context) (active string, projects []domain.Project, err error) {
	err = db.Snapshot(ctx, func(ctx context.Context, tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", activeKey).Scan(&active)
		if unlessMissing(err) != nil {
			return err
		}
		projects, err = AllRows(ctx, tx, func(row Row) (p domain.Project, err error) {
			err = row.Scan(&p.Name, &p.URL, &p.Token)
			return p, err
		}, "SELECT name, url, token FROM projects ORDER BY name")
		return err
	})
	return active, projects, db.Translate(err)
}

// AddProjects stores new projects, all or none, and makes active, unless it is "", the active one. It returns Conflict
// if one of the names exists.
func (db projects) AddProjects(
	ctx context.Context, e *domain.AuditEntry, active string, projects ...domain.Project,
) error {
	return db.change(ctx, e, topics{domain.TopicProjects}, addProjects(active, projects...)...)
}

// RestoreProject stores a new project as AddProjects does and assigns agents to it, all or nothing. It skips agents
// that have been removed. It returns Conflict if the name exists.
func (db projects) RestoreProject(
	ctx context.Context, e *domain.AuditEntry, active string, p domain.Project, agents []string,
) error {
	steps := addProjects(active, p)
	for _, id := range agents {
		steps = append(steps, Do(assignAgent, id, p.Name))
	}
	return db.change(ctx, e, topics{domain.TopicProjects, domain.TopicAgents}, steps...)
}

func addProjects(active string, projects ...domain.Project) (steps []Step) {
	for _, p := range projects {
		steps = append(steps, Do("INSERT INTO projects (name, url, token) VALUES ($1, $2, $3)", p.Name, p.URL,
			p.Token.Reveal()))
	}
	if active != "" {
		steps = append(steps, Do(setActive, activeKey, active))
	}
	return steps
}

// UpdateProject stores a project's url and token if the stored ones are those of before. Otherwise it returns NotFound.
func (db projects) UpdateProject(ctx context.Context, e *domain.AuditEntry, before, p domain.Project) error {
	return db.changeOne(ctx, e, topics{domain.TopicProjects},
		"UPDATE projects SET url = $2, token = $3 WHERE name = $1 AND url = $4 AND token = $5",
		p.Name, p.URL, p.Token.Reveal(), before.URL, before.Token.Reveal())
}

// RemoveProject removes a project and its claims, and unassigns its agents. If it was the active project, none is
// active afterwards. Its events and reading positions are kept. It returns NotFound if there is no such project.
func (db projects) RemoveProject(ctx context.Context, e *domain.AuditEntry, name string) error {
	about := topics{domain.TopicProjects, domain.TopicAgents, domain.TopicAccess, domain.TopicClaims}
	return db.change(ctx, e, about, Must("DELETE FROM projects WHERE name = $1", name),
		Do("UPDATE agents SET assigned_project = '' WHERE assigned_project = $1", name),
		endAgentTokens("project = $1", name),
		keepEnded("project = $1", name), Do("DELETE FROM claims WHERE project = $1", name),
		Do("DELETE FROM state WHERE key = $1 AND value = $2", activeKey, name))
}

// SetActive makes a project the active one. It returns NotFound if there is no such project.
func (db projects) SetActive(ctx context.Context, e *domain.AuditEntry, name string) error {
	return db.changeOne(ctx, e, topics{domain.TopicProjects}, setActive, activeKey, name)
}

const setActive = "INSERT INTO state (key, value) SELECT $1, name FROM projects WHERE name = $2" +
	" ON CONFLICT (key) DO UPDATE SET value = excluded.value"

// KeepRemoval stores a removal that was made at now, so that it can be undone. Only the last most of them are kept.
func (db projects) KeepRemoval(ctx context.Context, id string, r domain.Removal, now time.Time, most int) error {
	text := encoded(map[string]any{
		"name": r.Project.Name, "url": r.Project.URL, "token": r.Project.Token.Reveal(),
		"active": r.Active, "agents": r.Agents,
	})
	return db.Tx(ctx, nil,
		Do("INSERT INTO removals (id, removal, at_ms) VALUES ($1, $2, $3)", id, text, now.UnixMilli()),
		Do("DELETE FROM removals WHERE id NOT IN (SELECT id FROM removals ORDER BY at_ms DESC, id LIMIT $1)", most))
}

// TakeRemoval removes and returns the removal with this id, and forgets those made before oldest. It returns NotFound.
func (db projects) TakeRemoval(ctx context.Context, id string, oldest time.Time) (r domain.Removal, err error) {
	var text string
	err = db.Tx(ctx, nil, Do("DELETE FROM removals WHERE at_ms < $1", oldest.UnixMilli()),
		Get("DELETE FROM removals WHERE id = $1 RETURNING removal", []any{id}, &text))
	if err != nil {
		return r, err
	}
	// The stored object has the fields of both.
	err = errors.Join(json.Unmarshal([]byte(text), &r), json.Unmarshal([]byte(text), &r.Project))
	return r, err
}
