package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"switchyard/internal/domain"
)

// storedRemoval is the stored form of a removal.
type storedRemoval struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Token  string   `json:"token"`
	Active bool     `json:"active"`
	Agents []string `json:"agents"`
}

// KeepRemoval stores a removal that was made at now, so that it can be undone. Only the last most of them are kept.
func (db projects) KeepRemoval(ctx context.Context, id string, r domain.Removal, now time.Time, most int) error {
	text, err := json.Marshal(storedRemoval{r.Project.Name, r.Project.URL, r.Project.Token.Reveal(), r.Active, r.Agents})
	if err != nil {
		return err
	}
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO removals (id, removal, at_ms) VALUES ($1, $2, $3)", id, string(text),
			now.UnixMilli())
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			"DELETE FROM removals WHERE id NOT IN (SELECT id FROM removals ORDER BY at_ms DESC, id LIMIT $1)", most)
		return err
	})
}

// TakeRemoval removes and returns the removal with this id, and forgets those made before oldest. It returns NotFound.
func (db projects) TakeRemoval(ctx context.Context, id string, oldest time.Time) (r domain.Removal, err error) {
	var text string
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM removals WHERE at_ms < $1", oldest.UnixMilli()); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "DELETE FROM removals WHERE id = $1 RETURNING removal", id).Scan(&text)
	})
	if err != nil {
		return r, err
	}
	var stored storedRemoval
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return r, err
	}
	project := domain.Project{Name: stored.Name, URL: stored.URL, Token: domain.Secret(stored.Token)}
	return domain.Removal{Project: project, Active: stored.Active, Agents: stored.Agents}, nil
}
