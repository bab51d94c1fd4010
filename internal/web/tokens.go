package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"switchyard/internal/domain"
)

// BearerToken returns the token of the Authorization header. ok is false when the scheme is not Bearer.
func BearerToken(r *http.Request) (token string, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
}

// MatchesToken compares a token with the secret in constant time.
func MatchesToken(token string, secret domain.Secret) bool {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(secret.Reveal()))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}
