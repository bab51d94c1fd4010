package domain

import "time"

// BotTransport names a chat network.
type BotTransport string

const (
	BotMatrix BotTransport = "matrix"
	BotTeam   BotTransport = "team" // Slack's API
)

// BotConfig is the chat bot's configuration; nil is unset. Empty strings are kept, and count as missing for the bot.
type BotConfig struct {
	Transport         BotTransport
	Homeserver        *string
	Username          *string
	Password          *Secret
	TeamBotToken      *Secret
	TeamSigningSecret *Secret
}

// CheckTransport returns an Invalid error unless t is a known transport.
func CheckTransport(t BotTransport) error {
	if t != BotMatrix && t != BotTeam {
		return Errorf(Invalid, "transport: must be matrix or team")
	}
	return nil
}

// BotState is the state of the bot.
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
}

// BotRun is the state that the gateway that runs the bot shares with the others.
type BotRun struct {
	Status  BotStatus
	Version int64  // of the configuration with which the bot was started
	Gateway string // the name of that gateway
	At      time.Time
}
