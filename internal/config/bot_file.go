package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pelletier/go-toml/v2"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// BotFile is the chat bot's configuration file. People may edit it by hand; nothing of it is kept in memory.
type BotFile struct{ Path string }

// botTOML is the file's content. A key that is absent is unset, an empty string is kept.
type botTOML struct {
	Transport         *string `toml:"transport"`
	Homeserver        *string `toml:"homeserver"`
	Username          *string `toml:"username"`
	Password          *string `toml:"password"`
	TeamBotToken      *string `toml:"team_bot_token"`
	TeamSigningSecret *string `toml:"team_signing_secret"`
}

const botHeader = "# The chat bot's configuration. Edits by hand are read at the next look or restart of the bot.\n\n"

// Load reads the file. Without a file the transport is matrix and all else unset. The error for a file that cannot be
// read or parsed names it and says why, without any secret.
func (f BotFile) Load() (domain.BotConfig, error) {
	data, err := files.Read(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return domain.BotConfig{Transport: domain.BotMatrix}, nil
	}
	if err != nil {
		return domain.BotConfig{}, err
	}
	var content botTOML
	if err := toml.Unmarshal(data, &content); err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal, "%s is not a bot configuration in TOML%s", f.Path, place(err))
	}
	transport := domain.BotMatrix
	if content.Transport != nil {
		transport = domain.BotTransport(*content.Transport)
	}
	if err := domain.CheckTransport(transport); err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal, "%s: %s", f.Path, domain.MessageOf(err))
	}
	return domain.BotConfig{
		Transport:         transport,
		Homeserver:        content.Homeserver,
		Username:          content.Username,
		Password:          (*domain.Secret)(content.Password),
		TeamBotToken:      (*domain.Secret)(content.TeamBotToken),
		TeamSigningSecret: (*domain.Secret)(content.TeamSigningSecret),
	}, nil
}

// place says where an error is, but not what stands there: it may be a password.
func place(err error) string {
	var at *toml.DecodeError
	if !errors.As(err, &at) {
		return ""
	}
	line, column := at.Position()
	return fmt.Sprintf(": line %d, column %d", line, column)
}

// Save replaces the file's content; see files.WriteAtomic.
func (f BotFile) Save(c domain.BotConfig) error {
	content := botTOML{
		Transport:         (*string)(&c.Transport),
		Homeserver:        c.Homeserver,
		Username:          c.Username,
		Password:          (*string)(c.Password),
		TeamBotToken:      (*string)(c.TeamBotToken),
		TeamSigningSecret: (*string)(c.TeamSigningSecret),
	}
	out := bytes.NewBufferString(botHeader)
	if err := toml.NewEncoder(out).Encode(content); err != nil {
		return err
	}
	unlock, err := files.Lock(f.Path)
	if err != nil {
		return err
	}
	defer unlock()
	return files.WriteAtomic(f.Path, out.Bytes())
}

// Tidy repairs the file's mode and removes what killed writers left beside it.
func (f BotFile) Tidy() error {
	return errors.Join(files.SweepOrphans(f.Path), files.Restrict(f.Path))
}
