package bot

import (
	"strings"

	"switchyard/internal/domain"
)

// newTransport returns the configured transport, or an Invalid error that says which settings are missing.
func newTransport(o Options, config domain.BotConfig) (Transport, error) {
	var missing []string
	want := func(label, value string) {
		if value == "" {
			missing = append(missing, label)
		}
	}
	switch config.Transport {
	case domain.BotMatrix:
		want("Homeserver URL", text(config.Homeserver))
		want("Bot username", text(config.Username))
		want("Password", text(config.Password))
	case domain.BotTeam:
		want("Bot token", text(config.TeamBotToken))
		want("Signing secret", text(config.TeamSigningSecret))
	default:
		return nil, domain.CheckTransport(config.Transport)
	}
	if len(missing) > 0 {
		return nil, domain.Errorf(domain.Invalid, "Not set up: fill in %s and save.", strings.Join(missing, ", "))
	}
	if config.Transport == domain.BotTeam {
		return newTeam(o, *config.TeamBotToken, *config.TeamSigningSecret), nil
	}
	return newMatrix(o, *config.Homeserver, *config.Username, *config.Password), nil
}

// text returns a setting as a string, "" when it is unset.
func text[T ~string](value *T) string {
	if value == nil {
		return ""
	}
	return string(*value)
}
