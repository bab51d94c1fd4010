package api

import (
	"net/http"

	"switchyard/internal/domain"
	"switchyard/internal/web"
)

// botConfigJSON is the bot's configuration as the API shows it: secrets in plain text, null where unset.
type botConfigJSON struct {
	Transport         domain.BotTransport `json:"transport"`
	Homeserver        *string             `json:"homeserver"`
	Username          *string             `json:"username"`
	Password          *string             `json:"password"`
	TeamBotToken      *string             `json:"team_bot_token"`
	TeamSigningSecret *string             `json:"team_signing_secret"`
}

// BotConfig shows the configuration, secrets included.
func (a *API) BotConfig(w http.ResponseWriter, r *http.Request) error {
	config, err := a.service.Bot.Config(r.Context())
	if err != nil {
		return err
	}
	web.WriteJSON(w, http.StatusOK, botConfigJSON{
		config.Transport, config.Homeserver, config.Username,
		(*string)(config.Password), (*string)(config.TeamBotToken), (*string)(config.TeamSigningSecret),
	})
	return nil
}

// SaveBotConfig replaces the whole configuration: what is left out becomes unset.
func (a *API) SaveBotConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := web.DecodeJSON(w, r, web.MaxBody)
	if err != nil {
		return err
	}
	config, err := botConfigOf(body)
	if err != nil {
		return err
	}
	if err := a.service.Bot.Save(r.Context(), config); err != nil {
		return err
	}
	web.WriteOK(w)
	return nil
}

// botConfigOf reads the six fields. It returns an Invalid error that names the first one missing or of the wrong type.
func botConfigOf(b web.Body) (domain.BotConfig, error) {
	transport, err := b.Text("transport")
	if err != nil {
		return domain.BotConfig{}, err
	}
	var texts [5]*string
	for i, name := range []string{"homeserver", "username", "password", "team_bot_token", "team_signing_secret"} {
		if texts[i], err = b.OptionalText(name); err != nil {
			return domain.BotConfig{}, err
		}
	}
	return domain.BotConfig{
		Transport:  domain.BotTransport(transport),
		Homeserver: texts[0], Username: texts[1], Password: (*domain.Secret)(texts[2]),
		TeamBotToken: (*domain.Secret)(texts[3]), TeamSigningSecret: (*domain.Secret)(texts[4]),
	}, nil
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
