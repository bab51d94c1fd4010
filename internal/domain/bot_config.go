package domain

import (
	"maps"
	"strings"
	"time"
)

type BotTransport string

const (
	BotMatrix BotTransport = "matrix"
	BotTeam   BotTransport = "team" // Slack's API
)

// BotSetting is a setting of a transport, and its field in the form.
type BotSetting struct {
	Key, Label string
	Kind       string // text, url or password: only a password is secret
	Hint       string
}

// BotNetwork is a chat network. Its transport needs all of its settings.
type BotNetwork struct {
	Transport    BotTransport
	Name, Choice string // in the bot's state, and in the form
	Settings     []BotSetting
}

// BotNetworks are the chat networks, beginning with the default.
var BotNetworks = []BotNetwork{
	{BotMatrix, "Matrix", "Matrix", []BotSetting{
		{"homeserver", "Homeserver URL", "url", "For example https://matrix.example.org. The server's name alone is enough."},
		{"username", "Bot username", "text", "The bot's own account, not yours."},
		{"password", "Password", "password", ""},
	}},
	{BotTeam, "Slack", "Team chat (Slack)", []BotSetting{
		{"team_bot_token", "Bot token", "password", "The Bot User OAuth Token, which begins with xoxb-."},
		{"team_signing_secret", "Signing secret", "password", "On the Slack app's Basic Information page."},
	}},
}

func BotSettings() (all []BotSetting) {
	for _, n := range BotNetworks {
		all = append(all, n.Settings...)
	}
	return all
}

type BotConfig struct {
	Transport BotTransport
	Settings  map[string]Secret // by key; an unset one is absent. An empty one is kept, and counts as missing for the bot.
}

func (c BotConfig) Equal(other BotConfig) bool {
	return c.Transport == other.Transport && maps.Equal(c.Settings, other.Settings)
}

func (c BotConfig) IsDefault() bool { return c.Equal(BotConfig{Transport: BotNetworks[0].Transport}) }

// Values returns the transport and the settings, with their secrets, by key.
func (c BotConfig) Values() map[string]string {
	values := map[string]string{"transport": string(c.Transport)}
	for key, value := range c.Settings {
		values[key] = value.Reveal()
	}
	return values
}

// ReadBotConfig reads what Values returned, perhaps changed by people. text returns the value of a key, nil if it is
// unset. An unknown transport is Invalid.
func ReadBotConfig(text func(key string) (*string, error)) (BotConfig, error) {
	c := BotConfig{Transport: BotNetworks[0].Transport, Settings: map[string]Secret{}}
	if transport, err := text("transport"); err != nil {
		return c, err
	} else if transport != nil {
		c.Transport = BotTransport(*transport)
	}
	for _, s := range BotSettings() {
		if value, err := text(s.Key); err != nil {
			return c, err
		} else if value != nil {
			c.Settings[s.Key] = Secret(*value)
		}
	}
	return c, CheckTransport(c.Transport)
}

// Network returns the transport's network, an empty one for an unknown transport.
func (t BotTransport) Network() BotNetwork {
	for _, n := range BotNetworks {
		if n.Transport == t {
			return n
		}
	}
	return BotNetwork{}
}

// CheckTransport returns an Invalid error unless t is a known transport.
func CheckTransport(t BotTransport) error {
	if t.Network().Name != "" {
		return nil
	}
	known := Map(BotNetworks, func(n BotNetwork) string { return string(n.Transport) })
	return Errorf(Invalid, "transport: must be %s", strings.Join(known, " or "))
}

type BotState string

const (
	BotOff        BotState = "off"
	BotConnecting BotState = "connecting"
	BotConnected  BotState = "connected"
	BotFailed     BotState = "failed"
)

// BotStatus is the bot's live state. Detail is for people: what is missing, why it failed and what to do.
type BotStatus struct {
	Transport BotTransport
	State     BotState
	Detail    string
	Since     time.Time
	Rooms     []string
	HeardMS   int64 // when it last heard a command, 0 if never
}

// BotRun is the state that the gateway running the bot shares with the others.
type BotRun struct {
	Status  BotStatus
	Version int64  // of the configuration that the bot was started with
	Gateway string // the name of that gateway
	At      time.Time
}
