package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
	"switchyard/internal/wire"
)

// BotConfig shows the configuration, secrets in plain text and null where unset.
func (a *API) BotConfig(w http.ResponseWriter, r *http.Request) error {
	config, err := a.service.Bot.Config(r.Context())
	if err != nil {
		return err
	}
	settings := wire.Object{}.Set("transport", domain.EncodeJSON(config.Transport))
	for _, s := range domain.BotSettings() {
		var value *string
		if secret, set := config.Settings[s.Key]; set {
			value = new(secret.Reveal())
		}
		settings = settings.Set(s.Key, domain.EncodeJSON(value))
	}
	web.WriteEncoded(w, http.StatusOK, settings.Encode())
	return nil
}

// SaveBotConfig replaces the whole configuration: what is left out becomes unset.
func (a *API) SaveBotConfig(w http.ResponseWriter, r *http.Request) error {
	body := web.DecodeJSON(w, r, web.MaxBody)
	body.Text("transport") // is required
	config, err := domain.ReadBotConfig(func(key string) (*string, error) { return body.OptionalText(key), body.Err() })
	if err != nil {
		return err
	}
	return ok(w, a.service.Bot.Save(r.Context(), config))
}

func (a *API) BotStatus(w http.ResponseWriter, r *http.Request) error {
	status := a.service.Bot.Status()
	var heard *int64
	if status.HeardMS > 0 {
		heard = &status.HeardMS
	}
	return answer(w, http.StatusOK, struct {
		Transport domain.BotTransport `json:"transport"`
		State     domain.BotState     `json:"state"`
		Detail    string              `json:"detail"`
		SinceMS   int64               `json:"since_ms"`
		Rooms     []string            `json:"rooms"`
		Operators int                 `json:"operators"`
		HeardMS   *int64              `json:"heard_ms"`
	}{
		status.Transport, status.State, status.Detail, status.Since.UnixMilli(), status.Rooms,
		len(a.service.Bot.Operators), heard,
	}, nil)
}

func (a *API) TestBot(w http.ResponseWriter, r *http.Request) error {
	return ok(w, a.service.Bot.Test(r.Context()))
}
