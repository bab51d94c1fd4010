package store

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"

	"switchyard/internal/domain"
)

// pushKeysName is the key under which the state holds the keys for push services.
const pushKeysName = "push_keys"

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
	if err := db.Tx(ctx, nil, KeepState(pushKeysName, made, &text)); err != nil {
		return domain.PushKeys{}, err
	}
	var keys storedPushKeys
	err = json.Unmarshal([]byte(text), &keys)
	return domain.PushKeys{Public: keys.Public, Private: domain.Secret(keys.Private)}, err
}
