package service

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"switchyard/internal/domain"
)

const (
	tokenPrefix  = "swj_" // of join tokens
	secretPrefix = "sws_" // of agents' secrets
	secretBytes  = 20     // 160 random bits in either
)

// lowerBase32 encodes random bytes as text that is easy to read aloud and to paste.
var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func randomText(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return lowerBase32.EncodeToString(b)
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func IsAgentSecret(secret domain.Secret) bool {
	return strings.HasPrefix(secret.Reveal(), secretPrefix)
}

func shortHash(hash string) string { return hash[:min(len(hash), 12)] }
