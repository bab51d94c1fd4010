package bot

import (
	"strings"

	"switchyard/internal/domain"
)

// newTransport returns the configured transport, or an Invalid error that says which settings are missing.
func newTransport(o Options, config domain.BotConfig) (Transport, error) {
	if err := domain.CheckTransport(config.Transport); err != nil {
		return nil, err
	}
	set, missing := config.Settings, []string(nil)
	for _, setting := range config.Transport.Network().Settings {
		if strings.TrimSpace(set[setting.Key].Reveal()) == "" {
			missing = append(missing, setting.Label)
		}
	}
	if len(missing) > 0 {
		return nil, domain.Errorf(domain.Invalid, "Not set up: fill in %s and save.", strings.Join(missing, ", "))
	}
	if config.Transport == domain.BotTeam {
		return newTeam(o, set["team_bot_token"], set["team_signing_secret"]), nil
	}
	return newMatrix(o, set["homeserver"].Reveal(), set["username"].Reveal(), set["password"]), nil
}
