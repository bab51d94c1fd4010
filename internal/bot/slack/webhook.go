package slack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"switchyard/internal/bot"
	"switchyard/internal/clock"
	"switchyard/internal/domain"
)

const (
	// maxBody is the largest body of an event or a command, in bytes.
	maxBody = 1 << 20
	// maxUnsigned is the largest body that is read without a signature: Slack's check of the certificate.
	maxUnsigned = 256
	// commandLimit is the time limit of a command, for an answer within the 3 s that Slack waits.
	commandLimit = 2500 * time.Millisecond
	// signatureLife is how far the time of a signature may be from now.
	signatureLife = 5 * time.Minute
)

// mention is a question from a channel, with its text as Slack writes it.
type mention struct {
	bot.Question
	thread string
}

// ServeWebhook answers an event or a slash command of Slack, each once.
func (t *chat) ServeWebhook(w http.ResponseWriter, r *http.Request, ask bot.Ask) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	isCommand := strings.HasSuffix(r.URL.Path, "/commands")
	form, formErr := url.ParseQuery(string(body))
	switch {
	case isCommand && formErr == nil && form.Get("ssl_check") == "1": // Slack checks the certificate, without a signature
		w.WriteHeader(http.StatusOK)
	case !t.isSigned(r, body):
		bot.PlainText(w, http.StatusUnauthorized, "the signature is not valid")
	case !isCommand:
		t.event(w, r, body)
	case formErr != nil || form.Get("user_id") == "":
		bot.PlainText(w, http.StatusBadRequest, "the body must be a Slack slash command")
	default:
		text := html.UnescapeString(form.Get("text"))
		t.command(w, r, bot.Question{
			Sender: form.Get("user_id"), Room: form.Get("channel_id"), Text: text, Addressed: true,
		}, ask)
	}
}

// readBody reads the body of a request; if it returns false, the request has been answered.
func readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	limit := int64(maxBody)
	if r.Header.Get("X-Slack-Signature") == "" || r.Header.Get("X-Slack-Request-Timestamp") == "" {
		if limit = maxUnsigned; r.ContentLength < 0 || r.ContentLength > limit {
			bot.PlainText(w, http.StatusUnauthorized, "the signature is not valid")
			return nil, false
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case domain.CodeOf(err) == domain.Unavailable:
		bot.PlainText(w, http.StatusServiceUnavailable, domain.MessageOf(err))
	case err != nil:
		bot.PlainText(w, http.StatusRequestEntityTooLarge, "the body is too large or incomplete")
	}
	return body, err == nil
}

// isSigned reports whether the request has a valid signature that is at most signatureLife old. Slack's library would
// use the machine's clock.
func (t *chat) isSigned(r *http.Request, body []byte) bool {
	stamp := r.Header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	timely := err == nil && clock.Now().Sub(time.Unix(seconds, 0)).Abs() <= signatureLife
	mac := hmac.New(sha256.New, []byte(t.secret.Reveal()))
	_, _ = fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // a hash never fails
	signature := "v0=" + hex.EncodeToString(mac.Sum(nil))
	return t.secret != "" && timely && hmac.Equal([]byte(signature), []byte(r.Header.Get("X-Slack-Signature")))
}

// event answers Slack's verification of the address, and accepts a mention of the bot or a reply in a thread.
func (t *chat) event(w http.ResponseWriter, r *http.Request, body []byte) {
	var call struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
		EventID   string `json:"event_id"`
		Event     struct {
			Type    string `json:"type"`
			Subtype string `json:"subtype"`
			User    string `json:"user"`
			BotID   string `json:"bot_id"`
			Text    string `json:"text"`
			Channel string `json:"channel"`
			Thread  string `json:"thread_ts"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &call); err != nil {
		bot.PlainText(w, http.StatusBadRequest, "the body must be a Slack event")
		return
	}
	e := call.Event
	mentioned := e.Type == "app_mention"
	replied := e.Type == "message" && e.Subtype == "" && e.Thread != "" // to whatever message began the thread
	switch {
	case call.Type == "url_verification":
		bot.PlainText(w, http.StatusOK, call.Challenge)
		return
	case call.Type != "event_callback" || !mentioned && !replied || e.BotID != "" || e.User == "":
		w.WriteHeader(http.StatusOK) // not for the bot; Slack need not send it again
		return
	}
	question := bot.Question{Sender: e.User, Room: e.Channel, Text: e.Text, Addressed: mentioned, OnlyReply: replied}
	if e.Thread != "" {
		question.About = messageID(e.Channel, e.Thread)
	}
	if err := t.accept(r.Context(), call.EventID, mention{question, e.Thread}); err != nil {
		t.log.ErrorContext(r.Context(), "bot: event not accepted", "error", err)
		bot.PlainText(w, http.StatusServiceUnavailable, "try again later")
		return
	}
	w.WriteHeader(http.StatusOK)
}

// accept queues a mention unless its event was received before. The event is recorded first: a crash may lose a
// command, which its sender notices, but must not run it twice.
func (t *chat) accept(ctx context.Context, event string, m mention) error {
	t.accepting.Lock()
	defer t.accepting.Unlock()
	if len(t.mentions) == cap(t.mentions) {
		return domain.Errorf(domain.Unavailable, "too many mentions are waiting for an answer")
	}
	first, err := t.state.RecordBotRequest(ctx, "event "+event)
	if err == nil && first {
		t.mentions <- m
	}
	return err
}

// command answers a slash command. It has no id, but its signature is unique.
func (t *chat) command(w http.ResponseWriter, r *http.Request, q bot.Question, ask bot.Ask) {
	first, err := t.state.RecordBotRequest(r.Context(), "command "+r.Header.Get("X-Slack-Signature"))
	switch {
	case err != nil:
		t.log.ErrorContext(r.Context(), "bot: command not accepted", "error", err)
		bot.PlainText(w, http.StatusInternalServerError, "the store failed")
		return
	case !first:
		w.WriteHeader(http.StatusOK)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandLimit)
	defer cancel()
	reply, err := ask(ctx, q)
	if err != nil {
		t.log.WarnContext(r.Context(), "bot: command failed", "error", err)
		reply = bot.Message{{bot.Plain("Failed: " + domain.MessageOf(err))}}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	encoded, _ := json.Marshal(map[string]string{"response_type": "in_channel", "text": Mrkdwn(reply)})
	_, _ = w.Write(encoded) // strings always encode; Slack may be gone
}
