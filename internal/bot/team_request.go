package bot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

// teamRequest returns the running bot, its transport, and the request's body. If the bot is not on Slack or the request is
// refused, the transport is nil and the request has been answered.
func (s *Supervisor) teamRequest(w http.ResponseWriter, r *http.Request) (*bot, *team, []byte) {
	b, _ := s.current()
	if b == nil {
		plainText(w, http.StatusNotFound, "no bot for this chat is set up")
		return nil, nil, nil
	}
	t, ok := b.chat.(*team)
	if !ok {
		plainText(w, http.StatusNotFound, "no bot for this chat is set up")
		return nil, nil, nil
	}
	limit := int64(maxTeamBody)
	if r.Header.Get("X-Slack-Signature") == "" || r.Header.Get("X-Slack-Request-Timestamp") == "" {
		if limit = maxUnsigned; r.ContentLength < 0 || r.ContentLength > limit {
			plainText(w, http.StatusUnauthorized, "the signature is not valid")
			return nil, nil, nil
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case domain.CodeOf(err) == domain.Unavailable:
		plainText(w, http.StatusServiceUnavailable, domain.MessageOf(err))
		return nil, nil, nil
	case err != nil:
		plainText(w, http.StatusRequestEntityTooLarge, "the body is too large or incomplete")
		return nil, nil, nil
	}
	return b, t, body
}

// signatureLife is how far the time of a signature may be from now.
const signatureLife = 5 * time.Minute

// signed reports whether the request has a valid signature that is at most signatureLife old; if not, it has been answered.
// Slack's library would use the machine's clock.
func (t *team) signed(w http.ResponseWriter, r *http.Request, body []byte) bool {
	stamp := r.Header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	timely := err == nil && clock.Now().Sub(time.Unix(seconds, 0)).Abs() <= signatureLife
	mac := hmac.New(sha256.New, []byte(t.secret.Reveal()))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // a hash never fails
	signature := "v0=" + hex.EncodeToString(mac.Sum(nil))
	if t.secret == "" || !timely || !hmac.Equal([]byte(signature), []byte(r.Header.Get("X-Slack-Signature"))) {
		plainText(w, http.StatusUnauthorized, "the signature is not valid")
		return false
	}
	return true
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // Slack may be gone
}
