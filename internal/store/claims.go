package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const claimColumns = "project, story_id, holder, by_whom, agent_id, since_ms, stage, worktree"

func scanClaim(row Row) (c domain.Claim, err error) {
	err = row.Scan(&c.Project, &c.StoryID, &c.Holder, &c.By, &c.AgentID, (*Milli)(&c.Since), &c.Stage, &c.Worktree)
	return c, err
}

// Claims returns all claims, in no particular order.
func (db claims) Claims(ctx context.Context) ([]domain.Claim, error) {
	return selectAll(ctx, db.conn, scanClaim, "SELECT "+claimColumns+" FROM claims")
}

const oneClaim = "SELECT " + claimColumns + " FROM claims WHERE project = $1 AND story_id = $2"

func (db claims) Claim(ctx context.Context, project, id string) (domain.Claim, error) {
	return selectOne(ctx, db.conn, scanClaim, oneClaim, project, Key(id))
}

// AddClaim stores the first of the claims whose story nobody has claimed, with an audit entry about that story. It
// returns its index, or -1 and the claim of the first story if there is none. It returns NotFound if the agent that
// holds them or the project has been removed.
func (db claims) AddClaim(
	ctx context.Context, e *domain.AuditEntry, wanted ...domain.Claim,
) (won int, held domain.Claim, err error) {
	won = -1
	err = db.Tx(ctx, topics{domain.TopicClaims}, func(ctx context.Context, tx *sql.Tx) error {
		for i, c := range wanted {
			added := false
			if err := Try(&added, addClaim(c))(ctx, tx); err != nil {
				return err
			}
			if added {
				won, e.Subject = i, domain.CutText(c.Key().String())
				return addAudit(e)(ctx, tx)
			}
		}
		held, err = scanClaim(tx.QueryRowContext(ctx, oneClaim, wanted[0].Project, wanted[0].StoryID))
		return err // also of a claim that has just ended
	})
	if err != nil {
		won = -1
	}
	return won, held, err
}

// addClaim stores a claim, if its project and its agent exist and nobody has claimed the story.
func addClaim(c domain.Claim) Step {
	if Key(c.StoryID) != c.StoryID {
		return func(context.Context, *sql.Tx) error {
			return domain.Errorf(domain.Invalid, "a story with this id cannot be claimed")
		}
	}
	return Must("INSERT INTO claims ("+claimColumns+`)
		SELECT name, $2, $3, $4, $5, $6, $7, $8 FROM projects
		WHERE name = $1 AND ($5 = '' OR EXISTS (SELECT 1 FROM agents WHERE id = $5))
		ON CONFLICT (project, story_id) DO NOTHING`,
		c.Project, c.StoryID, c.Holder, Text(c.By), c.AgentID, ToMilli(c.Since), Text(c.Stage), Text(c.Worktree))
}

// PassClaim stores a claim in place of another one, with its audit entry and what was done to the story. It returns
// NotFound if the other one has ended or been passed on.
func (db claims) PassClaim(
	ctx context.Context, e *domain.AuditEntry, before, now domain.Claim, changes ...domain.StoryChange,
) error {
	return db.change(ctx, e, topics{domain.TopicClaims}, endClaim(before), addClaim(now), addStoryChanges(changes))
}

// UndoClaim ends a claim, or passes it back to its former holder, and removes its audit entry. It returns NotFound if
// it has ended or been passed on.
func (db claims) UndoClaim(ctx context.Context, e domain.AuditEntry, c domain.Claim, before ...domain.Claim) error {
	undo := removeClaim(c) // it never was one
	if len(before) > 0 {
		undo = All(undo, addClaim(before[0]))
	}
	return db.Tx(ctx, topics{domain.TopicClaims}, undo, Must("DELETE FROM audit WHERE id = $1", e.ID))
}

// EndClaim removes a claim. It returns NotFound when it has ended already.
func (db claims) EndClaim(ctx context.Context, e *domain.AuditEntry, c domain.Claim) error {
	return db.change(ctx, e, topics{domain.TopicClaims}, endClaim(c))
}

