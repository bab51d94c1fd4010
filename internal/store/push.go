package store

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"

	"switchyard/internal/domain"
)

// pushKeysName is the key under which the state holds the keys for push services.
const pushKeysName = "push_keys"

// storedPushKeys is the form of domain.PushKeys in the store.
type storedPushKeys struct{ Public, Private string }

// PushKeys returns the keys by which push services know the gateway, creating them if there are none.
func (db targets) PushKeys(ctx context.Context) (domain.PushKeys, error) {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return domain.PushKeys{}, err
	}
	made := encoded(storedPushKeys{
		base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()),
		base64.RawURLEncoding.EncodeToString(private.Bytes()),
	})
	var text string
	err = db.Tx(ctx, nil, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO state (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
			pushKeysName, made)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT value FROM state WHERE key = $1", pushKeysName).Scan(&text)
	})
	if err != nil {
		return domain.PushKeys{}, err
	}
	var keys storedPushKeys
	err = json.Unmarshal([]byte(text), &keys)
	return domain.PushKeys{Public: keys.Public, Private: domain.Secret(keys.Private)}, err
}
