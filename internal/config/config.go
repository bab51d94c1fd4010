// Package config gathers the settings: flags over environment variables over the TOML file over defaults,
// all checked, so that a mistake is one line that says where it is. It also reads and writes the chat bot's file.
// It starts nothing and, but for that file, writes nothing.
package config

import (
	"fmt"
	"strings"
	"time"

	"switchyard/internal/domain"
)

// Config is the gateway's configuration. Every value has been checked; paths are absolute, durations positive.
type Config struct {
	File   string // the configuration file, "" when there is none
	Listen string // HOST:PORT
	Data   string // directory
	// Database is the address of a PostgreSQL database that several gateways share, which may hold a password; "" for the
	// database in Data.
	Database    domain.Secret
	BotConfig   string // file
	Credentials string // file
	LogFormat   string // text or json
	LogLevel    string // debug, info, warn or error

	PollInterval    time.Duration
	KeepEvents      time.Duration // 0: forever
	UpstreamTimeout time.Duration
	AgentTimeout    time.Duration
	JoinTokenTTL    time.Duration

	AdminToken domain.Secret // "" for none
	AllowHosts []string      // the one of PublicURL among them
	PublicURL  string        // where people reach the gateway, "" where that is not known

	MetricsPerProject bool // series of each project in /metrics

	SignIn SignIn
	Login  Login
	Bot    Bot

	// Projects are registered at a start with an empty registry; the first is then the active one.
	Projects []domain.Project

	// Warnings are what does not stop a start but should be put right, each in one line.
	Warnings []string

	adminTokenFile       string
	allowUnauthenticated bool
}

// SignIn describes the identity provider. Its addresses may be "".
type SignIn struct {
	AuthorizeURL string
	TokenURL     string
	ClientID     string
	Product      string
	TokenFormat  string   // of the code exchange: json or form
	Scopes       []string // nil for the usual ones

	Missing    []string // the keys of the four settings above that nobody has set
	ConfigFile string   // the file to set them in, which need not exist; "" where the user has no home directory
}

// Bot is what is set of the chat bot outside its own file.
type Bot struct {
	Operators  []string // user ids
	TeamAPIURL string
}

// FlagError is a mistake in a flag.
type FlagError struct{ error }

// given is what one source says of a setting.
type given struct {
	source fmt.Stringer // the flag, the variable, or the file with line and key
	values []string
}

// named is a source that is its own name.
type named string

func (n named) String() string { return string(n) }

// fail returns err with the source of the value that caused it.
func (g given) fail(err error) error {
	err = fmt.Errorf("%s: %w", g.source, err)
	if flag, ok := g.source.(named); ok && strings.HasPrefix(string(flag), "--") {
		return FlagError{err}
	}
	return err
}

const defaultOf = "default of "

func (g given) isDefault() bool {
	source, ok := g.source.(named)
	return ok && strings.HasPrefix(string(source), defaultOf)
}
