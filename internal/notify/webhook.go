package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// webhook sends messages as Standard Webhooks, signed by the target's secrets.
func webhook(u *url.URL) *receiver {
	return &receiver{
		endpoint: u, signs: true, limit: 4000,
		requests: func(t *domain.Target, m domain.Message, now time.Time) []request {
			body, _ := json.Marshal(struct { // JSON always encodes
				Type      string          `json:"type"`
				Timestamp time.Time       `json:"timestamp"`
				Data      json.RawMessage `json:"data"`
				Skipped   int             `json:"skipped,omitempty"` // messages before this one
			}{m.Type, m.At.UTC(), m.Data, t.Progress.Skipped})
			stamp := strconv.FormatInt(now.Unix(), 10)
			signatures := sign(t.Secret, m.ID, stamp, body)
			if t.Former != "" && now.Before(t.FormerUntil) {
				signatures += " " + sign(t.Former, m.ID, stamp, body)
			}
			return []request{{u.String(), http.Header{
				"Content-Type": {"application/json"}, "Webhook-Id": {m.ID}, "Webhook-Timestamp": {stamp},
				"Webhook-Signature": {signatures},
			}, body}}
		},
	}
}

// secretPrefix begins the secrets of webhooks; a key in base64 follows.
const secretPrefix = "whsec_"

func sign(secret domain.Secret, id, stamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), secretPrefix))
	if err != nil { // not one of our secrets
		return ""
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte(id + "." + stamp + "."))
	h.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
