package bot

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/slack-go/slack"

	"switchyard/internal/domain"
)

const (
	// maxTeamBody is the largest body of an event or a command, in bytes.
	maxTeamBody = 1 << 20
	// commandLimit bounds a command, to answer within the 3 s that Slack waits.
	commandLimit = 2500 * time.Millisecond
)

// TeamEvents is Slack's Events API: it answers the check of the address, and takes each mention of the bot once.
func (s *Supervisor) TeamEvents(w http.ResponseWriter, r *http.Request) {
	_, t, body := s.signed(w, r)
	if t == nil {
		return
	}
	var call struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		EventID   string `json:"event_id"`
		Event     struct {
			Type    string `json:"type"`
			User    string `json:"user"`
			BotID   string `json:"bot_id"`
			Text    string `json:"text"`
			Channel string `json:"channel"`
			Thread  string `json:"thread_ts"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		plainText(w, http.StatusBadRequest, "the body must be an event of Slack's")
		return
	}
	e := call.Event
	switch {
	case call.Type == "url_verification":
		plainText(w, http.StatusOK, call.Challenge)
		return
	case call.Type != "event_callback" || e.Type != "app_mention" || e.BotID != "" || e.User == "":
		w.WriteHeader(http.StatusOK) // nothing for us, and nothing to send again
		return
	}
	question := Question{Sender: e.User, Text: e.Text, Addressed: true}
	if err := t.take(r.Context(), call.EventID, mention{question, e.Channel, e.Thread}); err != nil {
		s.options.Log.ErrorContext(r.Context(), "bot: event not taken", "error", err)
		plainText(w, http.StatusServiceUnavailable, "not now")
		return
	}
	w.WriteHeader(http.StatusOK)
}

// TeamCommands is Slack's slash command.
func (s *Supervisor) TeamCommands(w http.ResponseWriter, r *http.Request) {
	b, t, body := s.signed(w, r)
	if t == nil {
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || form.Get("user_id") == "" {
		plainText(w, http.StatusBadRequest, "the body must be a slash command of Slack's")
		return
	}
	// A slash command has no id, but every one of them another signature.
	first, err := t.seen.first(r.Context(), "command "+r.Header.Get("X-Slack-Signature"))
	if err != nil {
		s.options.Log.ErrorContext(r.Context(), "bot: command not taken", "error", err)
		plainText(w, http.StatusInternalServerError, "the store failed")
		return
	}
	if !first {
		w.WriteHeader(http.StatusOK)
		return
	}
	question := Question{Sender: form.Get("user_id"), Text: unescape(form.Get("text")), Addressed: true}
	var reply Message
	ctx, cancel := context.WithTimeout(r.Context(), commandLimit)
	defer cancel()
	err = b.call(ctx, func(ctx context.Context) error {
		return caught(func() error {
			reply, _ = b.answer(ctx, question)
			return nil
		})
	})
	if err != nil {
		s.options.Log.WarnContext(r.Context(), "bot: command failed", "error", err)
		reply = Message{{Plain("Failed: " + domain.MessageOf(err))}}
	}
	encoded, err := json.Marshal(map[string]string{"response_type": "in_channel", "text": reply.Mrkdwn()})
	if err != nil { // strings always encode
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(encoded) // Slack may be gone
}

// signed returns the running bot with its transport, and the request's body, when Slack signed it with the secret
// within the last five minutes; otherwise it has answered.
func (s *Supervisor) signed(w http.ResponseWriter, r *http.Request) (*bot, *team, []byte) {
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
		plainText(w, http.StatusRequestEntityTooLarge, "the body is too large or cut off")
		return nil, nil, nil
	}
	verifier, err := slack.NewSecretsVerifier(r.Header, t.secret.Reveal())
	if err == nil {
		_, _ = verifier.Write(body) // a hash takes everything
		err = verifier.Ensure()
	}
	if err != nil {
		plainText(w, http.StatusUnauthorized, "the signature is not valid")
		return nil, nil, nil
	}
	return b, t, body
}

func plainText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // Slack may be gone
}
