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
	LastSeen   time.Time
}

// AgentPresence is whether an agent is alive, as the gateway sees it.
type AgentPresence string

const (
	AgentAlive AgentPresence = "alive"
	AgentLeft  AgentPresence = "stopped" // it reported that it stopped
	AgentLost  AgentPresence = "lost"    // silent for longer than the agent timeout
)

// KnownAgent is an agent that has an identity, alive or not.
type KnownAgent struct {
	Agent
	Presence   AgentPresence
	Connected  bool      // one of its heartbeats is being held
	StateSince time.Time // when it first reported its current state
	// FailingSince is when its command began to fail, without a long run since; zero while it is healthy.
	FailingSince time.Time
}

type AgentRecord struct {
	ID         string
	Label      string
	Version    string
	SecretHash string // SHA-256 of the secret, hex
	State      AgentState
	Detail     string
	Project    string // "" is unassigned
	JoinedAt   time.Time
	StateSince time.Time
	LastSeen   time.Time
}

// AgentBeat is a change of a stored agent by heartbeats.
type AgentBeat struct {
	ID         string
	OnlySeen   bool // State, Detail and StateSince have not changed
	State      AgentState
	Detail     string
	StateSince time.Time
	LastSeen   time.Time
}

// CheckAgentLabel returns an Invalid error unless label has 1 to MaxAgentLabel characters, none of them control
// characters and one of them visible.
func CheckAgentLabel(label string) error {
	switch {
	case label == "":
		return Errorf(Invalid, "label: must not be empty")
	case utf8.RuneCountInString(label) > MaxAgentLabel:
		return Errorf(Invalid, "label: must be at most %d characters", MaxAgentLabel)
	case strings.ContainsFunc(label, unicode.IsControl):
		return Errorf(Invalid, "label: must not contain control characters")
	case !strings.ContainsFunc(label, visible):
		return Errorf(Invalid, "label: must have a visible character")
	}
	return nil
}

// MaxAgentVersion is the longest version, in characters.
const MaxAgentVersion = 100

// CheckAgentVersion returns an Invalid error unless version has at most MaxAgentVersion characters, none of them
// control characters.
func CheckAgentVersion(version string) error {
	switch {
	case utf8.RuneCountInString(version) > MaxAgentVersion:
		return Errorf(Invalid, "version: must be at most %d characters", MaxAgentVersion)
	case strings.ContainsFunc(version, unicode.IsControl):
		return Errorf(Invalid, "version: must not contain control characters")
	}
	return nil
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
