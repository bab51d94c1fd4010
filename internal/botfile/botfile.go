// Package botfile keeps the chat bot's configuration in a TOML file that people may edit by hand.
package botfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pelletier/go-toml/v2"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// File is the chat bot's configuration file. It caches nothing.
type File struct{ Path string }

// content is the file's content. An absent key is unset; empty strings are kept.
type content struct {
	Transport         *string `toml:"transport"`
	Homeserver        *string `toml:"homeserver"`
	Username          *string `toml:"username"`
	Password          *string `toml:"password"`
	TeamBotToken      *string `toml:"team_bot_token"`
	TeamSigningSecret *string `toml:"team_signing_secret"`
}

const header = "# The chat bot's configuration. Edits by hand are read when its page is opened and when the bot restarts.\n\n"

// Load reads the file. Without a file the transport is matrix and nothing else is set. The error for a file that cannot be
// read or parsed names it and the reason, without secrets.
func (f File) Load() (domain.BotConfig, error) {
	data, err := files.Read(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return domain.BotConfig{Transport: domain.BotMatrix}, nil
	}
	if err != nil {
		return domain.BotConfig{}, err
	}
	var stored content
	if err := toml.Unmarshal(data, &stored); err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal, "%s is not a bot configuration in TOML%s", f.Path, position(err))
	}
	transport := domain.BotMatrix
	if stored.Transport != nil {
		transport = domain.BotTransport(*stored.Transport)
	}
	if err := domain.CheckTransport(transport); err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal, "%s: %s", f.Path, domain.MessageOf(err))
	}
	return domain.BotConfig{
		Transport:         transport,
		Homeserver:        stored.Homeserver,
		Username:          stored.Username,
		Password:          (*domain.Secret)(stored.Password),
		TeamBotToken:      (*domain.Secret)(stored.TeamBotToken),
		TeamSigningSecret: (*domain.Secret)(stored.TeamSigningSecret),
	}, nil
}

// position returns where an error is, without quoting what is there: it may be a password.
func position(err error) string {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return ""
	}
	line, column := at.Position()
	return fmt.Sprintf(": line %d, column %d", line, column)
}

// Save replaces the file's content atomically; see files.WriteAtomic.
func (f File) Save(c domain.BotConfig) error {
	stored := content{
		Transport:         (*string)(&c.Transport),
		Homeserver:        c.Homeserver,
		Username:          c.Username,
		Password:          (*string)(c.Password),
		TeamBotToken:      (*string)(c.TeamBotToken),
		TeamSigningSecret: (*string)(c.TeamSigningSecret),
	}
	out := bytes.NewBufferString(header)
	if err := toml.NewEncoder(out).Encode(stored); err != nil {
		return err
	}
	unlock, err := files.Lock(f.Path)
	if err != nil {
		return err
	}
	defer unlock()
	return files.WriteAtomic(f.Path, out.Bytes())
}

// Name returns the file's path.
func (f File) Name() string { return f.Path }

// Tidy makes the file private and removes temporary files that killed writers left behind.
func (f File) Tidy() error {
	return errors.Join(files.SweepOrphans(f.Path), files.Restrict(f.Path))
}
