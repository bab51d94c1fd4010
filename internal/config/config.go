// Package config gathers what the gateway is told: flags over environment variables over the TOML file over defaults,
// all checked, so that a mistake is one line that names its place. It also reads and writes the chat bot's file.
// It starts nothing and, but for that file, writes nothing.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"switchyard/internal/domain"
)

// Config is the gateway's configuration. Every value has been checked; paths are absolute, durations positive.
type Config struct {
	File        string // the configuration file, "" when there is none
	Listen      string // HOST:PORT
	Data        string // directory
	BotConfig   string // file
	Credentials string // file
	LogFormat   string // text or json
	LogLevel    string // debug, info, warn or error

	PollInterval    time.Duration
	UpstreamTimeout time.Duration
	AgentTimeout    time.Duration
	JoinTokenTTL    time.Duration

	AdminToken domain.Secret // "" for none
	AllowHosts []string

	SignIn SignIn
	Bot    Bot

	// Projects are registered at a start with an empty registry; the first is then the active one.
	Projects []domain.Project

	adminTokenFile string
}

// SignIn tells of the identity provider. What is not set is "".
type SignIn struct {
	AuthorizeURL string
	TokenURL     string
	ClientID     string
	Product      string
}

// Bot is what the chat bot is told outside of its own file.
type Bot struct {
	Operators  []string // user ids
	TeamAPIURL string
}

// FlagError is a mistake in a flag.
type FlagError struct{ error }

// given is what one place says of a setting.
type given struct {
	source string // the flag, the variable, or the file with line and key
	values []string
}

// fail returns err with the source of the value that caused it.
func (g given) fail(err error) error {
	err = fmt.Errorf("%s: %w", g.source, err)
	if strings.HasPrefix(g.source, "--") {
		return FlagError{err}
	}
	return err
}

// AddFlags adds the gateway's flags to flags.
func AddFlags(flags *pflag.FlagSet) {
	flags.String("config", "", "read `FILE` (default \"$XDG_CONFIG_HOME/switchyard/switchyard.toml\", if it exists) [$SWITCHYARD_CONFIG]")
	for _, s := range (&Config{}).settings() {
		usage := fmt.Sprintf("%s [$%s]", s.usage, s.env)
		switch {
		case s.flag == "":
		case s.list:
			flags.StringArray(s.flag, nil, usage)
		default:
			flags.String(s.flag, s.fallback, usage)
		}
	}
}

// Load reads the configuration of flags (AddFlags was applied to them), the environment and the file.
// An error is one line that names the flag (and is a FlagError then), the variable, or the file with line and key.
func Load(flags *pflag.FlagSet, getenv func(string) string) (*Config, error) {
	c := &Config{}
	last, err := c.read(c.settings(), flags, getenv)
	if err != nil {
		return nil, err
	}
	if c.AdminToken, err = readAdminToken(last["gateway.admin_token_file"], c.adminTokenFile, getenv); err != nil {
		return nil, err
	}
	if c.AdminToken == "" && !onLoopback(c.Listen) {
		return nil, last["gateway.listen"].fail(fmt.Errorf("%s is not only on loopback; set an admin token (--admin-token-file)", c.Listen))
	}
	return c, nil
}

// AddDataFlags adds those of the gateway's flags that say where its data is.
func AddDataFlags(flags *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(all)
	flags.AddFlag(all.Lookup("config"))
	flags.AddFlag(all.Lookup("data"))
}

// LoadData returns the gateway's data directory, as Load would. AddDataFlags was applied to flags.
func LoadData(flags *pflag.FlagSet, getenv func(string) string) (dir string, err error) {
	c := &Config{}
	_, err = c.read(c.settings(), flags, getenv, "gateway.data")
	return c.Data, err
}

// read takes over what file, environment and flags say of the settings with the given keys, or of all, and returns by key
// the strongest that speaks of each.
func (c *Config) read(settings []setting, flags *pflag.FlagSet, getenv func(string) string, keys ...string) (map[string]given, error) {
	path, named, err := filePath(flags, getenv)
	if err != nil {
		return nil, err
	}
	file := &document{}
	if path != "" {
		file, err = readFile(path, settings)
		var unread *fs.PathError
		if errors.As(err, &unread) && named != nil {
			err = named.fail(err)
		}
		if err != nil {
			return nil, err
		}
		c.File, c.Projects = path, file.projects
	}
	last := map[string]given{}
	for _, s := range settings {
		if len(keys) > 0 && !slices.Contains(keys, s.key) {
			continue
		}
		for _, g := range s.layers(flags, getenv, file) {
			if err := s.set(g.values); err != nil {
				return nil, g.fail(err)
			}
			last[s.key] = g
		}
		if _, ok := last[s.key]; !ok && s.fallback != "" {
			return nil, fmt.Errorf("--%s: must be given where HOME is not set", s.flag)
		}
	}
	return last, nil
}

// filePath returns the absolute path of the configuration file and what named it. It returns nil where nothing did, and ""
// where then there is none.
func filePath(flags *pflag.FlagSet, getenv func(string) string) (path string, named *given, err error) {
	g := given{"SWITCHYARD_CONFIG", []string{getenv("SWITCHYARD_CONFIG")}}
	if flags.Changed("config") {
		g = given{"--config", []string{flags.Lookup("config").Value.String()}}
	}
	if g.values[0] == "" && !flags.Changed("config") {
		standard, ok := Expand("$XDG_CONFIG_HOME/switchyard/switchyard.toml", getenv)
		if _, err := os.Stat(standard); !ok || errors.Is(err, fs.ErrNotExist) {
			return "", nil, nil
		}
		return standard, nil, nil
	}
	if err := isPath(&path)(g.values); err != nil {
		return "", nil, g.fail(err)
	}
	if _, err := os.Stat(path); err != nil {
		return "", nil, g.fail(err)
	}
	return path, &g, nil
}

// Expand replaces the XDG variable at the start of a default path. It reports false when the user has no home directory.
func Expand(path string, getenv func(string) string) (string, bool) {
	ok := true
	expanded := os.Expand(path, func(name string) string {
		if dir := getenv(name); filepath.IsAbs(dir) { // a relative one is invalid and ignored, says the XDG specification
			return dir
		}
		home := getenv("HOME")
		ok = filepath.IsAbs(home)
		return filepath.Join(home, map[string]string{"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state"}[name])
	})
	return expanded, ok
}

// readAdminToken returns the token of SWITCHYARD_ADMIN_TOKEN, else of the file at path, "" where neither is given.
func readAdminToken(file given, path string, getenv func(string) string) (domain.Secret, error) {
	if value := getenv("SWITCHYARD_ADMIN_TOKEN"); value != "" {
		token, err := checkAdminToken(value)
		if err != nil {
			return "", fmt.Errorf("SWITCHYARD_ADMIN_TOKEN: %w", err)
		}
		return token, nil
	}
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", file.fail(err)
	}
	token, err := checkAdminToken(string(data))
	if err != nil {
		return "", file.fail(fmt.Errorf("%s: %w", path, err))
	}
	return token, nil
}

func checkAdminToken(text string) (domain.Secret, error) {
	token := domain.Secret(strings.TrimSpace(text))
	switch {
	case token == "":
		return "", errors.New("holds no token")
	case !token.FitsHeader():
		return "", errors.New("the token must be printable ASCII without spaces, as a header must carry it")
	}
	return token, nil
}
