package domain

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

type AgentState string

const (
	AgentIdle    AgentState = "idle"
	AgentRunning AgentState = "running"
	AgentFailed  AgentState = "failed"
	AgentStopped AgentState = "stopped" // removed from the list at once, but keeps identity and assignment
)

func (s AgentState) Valid() bool {
	return s == AgentIdle || s == AgentRunning || s == AgentFailed || s == AgentStopped
}

// MaxAgentLabel is the longest label, in characters.
const MaxAgentLabel = 100

// Agent is a build agent. Project and ProjectURL are "" while it is unassigned.
type Agent struct {
	ID         string
	Label      string
	Version    string
	State      AgentState
	Detail     string
	Project    string
	ProjectURL string
	JoinedAt   time.Time
	StateSince time.Time // when it first reported its current state
	LastSeen   time.Time
}

// AgentPresence is whether an agent is alive, as the gateway sees it.
type AgentPresence string

const (
	AgentAlive AgentPresence = "alive"
	AgentLeft  AgentPresence = "stopped" // it reported that it stopped
	AgentLost  AgentPresence = "lost"    // silent for longer than the agent timeout
)

// RegisteredAgent is an agent that has an identity, alive or not.
type RegisteredAgent struct {
	Agent
	Presence  AgentPresence
	Connected bool // one of its heartbeats is being held
	// FailingSince is when its command began to fail, if it has not run for long since; zero while it is healthy.
	FailingSince time.Time
}

// AgentRecord is a stored agent, whose ProjectURL is not stored.
type AgentRecord struct {
	Agent
	SecretHash string // SHA-256 of the secret, hex
}

// AgentBeat is the state of an agent whose heartbeats have changed it.
type AgentBeat struct {
	Agent
	OnlySeen bool // only LastSeen has changed
}

// CheckAgentLabel returns an Invalid error unless label has 1 to MaxAgentLabel characters, none of them control
// characters and one of them visible.
func CheckAgentLabel(label string) error {
	return checkName("label", label, MaxAgentLabel)
}

func checkName(field, text string, most int) error {
	if text == "" {
		return Errorf(Invalid, "%s: must not be empty", field)
	}
	err := checkText(field, text, most)
	if err == nil && !strings.ContainsFunc(text, visible) {
		return Errorf(Invalid, "%s: must have a visible character", field)
	}
	return err
}

func checkText(field, text string, most int) error {
	switch {
	case utf8.RuneCountInString(text) > most:
		return Errorf(Invalid, "%s: must be at most %d characters", field, most)
	case strings.ContainsFunc(text, unicode.IsControl):
		return Errorf(Invalid, "%s: must not contain control characters", field)
	}
	return nil
}

// MaxAgentVersion is the longest version, in characters.
const MaxAgentVersion = 100

// CheckAgentVersion returns an Invalid error unless version has at most MaxAgentVersion characters, none of them
// control characters.
func CheckAgentVersion(version string) error {
	return checkText("version", version, MaxAgentVersion)
}

// JoinToken is an issued one-time token. The token itself is not stored.
type JoinToken struct {
	Hash      string // SHA-256 of the token, hex
	CreatedAt time.Time
	ExpiresAt time.Time
	UsedAt    time.Time // zero while unused
	UsedBy    string    // id of the agent that joined with it
	Project   string    // the project that the agent is assigned to when it joins, "" for none
}
