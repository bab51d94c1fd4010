package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"switchyard/internal/domain"
)

// removalLife is how long a removal can be undone.
const removalLife = time.Hour

// storedRemoval is the stored form of a removal.
type storedRemoval struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Token  string   `json:"token"`
	Active bool     `json:"active"`
	Agents []string `json:"agents"`
}

// KeepRemoval keeps a removal for removalLife, so that it can be undone.
func (db *DB) KeepRemoval(ctx context.Context, id string, r domain.Removal) error {
	text, err := json.Marshal(storedRemoval{r.Project.Name, r.Project.URL, r.Project.Token.Reveal(), r.Active, r.Agents})
	if err != nil {
		return err
	}
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO removals (id, removal) VALUES ($1, $2)", id, string(text)); err != nil {
			return err
		}
		return forgetRemovals(ctx, tx)
	})
}

// forgetRemovals removes expired removals, and the oldest of too many.
func forgetRemovals(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM removals WHERE at < clock_timestamp() - make_interval(secs => $1)
		OR id NOT IN (SELECT id FROM removals ORDER BY at DESC LIMIT $2)`, removalLife.Seconds(), domain.MaxRemovals)
	return err
}

// TakeRemoval removes and returns the removal with this id. It returns NotFound when there is none.
func (db *DB) TakeRemoval(ctx context.Context, id string) (r domain.Removal, err error) {
	var text string
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		if err := forgetRemovals(ctx, tx); err != nil {
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
	return domain.Removal{
		Project: domain.Project{Name: stored.Name, URL: stored.URL, Token: domain.Secret(stored.Token)}, Active: stored.Active, Agents: stored.Agents,
	}, nil
}
