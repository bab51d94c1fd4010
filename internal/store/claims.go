package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"switchyard/internal/domain"
)

const claimColumns = "project, story_id, holder, by_whom, agent_id, since_ms, stage"

func scanClaim(row Row) (c domain.Claim, err error) {
	err = row.Scan(&c.Project, &c.StoryID, &c.Holder, &c.By, &c.AgentID, (*Milli)(&c.Since), &c.Stage)
	return c, err
}

// Claims returns all claims, in no particular order.
func (db claims) Claims(ctx context.Context) ([]domain.Claim, error) {
	return selectAll(ctx, db.conn, scanClaim, "SELECT "+claimColumns+" FROM claims")
}

const oneClaim = "SELECT " + claimColumns + " FROM claims WHERE project = $1 AND story_id = $2"

// Claim returns the claim of a story. It returns NotFound.
func (db claims) Claim(ctx context.Context, project, id string) (domain.Claim, error) {
	c, err := scanClaim(db.engine.Read.QueryRowContext(ctx, oneClaim, project, Key(id)))
	return c, db.Translate(err)
}

// AddClaim stores the first of the claims whose story nobody has claimed, and returns its index, or -1 and the claim of
// the first story if there is none. It returns NotFound if the agent that holds them or the project has been removed.
func (db claims) AddClaim(ctx context.Context, wanted ...domain.Claim) (won int, held domain.Claim, err error) {
	won = -1
	err = db.Tx(ctx, topics{domain.TopicClaims}, func(tx *sql.Tx) error {
		for i, c := range wanted {
			added, err := addClaim(ctx, tx, c, " DO NOTHING")
			if err != nil || added {
				if won = i; err != nil {
					won = -1
				}
				return err
			}
		}
		held, err = scanClaim(tx.QueryRowContext(ctx, oneClaim, wanted[0].Project, wanted[0].StoryID))
		return err // of a claim that has just ended, too
	})
	return won, held, err
}

// addClaim stores a claim, if its project and its agent exist. It reports whether it has.
func addClaim(ctx context.Context, tx *sql.Tx, c domain.Claim, otherwise string) (added bool, err error) {
	if Key(c.StoryID) != c.StoryID {
		return false, domain.Errorf(domain.Invalid, "a story with this id cannot be claimed")
	}
	result, err := tx.ExecContext(ctx, "INSERT INTO claims ("+claimColumns+`)
		SELECT name, $2, $3, $4, $5, $6, $7 FROM projects
		WHERE name = $1 AND ($5 = '' OR EXISTS (SELECT 1 FROM agents WHERE id = $5))
		ON CONFLICT (project, story_id)`+otherwise,
		c.Project, c.StoryID, c.Holder, Text(c.By), c.AgentID, ToMilli(c.Since), Text(c.Stage))
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// PassClaim stores a claim in place of another one. It returns NotFound when that has ended, or been passed on.
func (db claims) PassClaim(ctx context.Context, was, now domain.Claim) error {
	return db.Tx(ctx, topics{domain.TopicClaims}, func(tx *sql.Tx) error {
		if err := endClaim(ctx, tx, was); err != nil {
			return err
		}
		added, err := addClaim(ctx, tx, now, " DO NOTHING")
		if err == nil && !added {
			err = sql.ErrNoRows
		}
		return err
	})
}

// EndClaim removes a claim. It returns NotFound when it has ended already.
func (db claims) EndClaim(ctx context.Context, e *domain.AuditEntry, c domain.Claim) error {
	return db.change(ctx, e, topics{domain.TopicClaims}, func(tx *sql.Tx) error { return endClaim(ctx, tx, c) })
}

func endClaim(ctx context.Context, tx *sql.Tx, c domain.Claim) error {
	return changeRow(ctx, tx,
		"DELETE FROM claims WHERE project = $1 AND story_id = $2 AND holder = $3 AND since_ms = $4",
		c.Project, c.StoryID, c.Holder, ToMilli(c.Since))
}

// RecordStoryChanges stores what was done to a story, with its audit entry, and ends the claims that end with that.
func (db claims) RecordStoryChanges(
	ctx context.Context, e *domain.AuditEntry, changes []domain.StoryChange, ended ...domain.Claim,
) error {
	var about topics
	if len(ended) > 0 {
		about = topics{domain.TopicClaims}
	}
	return db.change(ctx, e, about, func(tx *sql.Tx) error {
		for _, c := range changes {
			_, err := tx.ExecContext(ctx, `INSERT INTO story_changes (project, story_id, type, value, at_ms, by_whom, via)
				VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				c.Project, Key(c.StoryID), c.Type, Text(c.Value), ToMilli(c.At), Text(c.By), c.Via)
			if err != nil {
				return err
			}
		}
		for _, c := range ended {
			if err := unlessMissing(endClaim(ctx, tx, c)); err != nil {
				return err
			}
		}
		return nil
	})
}

// StoryChanges returns the newest limit changes of a story, oldest first.
func (db claims) StoryChanges(ctx context.Context, project, id string, limit int) ([]domain.StoryChange, error) {
	changes, err := selectAll(ctx, db.conn, func(row Row) (c domain.StoryChange, err error) {
		err = row.Scan(&c.Type, &c.Value, (*Milli)(&c.At), &c.By, &c.Via)
		c.Project, c.StoryID = project, id
		return c, err
	}, `SELECT type, value, at_ms, by_whom, via FROM story_changes WHERE project = $1 AND story_id = $2
		ORDER BY at_ms DESC LIMIT $3`, project, Key(id), limit)
	slices.Reverse(changes)
	return changes, err
}

// RemoveStoryChanges removes changes made before a time, under the leader's fencing token.
func (db claims) RemoveStoryChanges(ctx context.Context, token int64, before time.Time) error {
	return db.LeaderTx(ctx, token, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM story_changes WHERE at_ms < $1", before.UnixMilli())
		return err
	})
}