func endClaim(c domain.Claim) Step {
	kept := keepEnded("project = $1 AND story_id = $2 AND holder = $3", c.Project, c.StoryID, c.Holder)
	return All(kept, removeClaim(c))
}

// endedClaims is how long ended claims are kept: calls are counted by who held a story when they were made.
const endedClaims = 25 * time.Hour

// keepEnded keeps the claims that match a condition as claims that end now.
func keepEnded(condition string, args ...any) Step {
	now := clock.Now()
	return All(Do(fmt.Sprintf(`INSERT INTO ended_claims (project, story_id, holder, since_ms, ended_ms)
			SELECT project, story_id, holder, since_ms, %d FROM claims WHERE `, now.UnixMilli())+condition, args...),
		Do("DELETE FROM ended_claims WHERE ended_ms < $1", now.Add(-endedClaims).UnixMilli()))
}

// HeldClaims returns the claims that holders have, and those that ended within a day.
func (db claims) HeldClaims(ctx context.Context, holders []string) (map[string][]domain.ClaimPeriod, error) {
	names := jsonText(domain.Map(holders, func(holder string) []any { return []any{holder} }))
	held := map[string][]domain.ClaimPeriod{}
	_, err := selectAll(ctx, db.conn, func(row Row) (c domain.ClaimPeriod, err error) {
		var holder string
		err = row.Scan(&holder, &c.Project, &c.ID, (*Milli)(&c.Since), (*Milli)(&c.Ended))
		held[holder] = append(held[holder], c)
		return c, err
	}, db.sql.heldClaims, names)
	return held, err
}

func removeClaim(c domain.Claim) Step {
	return Must("DELETE FROM claims WHERE project = $1 AND story_id = $2 AND holder = $3 AND since_ms = $4",
		c.Project, c.StoryID, c.Holder, ToMilli(c.Since))
}

// RecordStoryChanges stores what was done to a story, with its audit entry, and ends the claims that this ends.
func (db claims) RecordStoryChanges(
	ctx context.Context, e *domain.AuditEntry, changes []domain.StoryChange, ended ...domain.Claim,
) error {
	var about topics
	steps := []Step{addStoryChanges(changes)}
	for _, c := range ended {
		about = topics{domain.TopicClaims}
		steps = append(steps, Try(new(bool), endClaim(c)))
	}
	return db.change(ctx, e, about, steps...)
}

func addStoryChanges(changes []domain.StoryChange) Step {
	var steps []Step
	for _, c := range changes {
		steps = append(steps, Do(addStoryChange, storyChangeArgs(c)...))
	}
	return All(steps...)
}

const addStoryChange = `INSERT INTO story_changes (project, story_id, type, value, at_ms, by_whom, via)
	VALUES ($1, $2, $3, $4, $5, $6, $7)`

func storyChangeArgs(c domain.StoryChange) []any {
	return []any{c.Project, Key(c.StoryID), string(c.Type), Text(c.Value), ToMilli(c.At), Text(c.By), string(c.Via)}
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

// ChangesBetween returns the newest limit changes of all stories that were made between two times, oldest first.
func (db claims) ChangesBetween(ctx context.Context, from, to time.Time, limit int) ([]domain.StoryChange, error) {
	changes, err := selectAll(ctx, db.conn, func(row Row) (c domain.StoryChange, err error) {
		return c, row.Scan(&c.Project, &c.StoryID, &c.Type, &c.Value, (*Milli)(&c.At), &c.By, &c.Via)
	}, `SELECT project, story_id, type, value, at_ms, by_whom, via FROM story_changes
		WHERE at_ms >= $1 AND at_ms <= $2 ORDER BY at_ms DESC LIMIT $3`, from.UnixMilli(), to.UnixMilli(), limit)
	slices.Reverse(changes)
	return changes, err
}

// RemoveStoryChanges removes changes made before a time, under the leader's fencing token.
func (db claims) RemoveStoryChanges(ctx context.Context, token int64, before time.Time) error {
	return db.LeaderTx(ctx, token, nil, Do("DELETE FROM story_changes WHERE at_ms < $1", before.UnixMilli()))
}
