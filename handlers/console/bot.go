package console

import (
	"net/http"

	"switchyard/views"
)

// Bot is the Bot configuration page. Its form uses the JSON API, which alone shows secrets.
func (c *Console) Bot(w http.ResponseWriter, r *http.Request) error {
	return c.render(w, r, view{
		frame: views.Frame{
			Title: "Bot configuration", Page: views.PageBot, Sheet: "work.css", Scripts: []string{"bot-config.js"},
		},
		part: views.BotState(views.BotProps{
			Status: c.service.Bot.Status(), IgnoredFile: c.service.Bot.IgnoredFile(r.Context()),
			Operators: c.service.Bot.Operators, Now: now(),
		}),
		page: views.BotPage(),
	})
}
