package bot

import (
	"io"
	"net/http"

	"github.com/slack-go/slack"
)

// teamRequest returns the running bot with its transport, and the request's body. The transport is nil, and the request
// answered, if there is none.
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
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTeamBody))
	if err != nil {
		plainText(w, http.StatusRequestEntityTooLarge, "the body is too large or incomplete")
		return nil, nil, nil
	}
	return b, t, body
}

// signed reports whether Slack signed the request with the secret within the last five minutes; if not, it has answered.
func (t *team) signed(w http.ResponseWriter, r *http.Request, body []byte) bool {
	verifier, err := slack.NewSecretsVerifier(r.Header, t.secret.Reveal())
	if err == nil {
		_, _ = verifier.Write(body) // a hash accepts everything
		err = verifier.Ensure()
	}
	if err != nil {
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
