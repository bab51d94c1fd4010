package store

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// State returns the small durable value under key, "" when there is none.
func (db state) State(ctx context.Context, key string) (string, error) {
	var value string
	err := db.engine.Read.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", key).Scan(&value)
	return value, db.Translate(unlessMissing(err))
}

// PutState is a statement that stores the value $2 under the key $1, replacing any other.
const PutState = "INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"

// KeepState stores a value under a key unless there is one, and scans the one that is stored.
func KeepState(key, value string, stored any) Step {
	return All(Do("INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING", key, value),
		Get("SELECT value FROM state WHERE key = $1", []any{key}, stored))
}

func (db state) SetState(ctx context.Context, key, value string) error {
	_, err := db.exec(ctx, nil, PutState, key, value)
	return err
}

// SetLeaderState is SetState under the leader's fencing token. It returns ErrNotLeader once another gateway has taken
// over.
func (db state) SetLeaderState(ctx context.Context, token int64, key, value string) error {
	return db.LeaderTx(ctx, token, nil, Do(PutState, key, value))
}

// LeaderState is the state of Tables, which it changes under the leader's fencing token.
type LeaderState struct {
	*Tables
	Token int64
}

// SetState stores value under key, replacing any other. It returns ErrNotLeader once another gateway has taken over.
func (s LeaderState) SetState(ctx context.Context, key, value string) error {
	return s.SetLeaderState(ctx, s.Token, key, value)
}

// TryWrite makes a harmless write, which updates WriteFailure. After a failure to append events it appends none.
func (db state) TryWrite(ctx context.Context) error {
	if _, failure := db.appends.failure(); failure != nil && !errors.Is(failure, ErrNoSpace) {
		err := db.engine.Transact(ctx, []Statement{{SQL: db.sql.lock}}, func() ([]Statement, topics, error) {
			return []Statement{{SQL: "INSERT INTO events SELECT * FROM events WHERE FALSE"}}, nil, nil
		})
		if err := db.Appended(err); err != nil {
			return err
		}
	}
	return db.SetState(ctx, "last_try", time.Now().UTC().Format(time.RFC3339))
}

// loginLife is longer than a login may take. requestLife is longer than chat servers retry a request, and than a
// signature is valid.
const loginLife, requestLife = time.Hour, 2 * time.Hour

// SpendLogin records that the callback of the login with that state has arrived. It returns false if it had arrived
// before.
func (db access) SpendLogin(ctx context.Context, state string) (first bool, err error) {
	return db.once(ctx, "login", state, loginLife)
}

// RecordBotRequest records a request of a chat server. It returns false if it was recorded before.
func (db access) RecordBotRequest(ctx context.Context, id string) (first bool, err error) {
	return db.once(ctx, "bot request", id, requestLife)
}

// once records a key, for at least life, and reports whether it is new.
func (db access) once(ctx context.Context, kind, id string, life time.Duration) (first bool, err error) {
	sum, now := sha256.Sum256([]byte(id)), clock.Now()
	err = db.Tx(ctx, nil, Do("DELETE FROM seen_once WHERE kind = $1 AND at_ms < $2", kind, now.Add(-life).UnixMilli()),
		Try(&first, Must("INSERT INTO seen_once (kind, digest, at_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			kind, hex.EncodeToString(sum[:]), now.UnixMilli())))
	return first, err
}

// pushKeysName is the key under which the state holds the keys for push services.
const pushKeysName = "push_keys"

// PushKeys returns the keys that identify the gateway to push services, creating them if there are none.
func (db targets) PushKeys(ctx context.Context) (domain.PushKeys, error) {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return domain.PushKeys{}, err
	}
	made := encoded(map[string]string{
		"Public":  base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()),
		"Private": base64.RawURLEncoding.EncodeToString(private.Bytes()),
	})
	var text string
	if err := db.Tx(ctx, nil, KeepState(pushKeysName, made, &text)); err != nil {
		return domain.PushKeys{}, err
	}
	var keys domain.PushKeys
	err = json.Unmarshal([]byte(text), &keys)
	return keys, err
}
