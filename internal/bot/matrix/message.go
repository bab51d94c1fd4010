package matrix

import (
	"cmp"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"switchyard/internal/bot"
)

// outgoing is a message that the bot posts.
type outgoing struct {
	key     string // transaction id; also kept in the event's content
	kind    string // "m.text", or "m.notice" for what no other bot should answer
	message bot.Message
	replyTo string // event id of the question in thread
	thread  string // event id of the thread's first message, "" outside threads
}

func (p outgoing) content() map[string]any {
	content := map[string]any{
		"msgtype":        p.kind,
		"body":           p.message.PlainText(),
		"format":         "org.matrix.custom.html",
		"formatted_body": HTML(p.message),
		"m.mentions":     struct{}{}, // names in a text must not notify anybody
		"switchyard.key": p.key,
	}
	if p.thread != "" {
		content["m.relates_to"] = map[string]any{
			"rel_type": "m.thread", "event_id": p.thread,
			"is_falling_back": true, "m.in_reply_to": map[string]any{"event_id": p.replyTo},
		}
	}
	return content
}

func HTML(m bot.Message) string {
	return m.Render("<br>", func(s bot.Span) string {
		text := html.EscapeString(s.Text)
		switch s.Style {
		case bot.BoldStyle:
			text = "<strong>" + text + "</strong>"
		case bot.CodeStyle:
			text = "<code>" + text + "</code>"
		}
		if s.Link != "" {
			text = `<a href="` + html.EscapeString(s.Link) + `">` + text + "</a>"
		}
		return text
	})
}

// maxQuestionAge is the age of the oldest question that is answered after the bot was away.
const maxQuestionAge = 10 * time.Minute

// messageContent holds the fields of m.room.message that the bot uses.
type messageContent struct {
	Kind     string `json:"msgtype"`
	Body     string `json:"body"`
	HTML     string `json:"formatted_body"`
	Mentions struct {
		Users []string `json:"user_ids"`
	} `json:"m.mentions"`
	Relates struct {
		Kind    string          `json:"rel_type"`
		EventID string          `json:"event_id"`
		Key     string          `json:"key"` // of a reaction: the emoji
		ReplyTo json.RawMessage `json:"m.in_reply_to"`
	} `json:"m.relates_to"`
}

// question returns the question in another user's message and the thread that it belongs to, "" for none. Notices come
// from other bots, and edited messages were answered when they were first sent.
func (r *receiver) question(room string, e roomEvent) (q bot.Question, thread string, ok bool) {
	saved := r.now()
	var content messageContent
	if json.Unmarshal(e.Content, &content) != nil || e.Sender == saved.UserID ||
		e.Unsigned.Age > maxQuestionAge.Milliseconds() {
		return bot.Question{}, "", false
	}
	q.Sender, q.Room = e.Sender, room
	if e.Type == "m.reaction" {
		q.About, q.Reaction, q.OnlyReply = content.Relates.EventID, content.Relates.Key, true
		return q, q.About, q.Reaction != ""
	}
	if content.Kind != "m.text" || content.Relates.Kind == "m.replace" {
		return bot.Question{}, "", false
	}
	if content.Relates.Kind == "m.thread" {
		thread = content.Relates.EventID
	}
	var reply struct {
		EventID string `json:"event_id"`
	}
	_ = json.Unmarshal(content.Relates.ReplyTo, &reply) // many messages reply to none
	q.About = cmp.Or(thread, reply.EventID)
	q.Text, q.Addressed = content.text(saved.UserID, saved.Names)
	q.Addressed = q.Addressed || saved.Rooms[room].isDirect()
	return q, thread, true
}

// text returns the message without the bot's name, and whether it was addressed to the bot. Clients write a mention as
// a link in the formatted text, as a list of users, or both; the plain text has the bot's name at that time.
func (c messageContent) text(user string, names []string) (string, bool) {
	if text, ok := withoutPill(c.HTML, user); ok {
		return text, true
	}
	text := strings.TrimSpace(c.Body)
	if len(c.Relates.ReplyTo) > 0 {
		text = withoutQuote(text)
	}
	if rest, ok := withoutName(text, user, names); ok {
		return rest, true
	}
	if !slices.Contains(c.Mentions.Users, user) {
		return text, false
	}
	// The name may be one that the bot has only in this room, or had long ago.
	if first, _, _ := strings.Cut(text, " "); !bot.IsCommand(first) {
		if _, rest, ok := strings.Cut(text, ":"); ok && strings.TrimSpace(rest) != "" {
			return strings.TrimSpace(rest), true
		}
	}
	return text, true
}

var (
	quoted = regexp.MustCompile(`(?s)<mx-reply>.*?</mx-reply>`)
	link   = regexp.MustCompile(
		`(?s)<a\s[^>]*?href=["'](?:https://matrix\.to/#/|matrix:u/)([^"'?]+)[^"']*["'][^>]*>.*?</a>`)
	breaks = regexp.MustCompile(`<(?:br|/p|/div|/li)\b[^>]*>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
)

// withoutPill returns the text of a formatted body without the link that mentions user; false if there is none.
func withoutPill(formatted, user string) (string, bool) {
	formatted = quoted.ReplaceAllString(formatted, "")
	found := false
	formatted = link.ReplaceAllStringFunc(formatted, func(anchor string) string {
		id, err := url.PathUnescape(html.UnescapeString(link.FindStringSubmatch(anchor)[1]))
		if err != nil || id != user && "@"+id != user { // matrix:u/ has no @
			return anchor
		}
		found = true
		return " "
	})
	if !found {
		return "", false
	}
	text := html.UnescapeString(tags.ReplaceAllString(breaks.ReplaceAllString(formatted, "\n"), ""))
	return strings.Trim(text, ":, \t\r\n\u00a0"), true
}

func withoutQuote(body string) string {
	for strings.HasPrefix(body, ">") {
		_, body, _ = strings.Cut(body, "\n")
	}
	return strings.TrimSpace(body)
}

// withoutName returns the text after one of the bot's names at its start; false if it starts with none.
func withoutName(text, user string, names []string) (string, bool) {
	local, _, _ := strings.Cut(strings.TrimPrefix(user, "@"), ":")
	candidates := append([]string{user, local}, names...)
	slices.SortFunc(candidates, func(a, b string) int { return len(b) - len(a) })
	for _, name := range candidates {
		for _, called := range []string{name, "@" + name} {
			if name == "" || len(text) < len(called) || !strings.EqualFold(text[:len(called)], called) {
				continue
			}
			rest := text[len(called):]
			if trimmed := strings.TrimLeft(rest, ":, "); trimmed != rest || rest == "" {
				return trimmed, true
			}
		}
	}
	return "", false
}
