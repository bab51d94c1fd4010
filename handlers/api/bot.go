package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// BotConfig shows the configuration, secrets in plain text and null where unset.
func (a *API) BotConfig(w http.ResponseWriter, r *http.Request) error {
	config, err := a.service.Bot.Config(r.Context())
	if err != nil {
		return err
	}
	b := web.AppendJSON([]byte(`{"transport":`), string(config.Transport))
	for _, s := range domain.BotSettings() {
		b = append(b, `,"`+s.Key+`":`...)
		if value, set := config.Settings[s.Key]; set {
			b = web.AppendJSON(b, value.Reveal())
		} else {
			b = append(b, "null"...)
		}
	}
	web.WriteEncoded(w, http.StatusOK, append(b, '}'))
	return nil
}

// SaveBotConfig replaces the whole configuration: what is left out becomes unset.
func (a *API) SaveBotConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	if _, err := body.Text("transport"); err != nil {
		return err
	}
	config, err := domain.ReadBotConfig(body.OptionalText)
	if err != nil {
		return err
	}
	if err := a.service.Bot.Save(r.Context(), config); err != nil {
		return err
	}
	web.WriteOK(w)
	return nil
}

// BotStatus answers with the bot's state.
func (a *API) BotStatus(w http.ResponseWriter, r *http.Request) error {
	status := a.service.Bot.Status()
	web.WriteJSON(w, http.StatusOK, struct {
		Transport domain.BotTransport `json:"transport"`
		State     domain.BotState     `json:"state"`
		Detail    string              `json:"detail"`
		SinceMS   int64               `json:"since_ms"`
		Rooms     []string            `json:"rooms"`
	}{status.Transport, status.State, status.Detail, status.Since.UnixMilli(), status.Rooms})
	return nil
}

// TestBot sends a test message to every room.
func (a *API) TestBot(w http.ResponseWriter, r *http.Request) error {
	if err := a.service.Bot.Test(r.Context()); err != nil {
		return err
	}
	web.WriteOK(w)
	return nil
}
