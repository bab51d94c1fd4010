package postgres

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/store"
)

const (
	// flowLife is how long a sign-in waits for its callback.
	flowLife       = 7 * 24 * time.Hour
	sessionKeyName = "session_key"
	sessionKeySize = 32 // bytes
)

// signIn is what gateways share of signing in.
type signIn struct{ db *DB }

func (s signIn) AddSignInFlow(ctx context.Context, state string, f domain.SignInFlow) error {
	return s.db.Tx(ctx, nil, store.Do(
		"DELETE FROM sign_in_flows WHERE began_at < clock_timestamp() - make_interval(secs => $1)", flowLife.Seconds()),
		store.Do("INSERT INTO sign_in_flows (state, verifier, redirect_uri) VALUES ($1, $2, $3)",
			digest(state), f.Verifier.Reveal(), f.RedirectURI))
}

// TakeSignInFlow removes and returns the flow with that state. Of several concurrent callers exactly one gets it; the
// others get NotFound, as for an unknown state.
func (s signIn) TakeSignInFlow(ctx context.Context, state string) (f domain.SignInFlow, err error) {
	err = s.db.Tx(ctx, nil, store.Get("DELETE FROM sign_in_flows WHERE state = $1 RETURNING verifier, redirect_uri",
		[]any{digest(state)}, &f.Verifier, &f.RedirectURI))
	return f, err
}

func digest(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// SessionKey returns the key that signs the sessions of all gateways, creating it if there is none.
func (s signIn) SessionKey(ctx context.Context) ([]byte, error) {
	key := make([]byte, sessionKeySize)
	rand.Read(key) // never fails
	var text string
	if err := s.db.Tx(ctx, nil, store.KeepState(sessionKeyName, hex.EncodeToString(key), &text)); err != nil {
		return nil, err
	}
	return hex.DecodeString(text)
}
