package service

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"switchyard/internal/domain"
)

const (
	tokenPrefix  = "swj_" // of join tokens
	secretPrefix = "sws_" // of agents' secrets
	secretBytes  = 20     // 160 random bits in either
)

// randomText returns that many random bytes as text that is easy to read aloud and to paste.
func randomText(bytes int) string { return strings.ToLower((rand.Text() + rand.Text())[:bytes*8/5]) }

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func IsAgentSecret(secret domain.Secret) bool {
	return strings.HasPrefix(secret.Reveal(), secretPrefix)
}

func shortHash(hash string) string { return hash[:min(len(hash), 12)] }
