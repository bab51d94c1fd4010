package matrix

import (
	"html"

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

// HTML renders m as the HTML that clients show.
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
