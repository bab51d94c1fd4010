package bot

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"switchyard/internal/domain"
)

const (
	// maxTeamBody is the largest body of an event or a command, in bytes.
	maxTeamBody = 1 << 20
	// maxUnsigned is the largest body that is read without a signature: Slack's check of the certificate.
	maxUnsigned = 256
	// commandLimit is the time limit of a command, for an answer within the 3 s that Slack waits.
	commandLimit = 2500 * time.Millisecond
)

// TeamEvents receives Slack's events: it answers Slack's verification of the address, and accepts each mention of the bot once.
func (s *Supervisor) TeamEvents(w http.ResponseWriter, r *http.Request) {
	_, t, body := s.teamRequest(w, r)
	if t == nil || !t.signed(w, r, body) {
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
		plainText(w, http.StatusBadRequest, "the body must be a Slack event")
		return
	}
	e := call.Event
	switch {
	case call.Type == "url_verification":
		plainText(w, http.StatusOK, call.Challenge)
		return
	case call.Type != "event_callback" || e.Type != "app_mention" || e.BotID != "" || e.User == "":
		w.WriteHeader(http.StatusOK) // not for the bot; Slack need not send it again
		return
	}
	question := Question{Sender: e.User, Text: e.Text, Addressed: true}
	if err := t.take(r.Context(), call.EventID, mention{question, e.Channel, e.Thread}); err != nil {
		s.options.Log.ErrorContext(r.Context(), "bot: event not accepted", "error", err)
		plainText(w, http.StatusServiceUnavailable, "try again later")
		return
	}
	w.WriteHeader(http.StatusOK)
}

// TeamCommands answers Slack's slash command.
func (s *Supervisor) TeamCommands(w http.ResponseWriter, r *http.Request) {
	b, t, body := s.teamRequest(w, r)
	if t == nil {
		return
	}
	form, err := url.ParseQuery(string(body))
	if err == nil && form.Get("ssl_check") == "1" { // Slack checks the certificate, without a signature
		w.WriteHeader(http.StatusOK)
		return
	}
	if !t.signed(w, r, body) {
		return
	}
	if err != nil || form.Get("user_id") == "" {
		plainText(w, http.StatusBadRequest, "the body must be a Slack slash command")
		return
	}
	// A slash command has no id, but its signature is unique.
	first, err := t.state.RecordBotRequest(r.Context(), "command "+r.Header.Get("X-Slack-Signature"))
	if err != nil {
		s.options.Log.ErrorContext(r.Context(), "bot: command not accepted", "error", err)
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
