package notify

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"net"
	"net/netip"

	"switchyard/internal/domain"
)

var Sign = sign

func Schemes() (all []string) {
	for _, k := range kinds {
		all = append(all, k.scheme)
	}
	return all
}

func (g Guard) Check(a netip.Addr, plain bool) string { return g.check(a, plain) }

// NewOver returns a sender over one connection, which pushes as well.
func NewOver(c net.Conn) *Sender {
	return New(Options{
		Dial: func(context.Context, string, string) (net.Conn, error) { return c, nil },
		Push: Push{Keys: SomeKeys},
	})
}

// SomeKeys are those of a gateway.
func SomeKeys(context.Context) (domain.PushKeys, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return domain.PushKeys{}, err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return domain.PushKeys{Public: encode(key.PublicKey().Bytes()), Private: domain.Secret(encode(key.Bytes()))}, nil
}
