package console

import (
	"net/http"

	"switchyard/views"
)

// Bot is the page Bot configuration. Its form works through the JSON API, and only there are secrets shown.
func (c *Console) Bot(w http.ResponseWriter, r *http.Request) error {
	return c.render(w, r, view{
		frame:      views.Frame{Title: "Bot configuration", Page: views.PageBot, Scripts: []string{"bot-config.js"}},
		part:       views.BotState(views.BotProps{Status: c.service.Bot.Status(), IgnoredFile: c.service.Bot.IgnoredFile(r.Context()), Now: now()}),
		pageAround: views.BotPage,
	})
}
