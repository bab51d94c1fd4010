package handlers

import (
	"net/http"
	"time"

	"switchyard/views"
)

// bot is the page Bot configuration. Its form works through the JSON API, and only there are secrets shown.
func (c *console) bot(w http.ResponseWriter, r *http.Request) error {
	status := c.service.Bot.Status()
	v := c.version()
	v.text(string(status.Transport), string(status.State), status.Detail)
	v.text(status.Rooms...)
	v.number(status.SinceMS)
	props := views.BotProps{Status: status, Now: time.Now(), Version: v.String()}
	return c.render(w, r, view{
		frame: views.Frame{Title: "Bot configuration", Page: views.PageBot, Scripts: []string{"bot-config.js"}},
		page:  views.BotPage(props), part: views.BotState(props), version: props.Version,
	})
}
