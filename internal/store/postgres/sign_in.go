package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"time"

	"switchyard/internal/domain"
)

const (
	// flowLife is how long a sign-in waits for its callback.
	flowLife = 7 * 24 * time.Hour
	// loginLife is longer than a login may take. requestLife is longer than chat servers retry a request, and than a signature is
	// valid.
	loginLife, requestLife = time.Hour, 2 * time.Hour

	sessionKeyName = "session_key"
	sessionKeySize = 32 // bytes
)

// AddSignInFlow stores a pending sign-in.
func (db *DB) AddSignInFlow(ctx context.Context, state string, f domain.SignInFlow) error {
	return db.Tx(ctx, nil, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM sign_in_flows WHERE began_at < clock_timestamp() - make_interval(secs => $1)", flowLife.Seconds()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO sign_in_flows (state, verifier, redirect_uri) VALUES ($1, $2, $3)",
			digest(state), f.Verifier.Reveal(), f.RedirectURI)
		return err
	})
}

// TakeSignInFlow removes and returns the flow with that state. Of several concurrent callers exactly one gets it; the others get
// NotFound, as for an unknown state.
func (db *DB) TakeSignInFlow(ctx context.Context, state string) (f domain.SignInFlow, err error) {
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "DELETE FROM sign_in_flows WHERE state = $1 RETURNING verifier, redirect_uri", digest(state)).
			Scan(&f.Verifier, &f.RedirectURI)
	})
	return f, err
}

// SpendLogin records that the callback of the login with that state has arrived. It returns false if that was recorded before.
func (db *DB) SpendLogin(ctx context.Context, state string) (first bool, err error) {
	return db.once(ctx, "login", state, loginLife)
}

// RecordBotRequest records a request of a chat server. It returns false if it was recorded before.
func (db *DB) RecordBotRequest(ctx context.Context, id string) (first bool, err error) {
	return db.once(ctx, "bot request", id, requestLife)
}

// once records a key, for at least life, and reports whether it is new.
func (db *DB) once(ctx context.Context, kind, id string, life time.Duration) (first bool, err error) {
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM seen_once WHERE kind = $1 AND at < clock_timestamp() - make_interval(secs => $2)", kind, life.Seconds())
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, "INSERT INTO seen_once (kind, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING", kind, digest(id))
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		first = n == 1
		return err
	})
	return first, err
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// SessionKey returns the key that signs the sessions of all gateways, creating it if there is none.
func (db *DB) SessionKey(ctx context.Context) ([]byte, error) {
	key := make([]byte, sessionKeySize)
	rand.Read(key) // never fails
	var text string
	err := db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", sessionKeyName, hex.EncodeToString(key))
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", sessionKeyName).Scan(&text)
	})
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}
