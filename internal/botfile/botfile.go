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

// File is the chat bot's configuration file. An absent key is unset; empty strings are kept. It caches nothing.
type File struct{ Path string }

const header = "# The chat bot's configuration. " +
	"Edits by hand are read when its page is opened and when the bot restarts.\n\n"

// Load reads the file. Without a file the transport is matrix and nothing else is set. The error for a file that cannot
// be read or parsed names it and the reason, without secrets.
func (f File) Load() (domain.BotConfig, error) {
	data, err := files.ReadText(f.Path, files.Large)
	if errors.Is(err, fs.ErrNotExist) {
		return domain.BotConfig{Transport: domain.BotNetworks[0].Transport}, nil
	}
	if err != nil {
		return domain.BotConfig{}, err
	}
	var stored map[string]any
	if err := toml.Unmarshal(data, &stored); err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal,
			"%s is not a bot configuration in TOML%s", f.Path, position(err))
	}
	c, err := domain.ReadBotConfig(func(key string) (*string, error) {
		value, given := stored[key]
		text, isText := value.(string)
		switch {
		case !given:
			return nil, nil
		case !isText:
			return nil, domain.Errorf(domain.Invalid, "this is not a bot configuration in TOML: %s must be a string", key)
		}
		return &text, nil
	})
	if err != nil {
		return domain.BotConfig{}, domain.Errorf(domain.Internal, "%s: %s", f.Path, domain.MessageOf(err))
	}
	return c, nil
}

// position returns where an error is, without quoting what is there: it may be a password.
func position(err error) string {
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		return fmt.Sprintf(": line %d, column %d", line, column)
	}
	return ""
}

func (f File) Save(c domain.BotConfig) error {
	out := bytes.NewBufferString(header)
	if err := toml.NewEncoder(out).Encode(c.Values()); err != nil {
		return err
	}
	unlock, err := files.Lock(f.Path)
	if err != nil {
		return err
	}
	defer unlock()
	return files.WriteAtomic(f.Path, out.Bytes())
}

func (f File) Name() string { return f.Path }

func (f File) Tidy() error { return files.Tidy(f.Path, false) }
