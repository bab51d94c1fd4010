package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// Lengths in characters; RFC 7636 allows verifiers of 43 to 128.
const (
	verifierLength = 128
	stateLength    = 32
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// unbiased is the greatest multiple of the alphabet's size that fits a byte. Bytes from there on are discarded: they
// would make the first letters more likely than the others.
const unbiased = 256 / len(alphabet) * len(alphabet)

// randomText returns n characters of the alphabet, each equally likely.
func randomText(n int) string {
	text := make([]byte, 0, n)
	random := make([]byte, n)
	for {
		_, _ = rand.Read(random) // never fails
		for _, b := range random {
			if int(b) < unbiased {
				text = append(text, alphabet[int(b)%len(alphabet)])
			}
			if len(text) == n {
				return string(text)
			}
		}
	}
}

// challenge is the S256 code challenge of a verifier (RFC 7636, 4.2).
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
