package handlers

import (
	"net/http"

	"switchyard/internal/domain"
)

// TeamChat is where Slack sends what people say. It checks the signature of every call itself.
type TeamChat interface {
	TeamEvents(w http.ResponseWriter, r *http.Request)
	TeamCommands(w http.ResponseWriter, r *http.Request)
}

func (g *gateway) teamEvents(w http.ResponseWriter, r *http.Request) { g.TeamChat.TeamEvents(w, r) }

func (g *gateway) teamCommands(w http.ResponseWriter, r *http.Request) { g.TeamChat.TeamCommands(w, r) }

// botConfigJSON is the bot's configuration as the API shows it: secrets in clear, null where unset.
type botConfigJSON struct {
	Transport         domain.BotTransport `json:"transport"`
	Homeserver        *string             `json:"homeserver"`
	Username          *string             `json:"username"`
	Password          *string             `json:"password"`
	TeamBotToken      *string             `json:"team_bot_token"`
	TeamSigningSecret *string             `json:"team_signing_secret"`
}

func (g *gateway) botConfig(w http.ResponseWriter, r *http.Request) error {
	config, err := g.Service.Bot.Config(r.Context())
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, botConfigJSON{
		config.Transport, config.Homeserver, config.Username,
		(*string)(config.Password), (*string)(config.TeamBotToken), (*string)(config.TeamSigningSecret),
	})
	return nil
}

// saveBotConfig replaces the whole configuration: what is left out becomes unset.
func (g *gateway) saveBotConfig(w http.ResponseWriter, r *http.Request) error {
	body, err := decodeBody(w, r)
	if err != nil {
		return err
	}
	config, err := body.botConfig()
	if err != nil {
		return err
	}
	if err := g.Service.Bot.Save(r.Context(), config); err != nil {
		return err
	}
	writeOK(w)
	return nil
}

// botConfig reads the six fields. It returns an Invalid error that names the first that is missing or mistyped.
func (b body) botConfig() (domain.BotConfig, error) {
	transport, err := b.text("transport")
	if err != nil {
		return domain.BotConfig{}, err
	}
	var texts [5]*string
	for i, name := range []string{"homeserver", "username", "password", "team_bot_token", "team_signing_secret"} {
		if texts[i], err = b.optionalText(name); err != nil {
			return domain.BotConfig{}, err
		}
	}
	return domain.BotConfig{
		Transport:  domain.BotTransport(transport),
		Homeserver: texts[0], Username: texts[1], Password: (*domain.Secret)(texts[2]),
		TeamBotToken: (*domain.Secret)(texts[3]), TeamSigningSecret: (*domain.Secret)(texts[4]),
	}, nil
}

func (g *gateway) botStatus(w http.ResponseWriter, r *http.Request) error {
	status := g.Service.Bot.Status()
	writeJSON(w, http.StatusOK, struct {
		Transport domain.BotTransport `json:"transport"`
		State     domain.BotState     `json:"state"`
		Detail    string              `json:"detail"`
		SinceMS   int64               `json:"since_ms"`
		Rooms     []string            `json:"rooms"`
	}{status.Transport, status.State, status.Detail, status.Since.UnixMilli(), status.Rooms})
	return nil
}

// testBot sends a test message to every room.
func (g *gateway) testBot(w http.ResponseWriter, r *http.Request) error {
	if err := g.Service.Bot.Test(r.Context()); err != nil {
		return err
	}
	writeOK(w)
	return nil
}
