package domain

import "time"

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
